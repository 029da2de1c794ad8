//! The nearest word, for "did you mean".

/// Of `words`, each with the form in which it is compared, the one nearest to `text`, when it is near enough to have
/// been meant.
pub(crate) fn closest<'a>(text: &str, words: impl Iterator<Item = (&'a str, String)>) -> Option<&'a str> {
    words
        .map(|(word, form)| (distance(text, &form), word))
        // Nothing at all is near to nothing.
        .filter(|(distance, word)| !text.is_empty() && *distance <= 1 + word.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Of `words`, those nearest to `text`, at most five, the nearest first: a part of a word counts as near.
pub(crate) fn nearest<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 5;
    let mut near: Vec<(usize, &str)> = words
        .map(|word| (if word.contains(text) { 0 } else { distance(text, word) }, word))
        .filter(|(distance, word)| !text.is_empty() && *distance <= 2 + word.chars().count() / 3)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(MOST).map(|(_, word)| word).collect()
}

/// Edits that turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let words = ["chat", "completions", "embeddings"];
        let find = |text: &str| closest(text, words.iter().map(|word| (*word, (*word).to_owned())));
        assert_eq!(find("completion"), Some("completions"));
        assert_eq!(find("chta"), Some("chat"));
        assert_eq!(find("nothing like it"), None);
    }

    #[test]
    fn no_word_is_near_to_an_empty_one() {
        assert_eq!(closest("", std::iter::once(("8", "8".to_owned()))), None);
        assert_eq!(nearest("", ["ami", "a"].into_iter()), [""; 0]);
    }
}
