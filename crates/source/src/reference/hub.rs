//! `hf://[datasets/]<org>/<repo>[@<revision>][/<path>]`

use super::{grammar, percent_decoded};
use crate::error::Problem;

/// A dataset repository on the Hub, or a file or folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubReference {
    /// As typed, credentials hidden.
    pub typed: String,
    /// The owner.
    pub org: String,
    /// The repository.
    pub repo: String,
    /// Branch, tag, special ref or commit, decoded; `None` is `main`.
    pub revision: Option<String>,
    /// File or folder inside; `None` is the root.
    pub path: Option<String>,
    /// The path was written with a `/` at its end: it can only be a folder.
    pub folder: bool,
}

impl HubReference {
    /// The revision to ask for.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    /// The whole commit id, when the revision is one.
    pub fn commit(&self) -> Option<&str> {
        self.revision.as_deref().filter(|revision| is_commit(revision))
    }

    /// The reference in the form that is printed: with `datasets/`, the revision encoded.
    pub fn canonical(&self) -> String {
        self.with(self.revision.as_deref(), self.path.as_deref())
    }

    /// The same repository at another revision or path.
    pub fn with(&self, revision: Option<&str>, path: Option<&str>) -> String {
        let mut text = format!("hf://datasets/{}/{}", self.org, self.repo);
        if let Some(revision) = revision {
            text.push('@');
            text.push_str(&encoded_revision(revision));
        }
        if let Some(path) = path {
            text.push('/');
            text.push_str(path);
        }
        text
    }
}

/// Whether `text` is a whole commit id.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn encoded_revision(revision: &str) -> String {
    let mut out = String::with_capacity(revision.len());
    for c in revision.chars() {
        match c {
            '/' => out.push_str("%2F"),
            '%' => out.push_str("%25"),
            _ => out.push(c),
        }
    }
    out
}

pub(super) fn parse(typed: &str, rest: &str) -> Result<HubReference, Problem> {
    const FORM: &str = "Write hf://<org>/<repo>[@<revision>][/<path>]";
    let rest = match rest.split_once('/') {
        Some(("datasets", rest)) => rest,
        Some((other @ ("models" | "spaces" | "kernels" | "buckets"), _)) => {
            return Err(grammar(
                format!("{other}/ names no dataset"),
                "Only dataset repositories can be read: hf://datasets/<org>/<repo>",
            ));
        }
        Some(("dataset", rest)) => {
            return Err(grammar(
                "the prefix is datasets/, not dataset/",
                format!("Write hf://datasets/{rest}"),
            ));
        }
        _ => rest,
    };
    let Some((org, rest)) = rest.split_once('/') else {
        return Err(grammar("the owner is missing: a dataset is named <org>/<repo>", FORM));
    };
    let repo_end = rest.find(['/', '@']).unwrap_or(rest.len());
    let (repo, rest) = rest.split_at(repo_end);
    for (text, what) in [(org, "owner"), (repo, "repository"), (rest, "revision or path")] {
        refuse_key(text, what)?;
    }
    check_name(org, "org", FORM)?;
    check_name(repo, "repo", FORM)?;
    if repo.strip_suffix(".git").is_some() {
        return Err(grammar(format!("the repo name \"{repo}\" ends in .git"), "Drop the .git"));
    }
    let (revision, path) = match rest.strip_prefix('@') {
        Some(rest) => {
            let (revision, path) = split_revision(rest);
            (Some(decode_revision(revision)?), path)
        }
        None => (None, rest.strip_prefix('/')),
    };
    let folder = path.is_some_and(|path| path.ends_with('/'));
    let path = path.map(|path| path.strip_suffix('/').unwrap_or(path)).filter(|path| !path.is_empty());
    if let Some(path) = path {
        check_path(path)?;
    }
    Ok(HubReference {
        typed: aiperf_config::redact_reference(typed),
        org: org.to_owned(),
        repo: repo.to_owned(),
        revision,
        path: path.map(str::to_owned),
        folder,
    })
}

/// A key in the place of a name would be sent to the server, and written down as a part of the reference.
fn refuse_key(text: &str, what: &str) -> Result<(), Problem> {
    if !aiperf_config::holds_known_key(text) {
        return Ok(());
    }
    Err(grammar(
        format!("the {what} looks like an access key"),
        "Name the dataset by <org>/<repo>, and put the token into HF_TOKEN",
    ))
}

fn check_name(name: &str, what: &str, form: &str) -> Result<(), Problem> {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let valid = (1..=96).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && edge(name.chars().next())
        && edge(name.chars().last())
        && !name.contains("--")
        && !name.contains("..");
    if valid {
        return Ok(());
    }
    Err(grammar(
        format!(
            "the {what} name {} is not one the Hub allows: 1 to 96 letters, digits, '.', '_' and '-', no '--' \
             or '..', a letter, digit or '_' at both ends",
            super::quoted(name)
        ),
        form,
    ))
}

/// The revision and the path after an `@`. The special refs may be written with plain slashes.
fn split_revision(rest: &str) -> (&str, Option<&str>) {
    for special in ["refs/convert/", "refs/pr/"] {
        if let Some(after) = rest.strip_prefix(special) {
            let end = special.len() + after.find('/').unwrap_or(after.len());
            return (&rest[..end], rest[end..].strip_prefix('/'));
        }
    }
    match rest.split_once('/') {
        Some((revision, path)) => (revision, Some(path)),
        None => (rest, None),
    }
}

fn decode_revision(text: &str) -> Result<String, Problem> {
    const FIX: &str = "Give a branch, a tag or a commit after the @, with %2F for a slash";
    let decoded = percent_decoded(text)
        .ok_or_else(|| grammar(format!("the revision {} is not UTF-8", super::quoted(text)), FIX))?;
    let bad_segment = decoded.split('/').any(|segment| matches!(segment, "" | "." | ".."));
    let bad_character = decoded
        .chars()
        .find(|c| c.is_control() || matches!(c, '\\' | ':' | '?' | '*' | '[' | '^' | '~' | ' '));
    if decoded.is_empty() {
        return Err(grammar("the revision after the @ is empty", FIX));
    }
    if let Some(c) = bad_character {
        return Err(grammar(
            format!("the revision {} has the character {c:?}", super::quoted(&decoded)),
            FIX,
        ));
    }
    if bad_segment || decoded.to_ascii_lowercase().ends_with(".lock") {
        return Err(grammar(
            format!(
                "the revision {} has an empty, '.' or '..' part, or ends in '.lock'",
                super::quoted(&decoded)
            ),
            FIX,
        ));
    }
    Ok(decoded)
}

fn check_path(path: &str) -> Result<(), Problem> {
    let shown = aiperf_config::redact_reference(path);
    let shown = shown.escape_debug();
    if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(grammar(
            format!("the path \"{shown}\" has an empty, '.' or '..' part"),
            "Write the path as the repository lists it",
        ));
    }
    if path.chars().any(char::is_control) {
        return Err(grammar(
            format!("the path \"{shown}\" has a control character"),
            "Write the path as the repository lists it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Reference;
    use super::*;

    fn read(text: &str) -> HubReference {
        match Reference::parse(text) {
            Ok(Reference::Hub(hub)) => hub,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn refused(text: &str) -> String {
        Reference::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_repo_type_is_optional_on_input_and_always_printed() {
        for text in ["hf://org/repo", "hf://datasets/org/repo", "hf://org/repo/"] {
            assert_eq!(read(text).canonical(), "hf://datasets/org/repo", "{text}");
        }
        let whole = read("hf://datasets/o/r@3e1f/data/chat.jsonl.gz");
        assert_eq!(whole.revision.as_deref(), Some("3e1f"));
        assert_eq!(whole.path.as_deref(), Some("data/chat.jsonl.gz"));
        assert_eq!(whole.commit(), None);
        assert_eq!(read(&format!("hf://o/r@{}", "0a".repeat(20))).commit(), Some("0a".repeat(20).as_str()));
        assert_eq!(read(&format!("hf://o/r@{}", "0A".repeat(20))).commit(), None);
        assert_eq!(read("hf://o/r").revision(), "main");
    }

    #[test]
    fn an_at_only_after_the_repo_starts_a_revision() {
        let at = read("hf://o/r/data@v1/x@y.jsonl");
        assert_eq!((at.revision, at.path.as_deref()), (None, Some("data@v1/x@y.jsonl")));
    }

    #[test]
    fn revisions_are_decoded_and_special_refs_may_be_plain() {
        for text in [
            "hf://datasets/o/r@refs%2Fconvert%2Fparquet/cfg/train",
            "hf://datasets/o/r@refs/convert/parquet/cfg/train",
        ] {
            let reference = read(text);
            assert_eq!(reference.revision.as_deref(), Some("refs/convert/parquet"));
            assert_eq!(reference.path.as_deref(), Some("cfg/train"));
            assert_eq!(reference.canonical(), "hf://datasets/o/r@refs%2Fconvert%2Fparquet/cfg/train");
        }
        assert_eq!(read("hf://o/r@refs/pr/7").revision.as_deref(), Some("refs/pr/7"));
        assert_eq!(read("hf://o/r@feature%2Fx/y").revision.as_deref(), Some("feature/x"));
    }

    #[test]
    fn paths_are_literal_and_a_last_slash_means_folder() {
        let reference = read("hf://o/r/a%20b/c d#e?f/");
        assert_eq!(reference.path.as_deref(), Some("a%20b/c d#e?f"));
        assert!(reference.folder);
        assert!(!read("hf://o/r/x").folder);
        for path in ["a//b", "../x", "a/./b", "a/..", "/x", "a//"] {
            assert!(refused(&format!("hf://o/r/{path}")).contains("empty, '.' or '..'"), "{path}");
        }
    }

    #[test]
    fn other_repo_types_are_refused_with_a_hint() {
        for kind in ["models", "spaces", "kernels", "buckets"] {
            assert!(refused(&format!("hf://{kind}/o/r")).contains("hf://datasets/<org>/<repo>"));
        }
        assert!(refused("hf://dataset/o/r").contains("Write hf://datasets/o/r."));
    }

    #[test]
    fn a_key_in_the_place_of_a_name_is_refused_and_not_repeated() {
        let key = format!("hf_{}", "canary".repeat(5));
        for text in ["hf://K/y", "hf://me/K", "hf://me/chat@K", "hf://me/chat@v1/K/x.jsonl", "hf://me/chat/K"]
        {
            let told = refused(&text.replace('K', &key));
            assert!(told.contains("looks like an access key. Name the dataset"), "{told}");
            assert!(!told.contains("canary"), "{told}");
        }
        assert_eq!(read("hf://hf-internal-testing/hf_transfer_of_all_the_files").org, "hf-internal-testing");
    }

    #[test]
    fn names_follow_the_rules_of_the_hub() {
        assert!(refused("hf://name").contains("<org>/<repo>"));
        let long = "x".repeat(97);
        for text in [
            "hf://-o/r",
            "hf://o-/r",
            "hf://o/r.",
            "hf://o--p/r",
            "hf://o/r..s",
            "hf://o/",
            "hf:///r",
            "hf://o/a b",
            "hf://ö/r",
        ]
        .into_iter()
        .map(str::to_owned)
        .chain([format!("hf://{long}/r"), format!("hf://o/{long}")])
        {
            assert!(refused(&text).contains("name"), "{text}");
        }
        assert!(refused("hf://o/r.git").contains(".git"));
        assert_eq!(read("hf://_o_/r_1.2-x").repo, "r_1.2-x");
    }

    #[test]
    fn revisions_follow_the_rules_of_git() {
        for revision in [
            "",
            "%2F",
            "a%2F",
            "%2Fa",
            "a%2F%2Fb",
            "..",
            "a%2F..%2Fb",
            ".",
            "x.lock",
            "a b",
            "a:b",
            "a?b",
            "a*",
            "a[",
            "a^",
            "a~1",
            "a%5Cb",
            "a%00b",
            "a%0Ab",
            "%FF",
        ] {
            assert!(refused(&format!("hf://o/r@{revision}")).contains("revision"), "{revision}");
        }
    }
}
