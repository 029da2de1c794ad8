//! Names that were perhaps meant.

/// At most this many.
const MOST: usize = 5;

/// The listed paths nearest to `wanted`, nearest first.
pub(super) fn names<'a>(wanted: &str, listed: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(256).collect();
    let mut found: Vec<(usize, &str)> = listed
        .into_iter()
        .take(2_000)
        .map(|path| {
            let other: Vec<char> = path.to_lowercase().chars().take(256).collect();
            (distance(&wanted, &other), path)
        })
        .filter(|(distance, _)| *distance <= wanted.len().div_ceil(2))
        .collect();
    found.sort_unstable();
    found.into_iter().take(MOST).map(|(_, path)| format!("\"{path}\"")).collect()
}

/// The listed paths that have the last part of `wanted` in another folder.
pub(super) fn same_name<'a>(wanted: &str, listed: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let wanted = last(wanted);
    let same = listed.into_iter().filter(|path| last(path) == wanted);
    same.take(MOST).map(|path| format!("\"{path}\"")).collect()
}

fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = corner + usize::from(a != b);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let listed = ["data/chat.jsonl.gz", "data/chat.jsonl", "README.md", "data/code.jsonl"];
        assert_eq!(
            names("data/chat.json", listed),
            ["\"data/chat.jsonl\"", "\"data/chat.jsonl.gz\"", "\"data/code.jsonl\""]
        );
        assert_eq!(distance(&['a', 'b'], &['b']), 1);
        assert!(names("x", ["completely/other"]).is_empty());
        let elsewhere = ["data/Chat.jsonl", "data/code.jsonl", "chat.jsonl.gz", "v2/chat.jsonl"];
        assert_eq!(same_name("old/chat.jsonl", elsewhere), ["\"data/Chat.jsonl\"", "\"v2/chat.jsonl\""]);
    }
}
