//! What a path that is none was perhaps meant to be.

use crate::redact_reference;

/// The reference that a path with a mistyped scheme was meant to be (`hf:/a/b`, `hf//a/b`), credentials hidden.
pub fn meant_reference(path: &str) -> Option<String> {
    ["hf", "s3", "https", "http"].into_iter().find_map(|scheme| {
        let start = path.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
        let after = &path[start.len()..];
        let rest = after.trim_start_matches([':', '/']);
        let is_near = [":/", "//"].iter().any(|near| after.starts_with(near)) && !after.starts_with("://");
        (is_near && !rest.is_empty()).then(|| redact_reference(&format!("{scheme}://{rest}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_with_a_sign_too_few_is_known_and_its_password_is_not_shown() {
        for (typed, meant) in [
            ("hf:/org/x", Some("hf://org/x")),
            ("hf//org/x", Some("hf://org/x")),
            ("HF:///org/x", None),
            ("s3:/bucket/key", Some("s3://bucket/key")),
            ("https//h/x.jsonl", Some("https://h/x.jsonl")),
            ("http:/h/x.jsonl", Some("http://h/x.jsonl")),
            ("hf://org/x", None),
            ("hf/org/x", None),
            ("hf:/", None),
            ("hfé", None),
            ("data/x.jsonl", None),
        ] {
            assert_eq!(meant_reference(typed).as_deref(), meant, "{typed}");
        }
        let shown = meant_reference("https:/me:CANARY@h/x?X-Amz-Signature=CANARY").unwrap();
        assert!(!shown.contains("CANARY"), "{shown}");
    }
}
