//! Which files of a repository are a split of a data set.

use crate::card::{self, Subset};

/// The branch that the Hub itself fills with Parquet.
pub const CONVERTED: &str = "refs/convert/parquet";

/// Names that data files end with.
const ENDINGS: [&str; 4] = [".parquet", ".jsonl", ".json", ".ndjson"];

/// The files of a split of a subset among `files`, in the byte order of their names: those that the card names; else those
/// in the folder of the subset or in `data` whose names begin with the split. Empty when neither says.
pub fn split_files(files: &[&str], card: &str, subset: Option<&str>, split: &str) -> Vec<String> {
    let declared = card::subsets(card);
    let chosen = match subset {
        Some(name) => declared.iter().find(|one| one.name == name),
        None => declared
            .iter()
            .find(|one| one.is_default)
            .or_else(|| declared.iter().find(|one| one.name == "default"))
            .or_else(|| declared.first()),
    };
    let mut found = chosen.map(|subset| of_card(files, subset, split)).unwrap_or_default();
    if found.is_empty() {
        let folders = subset.into_iter().chain(["data"]);
        found = folders
            .map(|folder| with_prefix(files, &format!("{folder}/{split}-")))
            .find(|found| !found.is_empty())
            .unwrap_or_default();
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The files of a split of a subset in the branch of converted files; without a subset those of `default`, else those of
/// the first.
pub fn converted_files(files: &[&str], subset: Option<&str>, split: &str) -> Vec<String> {
    let of = |subset: &str| with_prefix(files, &format!("{subset}/{split}/"));
    let mut found = if let Some(subset) = subset {
        of(subset)
    } else {
        let mut subsets: Vec<&str> = files.iter().filter_map(|file| Some(file.split_once('/')?.0)).collect();
        subsets.sort_unstable();
        std::iter::once("default").chain(subsets).map(of).find(|found| !found.is_empty()).unwrap_or_default()
    };
    found.sort_unstable();
    found
}

/// Words in names of files that belong to other splits than `train`.
const OTHER_SPLITS: [&str; 5] = ["test", "valid", "val", "dev", "eval"];

/// The files of a split where nothing says which they are: those called like the split; for `train` else all that are not
/// called like another split. Of a subset only those in its folder.
pub fn named_files(files: &[&str], subset: Option<&str>, split: &str) -> Vec<String> {
    let folder = subset.map(|subset| format!("{subset}/"));
    let here = |file: &str| {
        let path = folder.as_ref().map_or(Some(file), |folder| file.strip_prefix(folder.as_str()));
        path.filter(|path| is_data(path) && !path.split('/').any(|part| part.starts_with(['.', '_'])))
            .map(str::to_ascii_lowercase)
    };
    let words = |path: &str| -> Vec<String> {
        path.split(|letter: char| !letter.is_ascii_alphabetic()).map(str::to_owned).collect()
    };
    let all: Vec<(&str, Vec<String>)> =
        files.iter().filter_map(|file| Some((*file, words(&here(file)?)))).collect();
    let of = |keep: &dyn Fn(&[String]) -> bool| {
        let mut found: Vec<String> =
            all.iter().filter(|(_, words)| keep(words)).map(|(file, _)| (*file).to_owned()).collect();
        found.sort_unstable();
        found
    };
    let found = of(&|words| words.iter().any(|word| word == split));
    if found.is_empty() && split == "train" {
        return of(&|words| !words.iter().any(|word| OTHER_SPLITS.contains(&word.as_str())));
    }
    found
}

/// The subsets and splits that a card or the folders of converted files name, for messages: `main`.
pub fn known_subsets(card: &str) -> Vec<String> {
    card::subsets(card).into_iter().map(|subset| subset.name).collect()
}

fn of_card(files: &[&str], subset: &Subset, split: &str) -> Vec<String> {
    let folder =
        subset.folder.as_deref().map(|folder| folder.trim_matches('/')).filter(|folder| !folder.is_empty());
    let patterns = subset.files.iter().filter(|(of, _)| of.as_deref().unwrap_or("train") == split);
    let mut found = Vec::new();
    for (_, pattern) in patterns {
        let pattern = pattern.trim_start_matches("./");
        let pattern = folder.map_or_else(|| pattern.to_owned(), |folder| format!("{folder}/{pattern}"));
        found.extend(
            files
                .iter()
                .filter(|file| is_data(file) && matches(pattern.as_bytes(), file.as_bytes()))
                .map(|file| (*file).to_owned()),
        );
    }
    if subset.files.is_empty()
        && let Some(folder) = folder
    {
        return with_prefix(files, &format!("{folder}/{split}-"));
    }
    found
}

fn with_prefix(files: &[&str], prefix: &str) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.starts_with(prefix) && is_data(file))
        .map(|file| (*file).to_owned())
        .collect()
}

fn is_data(file: &str) -> bool {
    let name = file.to_ascii_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    /// One byte of a name.
    One,
    /// Bytes of a name.
    Some,
    /// Any bytes.
    All,
    /// Folders, each with its slash.
    Folders,
}

fn pieces(mut pattern: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(pattern.len());
    while let Some(first) = pattern.first() {
        let (piece, length) = match first {
            b'*' if pattern.starts_with(b"**/") => (Piece::Folders, 3),
            b'*' if pattern.starts_with(b"**") => (Piece::All, 2),
            b'*' => (Piece::Some, 1),
            b'?' => (Piece::One, 1),
            byte => (Piece::Byte(*byte), 1),
        };
        pieces.push(piece);
        pattern = &pattern[length..];
    }
    pieces
}

/// Whether a path fits a pattern: `*` and `?` stay within a folder, `**` does not. All ways to read the pattern are
/// followed at once, so that no pattern takes longer than its length for each byte.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let pieces = pieces(pattern);
    // Which pieces may come next, and which folders are being passed.
    let mut next = vec![false; pieces.len() + 1];
    let mut inside = vec![false; pieces.len()];
    next[0] = true;
    let enter = |next: &mut [bool], inside: &mut [bool]| {
        for (at, piece) in pieces.iter().enumerate() {
            if next[at] && matches!(piece, Piece::Some | Piece::All | Piece::Folders) {
                next[at + 1] = true;
                inside[at] |= *piece == Piece::Folders;
            }
        }
    };
    enter(&mut next, &mut inside);
    for byte in path {
        let mut after = vec![false; next.len()];
        for (at, piece) in pieces.iter().enumerate() {
            let fits = match piece {
                Piece::Byte(wanted) => byte == wanted,
                Piece::One => *byte != b'/',
                Piece::Some => {
                    after[at] |= next[at] && *byte != b'/';
                    false
                }
                Piece::All => {
                    after[at] |= next[at];
                    false
                }
                Piece::Folders => {
                    after[at + 1] |= inside[at] && *byte == b'/';
                    false
                }
            };
            after[at + 1] |= next[at] && fits;
        }
        next = after;
        enter(&mut next, &mut inside);
    }
    next[pieces.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[&str] = &[
        "README.md",
        "data/test-00000-of-00001.parquet",
        "data/train-00001-of-00002.parquet",
        "data/train-00000-of-00002.parquet",
        "main/test-00000-of-00001.parquet",
        "main/test-notes.txt",
        "raw/deep/questions.jsonl",
    ];

    #[test]
    fn the_folders_of_a_split_are_known_without_a_card() {
        let train = ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"];
        assert_eq!(split_files(FILES, "", None, "train"), train);
        assert_eq!(split_files(FILES, "", Some("main"), "test"), ["main/test-00000-of-00001.parquet"]);
        assert_eq!(split_files(FILES, "", Some("other"), "test"), ["data/test-00000-of-00001.parquet"]);
        assert!(split_files(FILES, "", None, "validation").is_empty());
    }

    #[test]
    fn the_card_comes_first() {
        let card = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: raw/**/*.jsonl\n\
                    - config_name: other\n  default: true\n  data_files:\n  - split: test\n    path: main/test-*\n---\n";
        assert_eq!(split_files(FILES, card, Some("main"), "test"), ["raw/deep/questions.jsonl"]);
        assert_eq!(split_files(FILES, card, None, "test"), ["main/test-00000-of-00001.parquet"]);
        // A split that the card does not have is looked for in the folders.
        assert_eq!(split_files(FILES, card, None, "train").len(), 2);
        assert_eq!(known_subsets(card), ["main", "other"]);
    }

    #[test]
    fn converted_files_lie_by_subset_and_split() {
        let files =
            ["b/test/0000.parquet", "a/test/0001.parquet", "a/test/0000.parquet", "a/train/0000.parquet"];
        assert_eq!(converted_files(&files, None, "test"), ["a/test/0000.parquet", "a/test/0001.parquet"]);
        assert_eq!(converted_files(&files, Some("b"), "test"), ["b/test/0000.parquet"]);
        assert!(converted_files(&files, Some("c"), "test").is_empty());
    }

    #[test]
    fn files_that_nothing_declares_are_known_by_their_names() {
        let files =
            ["README.md", "b.jsonl", "a.jsonl", "data/my-test.json", ".cache/train.json", "sub/x.parquet"];
        assert_eq!(named_files(&files, None, "train"), ["a.jsonl", "b.jsonl", "sub/x.parquet"]);
        assert_eq!(named_files(&files, None, "test"), ["data/my-test.json"]);
        assert_eq!(named_files(&files, Some("sub"), "train"), ["sub/x.parquet"]);
        assert_eq!(named_files(&["train.jsonl", "extra.jsonl"], None, "train"), ["train.jsonl"]);
        assert!(named_files(&files, Some("none"), "train").is_empty());
    }

    #[test]
    fn patterns_stay_within_a_folder_unless_they_say_so() {
        let fits = |pattern: &str, path: &str| matches(pattern.as_bytes(), path.as_bytes());
        for (pattern, path) in [
            ("data/*", "data/a.json"),
            ("**/*.json", "a.json"),
            ("**/*.json", "x/y/a.json"),
            ("a?c", "abc"),
            ("**", "x/y"),
            ("**/*.json", "x/y/z/a.json"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in
            [("data/*", "data/x/a.json"), ("*.json", "x/a.json"), ("a?c", "a/c"), ("a", "ab"), ("ab", "a")]
        {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
        assert!(!fits(&format!("{}c", "*a".repeat(40)), &"a".repeat(2000)));
        assert!(!fits(&format!("{}c", "**/a*".repeat(40)), &"a/".repeat(1000)));
    }

    /// What a pattern means, tried byte by byte.
    fn slowly(pattern: &[u8], path: &[u8]) -> bool {
        let Some(first) = pattern.first() else { return path.is_empty() };
        if pattern.starts_with(b"**/") {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
            return std::iter::once(0).chain(slashes).any(|at| slowly(&pattern[3..], &path[at..]));
        }
        if *first == b'*' {
            let deep = pattern.starts_with(b"**");
            let rest = &pattern[if deep { 2 } else { 1 }..];
            let most = if deep {
                path.len()
            } else {
                path.iter().position(|byte| *byte == b'/').unwrap_or(path.len())
            };
            return (0..=most).any(|at| slowly(rest, &path[at..]));
        }
        path.first().is_some_and(|byte| {
            (byte == first || (*first == b'?' && *byte != b'/')) && slowly(&pattern[1..], &path[1..])
        })
    }

    proptest::proptest! {
        #[test]
        fn a_pattern_means_the_same_all_at_once(pattern in "[ab*?/]{0,9}", path in "[ab/]{0,9}") {
            let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
            proptest::prop_assert_eq!(matches(pattern, path), slowly(pattern, path));
        }
    }
}
