//! What stands in the texts of data that are to be published: credentials, media and paths of this machine.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::data::{RECORDS, relative};
use super::finding::{Finding, Level};

/// What is longer is no name of a file.
const LONGEST_NAME: usize = 4096;
/// What keys of media begin with.
const MEDIA: [&str; 3] = ["image", "audio", "video"];

/// The places of one kind of finding in a file: lines, or cells.
#[derive(Default)]
struct Places {
    count: u64,
    /// The line or row of the last one, with the columns of it that are counted.
    number: u64,
    columns: Vec<Option<String>>,
}

impl Places {
    /// Whether it is another one than those before: a long line and the list of a cell come in pieces.
    fn add(&mut self, number: u64, column: Option<&str>) -> bool {
        if self.number != number {
            self.number = number;
            self.columns.clear();
        }
        let is_new = !self.columns.iter().any(|known| known.as_deref() == column);
        if is_new {
            self.columns.push(column.map(str::to_owned));
            self.count += 1;
        }
        is_new
    }
}

/// What should not be in published data: the first place of each kind in a file. Which files were not read to their end
/// is said once; whether there is one.
pub(super) fn texts(directory: &Path, paths: &[PathBuf], all: bool, findings: &mut Vec<Finding>) -> bool {
    let mut cut = Vec::new();
    for path in paths {
        let name = relative(directory, path);
        if has_more_texts(path, &name, all, findings) {
            cut.push(name);
        }
    }
    if let Some(first) = cut.first() {
        let others = match cut.len() - 1 {
            0 => String::new(),
            more => format!(", and those of {more} more"),
        };
        let message = format!("only its first 1,000 records are read{others}");
        findings.push(Finding::new(Level::Note, first, message, "Read the rest with --all"));
    }
    !cut.is_empty()
}

/// The same of a file; whether there is more in it than was read.
fn has_more_texts(path: &Path, name: &str, all: bool, findings: &mut Vec<Finding>) -> bool {
    let most = if all { u64::MAX } else { RECORDS };
    // The places of each kind of finding, and where the first is told.
    let mut said: [(Places, usize); 3] = Default::default();
    let has_more = aiperf_dataset::texts(path, most, &mut |number, column, text| {
        let looks: [(bool, Level, &str, &str); 3] = [
            (
                has_secret(text),
                Level::Warning,
                "it holds what looks like a credential",
                "Take it out, and revoke it where it was real",
            ),
            (
                column.map_or_else(|| has_local_path(text), |column| is_local_media(column, text)),
                Level::Warning,
                "it names a file of this machine, which others do not have",
                "Put the media into the records as data: URLs, or name them by https: URLs",
            ),
            (
                names_a_home(text),
                Level::Note,
                "a text names a path in a home folder, which may tell whose machine it is from",
                "Replace the name in it where it should not be public",
            ),
        ];
        for ((places, first), (found, level, message, fix)) in said.iter_mut().zip(looks) {
            if !found || !places.add(number, column) || places.count > 1 {
                continue;
            }
            *first = findings.len();
            let mut finding = match column {
                None => Finding::new(level, name, message, fix),
                Some(column) => {
                    let message = format!("row {number}, column `{column}`: {message}");
                    Finding::new(level, name, message, fix)
                }
            };
            finding.line = column.is_none().then_some(number);
            finding.key = column.map(str::to_owned);
            findings.push(finding);
        }
        true
    });
    for (places, first) in said.into_iter().filter(|(places, _)| places.count > 1) {
        let more = places.count - 1;
        let place = if findings[first].line.is_some() { "line" } else { "cell" };
        let plural = if more == 1 { "" } else { "s" };
        let told = format!(" (and {more} more {place}{plural})");
        findings[first].message.push_str(&told);
    }
    // What cannot be read is told by the reader of records.
    has_more.unwrap_or(false)
}

fn has_secret(text: &str) -> bool {
    aiperf_config::holds_known_key(text)
        || has_named_secret(text)
        || text.match_indices("://").any(|(at, _)| aiperf_config::is_url_with_secret(&text[at + 3..]))
}

/// Whether a text has a value under a name that says that it is a credential: a key of JSON, or `password=` with a word
/// of letters and digits behind it.
fn has_named_secret(text: &str) -> bool {
    const NAMES: [&str; 6] = ["authorization", "key", "password", "passwd", "passphrase", "secret"];
    // What is written so in files of settings, with a value that is no word.
    const SET: [&str; 2] = ["secret_access_key", "secret_key"];
    const LEAST_SET: usize = 16;
    let lower = text.to_ascii_lowercase();
    // Most lines name none.
    if !NAMES.iter().any(|name| lower.contains(name)) {
        return false;
    }
    let is_word = |c: &char| c.is_ascii_alphanumeric() || "_-.!$%*+/".contains(*c);
    let is_mixed = |text: &str, least: usize| {
        let value: String = text.chars().take_while(is_word).collect();
        let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
        value.len() >= least && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    let assigned =
        |name: &str| lower.match_indices(name).any(|(at, _)| is_mixed(&lower[at + name.len()..], 6));
    let is_set = |name: &str| {
        lower.match_indices(name).any(|(at, _)| {
            let rest = lower[at + name.len()..].trim_start_matches([' ', '"', '\'', '\\']);
            let value = rest.strip_prefix(['=', ':']);
            value.is_some_and(|value| is_mixed(value.trim_start_matches([' ', '"', '\'', '\\']), LEAST_SET))
        })
    };
    ["password=", "passwd=", "api_key=", "apikey=", "secret="].iter().any(|name| assigned(name))
        || SET.iter().any(|name| is_set(name))
        || serde_json::from_str::<Value>(text).is_ok_and(|record| names_a_secret(&record))
}

fn names_a_secret(value: &Value) -> bool {
    let is_hidden = |text: &str| text.is_empty() || text.starts_with(['<', '*', '$', '{']);
    match value {
        Value::Object(object) => object.iter().any(|(name, value)| match value {
            Value::String(text) => aiperf_config::names_a_secret(name) && !is_hidden(text),
            value => names_a_secret(value),
        }),
        Value::Array(list) => list.iter().any(names_a_secret),
        _ => false,
    }
}

/// Whether a text, of JSON or not, has a path in somebody's home folder in it; a URL is none.
fn names_a_home(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let names = |folder: &str, has_owner: bool| {
        text.match_indices(folder).any(|(at, _)| {
            let rest = &text[at + folder.len()..];
            let owner = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
            let is_inside = owner > 0 && (!has_owner || rest[owner..].starts_with('/'));
            let before = &text[..at];
            let is_escape = ["\\n", "\\r", "\\t"].iter().any(|escape| before.ends_with(escape));
            is_inside && (is_escape || !before.ends_with(is_name))
        })
    };
    names("/home/", true)
        || names("/Users/", true)
        || names("/root/", false)
        || text.contains(":\\Users\\")
        || text.contains(":\\\\Users\\\\")
}

fn has_local_path(line: &str) -> bool {
    if line.contains("file:/") {
        return true;
    }
    // Most lines name no media at all.
    if !MEDIA.iter().any(|kind| line.contains(kind)) {
        return false;
    }
    let Ok(Value::Object(record)) = serde_json::from_str::<Value>(line) else { return false };
    record.iter().any(|(key, value)| is_media(key) && any_text(value, &is_local))
}

/// The same of a text in a column.
fn is_local_media(column: &str, text: &str) -> bool {
    text.contains("file:/") || (is_media(column) && text.len() < LONGEST_NAME && is_local(text))
}

fn is_media(key: &str) -> bool {
    MEDIA.iter().any(|kind| key.starts_with(kind))
}

fn is_local(text: &str) -> bool {
    !text.is_empty() && !text.contains(':') && text.contains(['/', '.'])
}

/// Whether a text in a value passes.
fn any_text(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(string) => string.len() < LONGEST_NAME && test(string),
        Value::Array(list) => list.iter().any(|value| any_text(value, test)),
        Value::Object(object) => object.values().any(|value| any_text(value, test)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_shape() {
        for line in [
            "{\"text\": \"hf_abcdefghijklmnopqrstuvwxyz\"}",
            "AKIAABCDEFGHIJKLMNOP",
            "https://h/x?X-Amz-Signature=abc",
            "{\"text\": \"https://me:pw@h/x\"}",
            "{\"text\": \"a\", \"extra\": {\"api_key\": \"planted\"}}",
            "{\"extra\": {\"headers\": [{\"Authorization\": \"Basic dXNlcjpwdw==\"}]}}",
            "{\"text\": \"Authorization: Basic dXNlcjpwdw==\"}",
            "{\"text\": \"log in with password=hunter2x please\"}",
            "{\"text\": \"aws_secret_access_key=abcdefghij0123456789ABCDEFGHIJ/+23456789\"}",
            "{\"text\": \"[default]\\naws_secret_access_key = abcdefghij0123456789ABCDEFGHIJ/+23456789\"}",
            "{\"text\": \"AWS_SECRET_ACCESS_KEY: \\\"abcdefghij0123456789ABCDEFGHIJ/+23456789\\\"\"}",
        ] {
            assert!(has_secret(line), "{line}");
        }
        for line in
            ["half_abcdefghijklmnopqrstuvwxyz", "hf_short", "https://h/x?page=2", "https://h/x#part", "AKIA"]
                .into_iter()
                .chain([
                    "{\"text\": \"password=password, api_key=os.environ[1], secret=None\"}",
                    "{\"tool\": {\"password\": {\"type\": \"string\"}}, \"api_key\": \"<redacted>\", \"secret\": \"\"}",
                    "{\"keys\": \"blue\", \"text\": \"basic training\"}",
                    "secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY'], secret_key: string, aws_secret_access_key=",
                ])
        {
            assert!(!has_secret(line), "{line}");
        }
    }

    #[test]
    fn a_line_in_pieces_and_a_cell_with_many_texts_are_one_place() {
        let mut places = Places::default();
        let added = [
            (1, None),
            (1, None),
            (2, None),
            (7, Some("text")),
            (7, Some("tags")),
            (7, Some("text")),
            (8, Some("text")),
        ]
        .map(|(number, column)| places.add(number, column));
        assert_eq!(added, [true, false, true, true, true, false, true]);
        assert_eq!(places.count, 5);
    }

    #[test]
    fn local_media_are_told_from_those_that_travel() {
        assert!(has_local_path("{\"image\": \"pictures/a.png\"}"));
        assert!(has_local_path("{\"text\": \"see file:///home/me/x\"}"));
        assert!(!has_local_path("{\"image\": \"data:image/png;base64,AA/B.\", \"text\": \"a/b.c\"}"));
        assert!(!has_local_path("{\"images\": [\"https://h/a.png\"]}"));
    }

    #[test]
    fn paths_in_home_folders_are_told_from_other_paths() {
        for text in [
            "{\"text\": \"open /home/me/x.py\"}",
            "(/Users/me.too/x)",
            "{\"text\": \"a\\n/home/me/x\"}",
            "\"/root/.bashrc\"",
            "see C:\\Users\\me",
            "{\"text\": \"C:\\\\Users\\\\me\"}",
        ] {
            assert!(names_a_home(text), "{text}");
        }
        for text in [
            "https://h/home/me/x",
            "/home/",
            "/home/me",
            "a/root/b",
            "the /root/ of it",
            "/usr/lib/x",
            "C:\\Windows",
            "Users",
        ] {
            assert!(!names_a_home(text), "{text}");
        }
    }
}
