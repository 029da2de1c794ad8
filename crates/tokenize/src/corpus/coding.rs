//! Generated text about programs: code, logs, data, errors, talk. The templates are this project's own
//! (`corpus/coding.templates`); words and figures are filled in from a fixed stream, so the text is the same
//! everywhere and for every seed.
//!
//! A template file has sections (`==== name weight`) of snippets (parted by `----`). `~noun~` is a fresh word,
//! `~noun1~` the same one throughout a snippet; `*3-8 line` stands for three to eight such lines, in which
//! `{br}` ends a line.

use std::sync::{LazyLock, OnceLock};

use crate::seed::{Stream, Streams, below};

use super::words;

static TEMPLATES: &str = include_str!("../../corpus/coding.templates");
const CHUNKS: usize = 128;
const CHUNK_BYTES: usize = 10_000;
/// Ways for a chunk to begin: each ends the line on which the chunk before was cut.
const OPENINGS: [&str; 4] = [" # noqa", " // end", " -- more", " (cut)"];

static TEXT: [OnceLock<String>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

struct Section {
    snippets: Vec<&'static str>,
    /// Upper end of this section's share of draws.
    until: f64,
}

static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let mut sections = Vec::new();
    let mut until = 0.0;
    for section in TEMPLATES.trim_start_matches("==== ").split("\n==== ") {
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        let weight: f64 = head.rsplit(' ').next().and_then(|weight| weight.parse().ok()).unwrap_or(0.0);
        let snippets: Vec<&str> =
            body.split("\n----\n").map(|snippet| snippet.trim_end_matches('\n')).collect();
        // Weights are shares of the text, so long snippets are drawn less often.
        let mean = snippets.iter().map(|snippet| expected_len(snippet)).sum::<f64>() / snippets.len() as f64;
        until += weight / mean;
        sections.push(Section { snippets, until });
    }
    sections
});

/// Bytes a snippet comes to, roughly.
fn expected_len(snippet: &str) -> f64 {
    snippet
        .lines()
        .map(|line| match repeated(line) {
            Some((least, most, line)) => line.len() as f64 * (least + most) as f64 / 2.0,
            None => line.len() as f64,
        })
        .sum()
}

/// `*3-8 line`
fn repeated(line: &str) -> Option<(u64, u64, &str)> {
    let (range, line) = line.strip_prefix('*')?.split_once(' ')?;
    let (least, most) = range.split_once('-')?;
    Some((least.parse().ok()?, most.parse().ok()?, line))
}

/// Bytes of every chunk.
pub(super) fn chunk_lens() -> impl ExactSizeIterator<Item = usize> {
    std::iter::repeat_n(CHUNK_BYTES, CHUNKS)
}

/// The text of a chunk; generates it if nobody has.
pub(super) fn chunk(index: usize) -> &'static str {
    TEXT[index].get_or_init(|| generate(index))
}

fn generate(index: usize) -> String {
    let mut rng = Streams::new(0, "coding corpus").at(index as u64);
    let mut text = String::with_capacity(CHUNK_BYTES + 2000);
    text.push_str(OPENINGS[below(&mut rng, OPENINGS.len() as u64) as usize]);
    while text.len() < CHUNK_BYTES {
        text.push_str("\n\n");
        snippet(&mut rng, &mut text);
    }
    text.truncate(CHUNK_BYTES);
    // A chunk ends with a visible character.
    while !text.as_bytes()[CHUNK_BYTES - 1].is_ascii_graphic() {
        let at = text.bytes().rposition(|byte| byte.is_ascii_graphic()).unwrap_or(0);
        let blank = text.len() - 1 - at;
        text.truncate(at + 1);
        text.extend(std::iter::repeat_n('.', blank));
    }
    text
}

fn snippet(rng: &mut Stream, text: &mut String) {
    let total = SECTIONS.last().map_or(0.0, |section| section.until);
    let at = crate::seed::unit(rng) * total;
    let Some(section) = SECTIONS.iter().find(|section| at < section.until) else { return };
    let template = section.snippets[below(rng, section.snippets.len() as u64) as usize];
    let mut bound = Bound::default();
    for (index, line) in template.lines().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match repeated(line) {
            Some((least, most, line)) => {
                for repeat in 0..least + below(rng, most - least + 1) {
                    if repeat > 0 {
                        text.push('\n');
                    }
                    fill(line, rng, &mut bound, text);
                }
            }
            None => fill(line, rng, &mut bound, text),
        }
    }
}

/// Words chosen for the numbered slots of a snippet.
#[derive(Default)]
struct Bound {
    words: Vec<(String, &'static str)>,
}

fn fill(line: &str, rng: &mut Stream, bound: &mut Bound, text: &mut String) {
    for (index, part) in line.split('~').enumerate() {
        if index % 2 == 0 {
            let mut pieces = part.split("{br}");
            text.extend(pieces.next());
            for piece in pieces {
                text.push('\n');
                text.push_str(piece);
            }
        } else {
            slot(part, rng, bound, text);
        }
    }
}

fn slot(name: &str, rng: &mut Stream, bound: &mut Bound, text: &mut String) {
    let kind = name.trim_end_matches(|character: char| character.is_ascii_digit());
    let lower = kind.to_ascii_lowercase();
    let Some(list) = words::list(&lower) else {
        words::figure(name, rng, text);
        return;
    };
    let mut pick = || list[below(rng, list.len() as u64) as usize];
    let word = if kind.len() == name.len() {
        pick()
    } else {
        let key = format!("{lower}{}", &name[kind.len()..]);
        if let Some((_, word)) = bound.words.iter().find(|(known, _)| *known == key) {
            word
        } else {
            let word = pick();
            bound.words.push((key, word));
            word
        }
    };
    let mut letters = kind.chars();
    let first_upper = letters.next().is_some_and(char::is_uppercase);
    let all_upper = first_upper && letters.next().is_some_and(char::is_uppercase);
    if all_upper {
        text.extend(word.chars().map(|letter| letter.to_ascii_uppercase()));
    } else if first_upper {
        text.extend(word.chars().take(1).map(|letter| letter.to_ascii_uppercase()));
        text.push_str(&word[1..]);
    } else {
        text.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_join_at_a_space_between_visible_characters() {
        for (index, len) in chunk_lens().enumerate() {
            let text = chunk(index).as_bytes();
            assert_eq!(text.len(), len);
            assert!(text.is_ascii() && text[0] == b' ' && text[1].is_ascii_graphic(), "chunk {index}");
            assert!(text[len - 1].is_ascii_graphic(), "chunk {index}");
        }
    }

    #[test]
    fn the_corpus_is_large_and_hardly_repeats() {
        let tokenizer = crate::Tokenizer::builtin();
        let total: u64 = (0..CHUNKS).map(|index| tokenizer.count(chunk(index))).sum();
        assert!(total >= 250_000, "{total}");
        let mut lines: Vec<&str> = (0..CHUNKS).flat_map(|index| chunk(index).lines()).collect();
        lines.retain(|line| line.len() > 40);
        let all = lines.len();
        lines.sort_unstable();
        lines.dedup();
        assert!(lines.len() * 10 > all * 7, "{} of {all} long lines are distinct", lines.len());
    }

    #[test]
    fn no_slot_is_left_open() {
        for index in 0..CHUNKS {
            assert!(
                !chunk(index).contains(['~', '\u{7f}']) && !chunk(index).contains("{br}"),
                "chunk {index}"
            );
        }
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        // The first words of snippets of one section, to count its share of the text.
        let mut shares = vec![0usize; SECTIONS.len()];
        let mut rng = Streams::new(5, "shares").at(0);
        for _ in 0..20_000 {
            let total = SECTIONS.last().unwrap().until;
            let at = crate::seed::unit(&mut rng) * total;
            let section = SECTIONS.iter().position(|section| at < section.until).unwrap();
            let snippets = &SECTIONS[section].snippets;
            let template = snippets[below(&mut rng, snippets.len() as u64) as usize];
            shares[section] += expected_len(template) as usize;
        }
        let total: usize = shares.iter().sum();
        let percent: Vec<usize> = shares.iter().map(|share| (share * 100 + total / 2) / total).collect();
        for (found, wanted) in percent.iter().zip([28, 11, 20, 11, 9, 3, 10, 8]) {
            assert!(found.abs_diff(wanted) <= 2, "{percent:?}");
        }
    }
}
