//! What a person types: the grammar of references. Pure text, no file, no socket.

mod hub;
mod s3;
mod web;

use std::fmt;
use std::path::PathBuf;

use aiperf_config::redact_reference;

pub use hub::HubReference;
pub(crate) use hub::is_commit;
pub use s3::S3Reference;
pub use web::WebReference;

use crate::error::{Problem, SourceError};

/// The schemes that are read.
pub const SCHEMES: [&str; 4] = ["hf", "s3", "https", "http"];

/// A place that data come from, as its text says.
#[derive(Clone, PartialEq, Eq)]
pub enum Reference {
    /// A dataset repository on a Hugging Face Hub, or a file or folder in it.
    Hub(HubReference),
    /// An S3 object or prefix.
    S3(S3Reference),
    /// A file behind a URL.
    Web(WebReference),
    /// A file or folder of this machine; never what [`Reference::parse`] reads.
    Local(PathBuf),
}

impl Reference {
    /// Whether `text` is a reference rather than a local path: it starts with a scheme of two or more characters
    /// and `://`.
    pub fn is_reference(text: &str) -> bool {
        scheme(text).is_some()
    }

    /// A reference where `text` is one, else the path that it is.
    pub fn of_argument(text: &str) -> Result<Reference, SourceError> {
        if Self::is_reference(text) { Self::parse(text) } else { Ok(Reference::Local(text.into())) }
    }

    /// Reads a reference.
    pub fn parse(text: &str) -> Result<Reference, SourceError> {
        Self::read(text).map_err(|problem| problem.about(redact_reference(text)))
    }

    fn read(text: &str) -> Result<Reference, Problem> {
        let (scheme, rest) = scheme(text)
            .ok_or_else(|| grammar("it is no reference", format!("Start it with one of {}", supported())))?;
        match scheme.to_ascii_lowercase().as_str() {
            "hf" => hub::parse(text, rest).map(Reference::Hub),
            "s3" => s3::parse(text, rest).map(Reference::S3),
            "https" | "http" => web::parse(text).map(Reference::Web),
            other => Err(grammar(
                format!("the scheme {other}:// is not supported"),
                format!("Use one of {}, or a local path", supported()),
            )),
        }
    }

    /// As typed, with credentials hidden: what is printed and recorded.
    pub fn redacted(&self) -> String {
        match self {
            Reference::Hub(hub) => hub.typed.clone(),
            Reference::S3(s3) => s3.typed.clone(),
            Reference::Web(web) => web.url.typed(),
            Reference::Local(path) => redact_reference(&path.display().to_string()),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reference({})", self.redacted())
    }
}

fn supported() -> String {
    SCHEMES.map(|scheme| format!("{scheme}://")).join(", ")
}

fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let mut bytes = scheme.bytes();
    let valid = bytes.next()?.is_ascii_alphabetic()
        && scheme.len() >= 2
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    valid.then_some((scheme, rest))
}

fn grammar(what: impl Into<String>, fix: impl Into<String>) -> Problem {
    Problem::Grammar { what: what.into(), fix: fix.into() }
}

/// Percent-decodes a text, which must be UTF-8 afterwards.
fn percent_decoded(text: &str) -> Option<String> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// A reference to paste: in quotes when a shell would take it apart.
pub(crate) fn for_shell(reference: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/:@%._-+=,".contains(c);
    if reference.chars().all(plain) {
        reference.to_owned()
    } else {
        format!("'{}'", reference.replace('\'', "'\\''"))
    }
}

/// A part of a reference in quotes; one that may hold a credential is not shown.
fn quoted(part: &str) -> String {
    if part.contains(['@', '?', ':', '=', '#']) {
        return "(not shown, for it may hold a credential)".into();
    }
    format!("\"{}\"", part.escape_debug())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        Reference::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_scheme_of_two_characters_makes_a_reference_and_anything_else_is_a_path() {
        for text in ["hf://a/b", "HF://a/b", "s3://b", "a+b.c-d://x", "gs://x"] {
            assert!(Reference::is_reference(text), "{text}");
        }
        for text in ["C:\\x", "c://x", "data/x.jsonl", "://x", "1f://x", "h_f://x", "", "hf:/a", "x y://z"] {
            assert!(!Reference::is_reference(text), "{text}");
        }
    }

    #[test]
    fn other_schemes_are_refused_with_the_list_of_those_that_work() {
        for text in ["gs://b/x", "file:///etc/passwd", "ftp://h/x", "az://c/x"] {
            let error = refused(text);
            assert!(error.starts_with(&format!("Cannot use {text}: ")), "{error}");
            assert!(error.contains("hf://, s3://, https://, http://"), "{error}");
        }
    }

    #[test]
    fn schemes_have_no_case() {
        assert!(matches!(Reference::parse("HF://org/repo"), Ok(Reference::Hub(_))));
        assert!(matches!(Reference::parse("S3://bucket/key"), Ok(Reference::S3(_))));
        assert!(matches!(Reference::parse("HTTPS://host/x"), Ok(Reference::Web(_))));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(hf|s3|https?|.{0,4})://.{0,60}") {
            let _ = Reference::parse(&text);
        }

        #[test]
        fn what_is_printed_is_read_as_the_same_reference(text in
            "hf://(datasets/)?[a-z]{1,5}/[a-z0-9]{1,5}(@[a-z]{1,3}(%2F[a-z]{1,3})?)?(/[a-z@# %]{1,4}){0,3}")
        {
            if let Ok(Reference::Hub(hub)) = Reference::parse(&text) {
                let again = Reference::parse(&hub.canonical()).unwrap();
                let Reference::Hub(again) = again else { panic!("not hf") };
                prop_assert_eq!(
                    (&again.org, &again.repo, &again.revision, &again.path),
                    (&hub.org, &hub.repo, &hub.revision, &hub.path)
                );
            }
        }
    }
}
