//! `s3://<bucket>/<key>[?versionId=<id>]`

use std::net::Ipv4Addr;

use super::{grammar, percent_decoded};
use crate::error::Problem;

/// An S3 object, or a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Reference {
    /// As typed, credentials hidden.
    pub typed: String,
    /// The bucket.
    pub bucket: String,
    /// The key; empty or ending in `/` for a prefix.
    pub key: String,
    /// The version asked for.
    pub version: Option<String>,
}

impl S3Reference {
    /// Whether it names a prefix.
    pub fn is_folder(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }
}

pub(super) fn parse(typed: &str, rest: &str) -> Result<S3Reference, Problem> {
    const FORM: &str = "Write s3://<bucket>/<key>[?versionId=<id>], with a / at the end of a prefix";
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let valid = (3..=63).contains(&bucket.len())
        && bucket
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
        && edge(bucket.chars().next())
        && edge(bucket.chars().last())
        && !bucket.contains("..")
        && bucket.parse::<Ipv4Addr>().is_err();
    if !valid {
        return Err(grammar(
            format!(
                "{} is no bucket name: 3 to 63 lowercase letters, digits, '.' and '-', a letter or digit at both \
                 ends",
                super::quoted(bucket)
            ),
            FORM,
        ));
    }
    if key.len() > 1024 {
        return Err(grammar(format!("the key has {} bytes, at most 1024 are possible", key.len()), FORM));
    }
    let version = query.map(version_id).transpose()?;
    if version.is_some() && (key.is_empty() || key.ends_with('/')) {
        return Err(grammar(
            "versionId names a version of one object, and this is a prefix",
            "Drop ?versionId=, or name one object",
        ));
    }
    Ok(S3Reference {
        typed: aiperf_config::redact_reference(typed),
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        version,
    })
}

fn version_id(query: &str) -> Result<String, Problem> {
    const FIX: &str = "The only parameter is ?versionId=<id>; a key that contains '?' cannot be named";
    let mut found = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != "versionId" {
            return Err(grammar(format!("the parameter \"{}\" is not known", name.escape_debug()), FIX));
        }
        if found.is_some() {
            return Err(grammar("versionId is given twice", FIX));
        }
        match percent_decoded(value) {
            Some(value) if !value.is_empty() => found = Some(value),
            _ => return Err(grammar("versionId is empty or not UTF-8", FIX)),
        }
    }
    found.ok_or_else(|| grammar("the query is empty", FIX))
}

#[cfg(test)]
mod tests {
    use super::super::Reference;
    use super::*;

    fn read(text: &str) -> S3Reference {
        match Reference::parse(text) {
            Ok(Reference::S3(s3)) => s3,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn objects_and_prefixes_are_told_by_the_last_slash() {
        assert!(read("s3://my-traces/chat/2026-08/").is_folder());
        assert!(read("s3://my-traces").is_folder());
        assert!(read("s3://my-traces/").is_folder());
        let object = read("s3://my.traces/a%20b/../x#y.jsonl?versionId=a%2Bb");
        assert!(!object.is_folder());
        assert_eq!(object.key, "a%20b/../x#y.jsonl");
        assert_eq!(object.version.as_deref(), Some("a+b"));
    }

    #[test]
    fn buckets_follow_the_rules_of_s3() {
        for bucket in ["ab", "A-b-c", "-abc", "abc-", "a..b", "192.168.0.1", "a_b_c", &"x".repeat(64), ""] {
            let error = Reference::parse(&format!("s3://{bucket}/k")).unwrap_err().to_string();
            assert!(error.contains("no bucket name"), "{bucket}: {error}");
        }
        let long = Reference::parse(&format!("s3://abc/{}", "k".repeat(1025))).unwrap_err().to_string();
        assert!(long.contains("1025 bytes"), "{long}");
    }

    #[test]
    fn version_id_is_the_only_parameter_and_goes_with_an_object() {
        for (query, part) in [
            ("?versionId=", "empty"),
            ("?versionId=a&versionId=b", "twice"),
            ("?partNumber=1", "\"partNumber\""),
            ("?versionId=a&x=1", "\"x\""),
            ("?", "not known"),
            ("?versionId=%FF", "UTF-8"),
        ] {
            let error = Reference::parse(&format!("s3://abc/k{query}")).unwrap_err().to_string();
            assert!(error.contains(part), "{query}: {error}");
        }
        for prefix in ["s3://abc/p/?versionId=1", "s3://abc?versionId=1"] {
            assert!(Reference::parse(prefix).unwrap_err().to_string().contains("prefix"), "{prefix}");
        }
    }
}
