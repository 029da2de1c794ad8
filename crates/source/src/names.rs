//! Names that come from listings are strangers: they become file names only after these checks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::{Problem, printable};
use crate::temp::TempFile;

/// Why `path` (`/` between segments) cannot be a relative file name here.
pub(crate) fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("it is empty");
    }
    if path.starts_with('/') {
        return Some("it is an absolute path");
    }
    if path.contains('\\') {
        return Some("it has a backslash");
    }
    if path.chars().any(char::is_control) {
        return Some("it has a control character");
    }
    path.split('/').find_map(segment_fault)
}

fn segment_fault(segment: &str) -> Option<&'static str> {
    const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];
    let bytes = segment.as_bytes();
    if matches!(segment, "" | "." | "..") {
        return Some("it has an empty, '.' or '..' part");
    }
    if bytes.len() > 255 {
        return Some("a part of it is longer than 255 bytes");
    }
    if bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return Some("it has a drive letter");
    }
    let stem = segment.split('.').next().unwrap_or(segment).trim_end().to_ascii_lowercase();
    let numbered = ["com", "lpt"].iter().any(|device| {
        stem.strip_prefix(device).is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']))
    });
    if RESERVED.contains(&stem.as_str()) || numbered {
        return Some("it is the name of a device on Windows");
    }
    None
}

/// Checks the names of the files that are needed, alone and against each other. `folds` tells whether the filesystem that
/// they are for takes names that differ in case alone for one; it is asked where there are such names.
pub(crate) fn check<'a>(
    names: impl IntoIterator<Item = &'a str>,
    folds: impl FnOnce() -> bool,
) -> Result<(), Problem> {
    let refuse = |name: &str, rule| Problem::UnsafeName { name: printable(name), rule };
    let mut seen = BTreeSet::new();
    let names: Vec<&str> = names.into_iter().collect();
    for name in &names {
        if let Some(rule) = fault(name) {
            return Err(refuse(name, rule));
        }
        if !seen.insert(*name) {
            return Err(refuse(name, "another file has the same name"));
        }
    }
    for name in &names {
        let mut parent = *name;
        while let Some((above, _)) = parent.rsplit_once('/') {
            if seen.contains(above) {
                return Err(refuse(name, "a file has the name of its folder"));
            }
            parent = above;
        }
    }
    match alike_but_for_case(&names) {
        Some(name) if folds() => {
            Err(refuse(name, "another one differs from it in case alone, and they are one file in the cache"))
        }
        _ => Ok(()),
    }
}

/// A name that one before it becomes when case is ignored, be it a file or a folder of one: on some machines they are one.
pub fn alike_but_for_case<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    names.iter().copied().find(|name| {
        let ends = name.match_indices('/').map(|(end, _)| end).chain([name.len()]);
        // Folders of one spelling are one folder.
        ends.into_iter().any(|end| {
            let part = &name[..end];
            *seen.entry(part.to_lowercase()).or_insert(part) != part
        })
    })
}

/// Whether the filesystem of a folder, which need not be there yet, takes `a` and `A` for one name.
pub(crate) fn folds_case(folder: &Path) -> bool {
    let is_there = |folder: &&Path| folder.is_dir() || folder.as_os_str().is_empty();
    let Some(folder) = folder.ancestors().find(is_there) else { return false };
    let same = |one: &Path, other: &Path| -> io::Result<bool> {
        let id = |path: &Path| path.symlink_metadata().map(|found| (found.dev(), found.ino()));
        Ok(id(one)? == id(other)?)
    };
    // A name of its own, whose letters are all small; where none can be written, no name will clash either.
    let Ok(probe) = TempFile::create(folder, ".a", ".case") else { return false };
    let Some(name) = probe.path().file_name().and_then(|name| name.to_str()) else { return false };
    same(probe.path(), &folder.join(name.to_uppercase())).unwrap_or(false)
}

/// The last segment of a URL path or key as a file name; `data` when it cannot be one.
pub(crate) fn local(segment: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
    let last = decoded.rsplit('/').next().unwrap_or_default();
    if fault(last).is_none() && !last.starts_with('.') { last.to_owned() } else { "data".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hostile_names_are_refused_one_by_one() {
        let long = "x".repeat(256);
        for name in [
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../x",
            "a/./b",
            ".",
            "a//b",
            "a/",
            "a\\b",
            "a\0b",
            "a\nb",
            "a\u{1b}b",
            "C:x",
            "c:/x",
            "con",
            "a/NUL.txt",
            "COM1",
            "lpt9.jsonl",
            &long,
            "b/\u{85}",
        ] {
            assert!(fault(name).is_some(), "{name:?}");
        }
        for name in ["a", "data/x y@z#1%20.jsonl", "console", "com10", "..x", "x..", "ü/日本.jsonl"] {
            assert_eq!(fault(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_file_cannot_be_the_folder_of_another() {
        let check = |names: &[&'static str]| check(names.iter().copied(), || false);
        assert!(check(&["a", "b/c", "b/d"]).is_ok());
        let error = check(&["a/b", "x", "a"]).unwrap_err().to_string();
        assert!(error.contains("\"a/b\""), "{error}");
        assert!(check(&["a", "a"]).is_err());
        assert!(check(&["a", "\u{1b}[2J"]).unwrap_err().to_string().contains("\\u{1b}[2J"));
    }

    #[test]
    fn names_that_differ_in_case_alone_clash_where_the_filesystem_says_so() {
        for (names, clash) in [
            (&["A.json", "a.json"][..], Some("a.json")),
            (&["d/x", "D/y"], Some("D/y")),
            (&["d/x", "D"], Some("D")),
            (&["\u{dc}.json", "\u{fc}.json"], Some("\u{fc}.json")),
            (&["d/x", "d/y", "D.json"], None),
        ] {
            assert!(check(names.iter().copied(), || false).is_ok(), "{names:?}");
            let checked = check(names.iter().copied(), || {
                assert!(clash.is_some(), "{names:?}: nobody needs to look");
                true
            });
            let refused = checked.err().map(|problem| problem.to_string());
            let named =
                |name: &str| refused.as_ref().is_some_and(|text| text.contains(&format!("\"{name}\"")));
            assert!(clash.map_or(refused.is_none(), named), "{names:?}: {refused:?}");
        }
    }

    #[test]
    fn a_filesystem_tells_itself_whether_case_counts() {
        let folder = tempfile::tempdir().unwrap();
        let told = folds_case(&folder.path().join("not/there/yet"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of the question");
        // The same by what it does with two files.
        std::fs::write(folder.path().join("a"), "1").unwrap();
        std::fs::write(folder.path().join("A"), "2").unwrap();
        assert_eq!(told, std::fs::read(folder.path().join("a")).unwrap() == b"2");
    }

    #[test]
    fn local_names_are_decoded_and_safe() {
        assert_eq!(local("chat%20log.jsonl.gz"), "chat log.jsonl.gz");
        for segment in ["..", "%2e%2e", "", "a%00b", ".hidden", "%2Fetc%2F", "nul"] {
            assert_eq!(local(segment), "data", "{segment}");
        }
        assert_eq!(local("a%2Fb"), "b");
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_below_its_folder(name in "[a-zC:./\\\\ ]{0,12}") {
            if fault(&name).is_none() {
                let path = std::path::Path::new(&name);
                prop_assert!(path.components().all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
    }
}
