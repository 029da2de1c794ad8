use proptest::prelude::*;

use super::*;

fn manifest(text: &str) -> Result<Declaration, String> {
    read(text.as_bytes(), Role::Manifest, "aiperf.json", "0.14.0").map_err(|problem| problem.to_string())
}

fn sidecar(text: &str) -> Result<Declaration, String> {
    read(text.as_bytes(), Role::Sidecar, "x.jsonl.aiperf.json", "0.14.0")
        .map_err(|problem| problem.to_string())
}

/// A manifest with one more member.
fn with(member: &str) -> Result<Declaration, String> {
    manifest(&format!("{{\"path\": \"a.jsonl\", \"format\": \"single_turn\",\n {member}}}"))
}

#[test]
fn every_key_is_read() {
    let text = format!(
        "\u{feff}{{\"path\": \"data/x.jsonl.gz\", \"format\": \"mooncake-trace\", \"block_size\": 16, \"sha256\": \"{}\",
          \"requires\": {{\"aiperf\": \">=0.14,<1.0\", \"endpoint_types\": [\"chat\", \"new\"], \"max_context_tokens\": 9}}}}",
        "AB".repeat(32)
    );
    let read = manifest(&text).unwrap();
    assert_eq!(read.path.unwrap().path, "data/x.jsonl.gz");
    assert_eq!(read.format.as_deref(), Some("mooncake-trace"));
    assert_eq!(read.block_size, Some(16));
    assert_eq!(read.data_sha256, Some("ab".repeat(32)));
    assert_eq!(read.endpoint_types.unwrap(), ["chat", "new"]);
    assert_eq!(read.max_context_tokens, Some(9));
    let empty = sidecar("{}").unwrap();
    assert_eq!((empty.format, empty.path), (None, None));
}

#[test]
fn a_manifest_for_a_newer_version_says_so_before_anything_else() {
    let error = manifest("{\"future\": 1, \"requires\": {\"aiperf\": \">=9\", \"x\": 1}}").unwrap_err();
    assert_eq!(error, "aiperf.json needs AIPerf >=9, and this is 0.14.0");
    assert!(with("\"requires\": {\"aiperf\": \"~=0.14\"}").is_ok());
    assert!(with("\"requires\": {\"aiperf\": \">0.14\"}").is_err());
    let bad = with("\"requires\": {\"aiperf\": \"new!\"}").unwrap_err();
    assert!(bad.contains("is not valid") && bad.contains("requires.aiperf"), "{bad}");
}

#[test]
fn pre_release_parts_of_this_version_do_not_count() {
    let text = b"{\"requires\": {\"aiperf\": \">=0.14\"}}";
    for own in ["0.14.0-dev.3", "0.14.0-rc.1+abc", "0.14.0+local"] {
        assert!(read(text, Role::Sidecar, "s", own).is_ok(), "{own}");
    }
}

#[test]
fn unknown_and_duplicate_keys_are_named_with_their_line_and_the_known_ones() {
    let unknown = with("\"bloc_size\": 1").unwrap_err();
    assert!(unknown.contains("\"bloc_size\" (line 2) is unknown"), "{unknown}");
    assert!(with("\"format\": \"x\"").unwrap_err().contains("\"format\" (line 2) is there twice"));
    assert!(with("\"requires\": {\"gpu\": 1}").unwrap_err().contains("\"requires.gpu\""));
    let problem = read(b"{\"x\": 1}", Role::Sidecar, "s", "1").unwrap_err();
    assert!(problem.fix().contains("format, block_size, sha256, requires"), "{}", problem.fix());
    assert!(sidecar("{\"path\": \"x\"}").unwrap_err().contains("not allowed in a sidecar"));
}

#[test]
fn values_have_their_types_and_ranges() {
    for member in [
        "\"block_size\": 0",
        "\"block_size\": -1",
        "\"block_size\": 1.0",
        "\"block_size\": 1e2",
        "\"block_size\": true",
        "\"block_size\": \"16\"",
        "\"block_size\": 99999999999999999999999",
        "\"block_size\": null",
        "\"sha256\": 1",
        "\"requires\": []",
        "\"requires\": {\"aiperf\": 1}",
        "\"requires\": {\"endpoint_types\": []}",
        "\"requires\": {\"endpoint_types\": [1]}",
        "\"requires\": {\"endpoint_types\": \"chat\"}",
        "\"requires\": {\"max_context_tokens\": 0}",
    ] {
        let error = with(member).unwrap_err();
        assert!(error.contains("aiperf.json is not valid: the value of"), "{member}: {error}");
        assert!(error.contains("(line 2)"), "{member}: {error}");
    }
    let digits = |n: usize| with(&format!("\"sha256\": \"{}\"", "a".repeat(n)));
    assert!(digits(64).is_ok() && digits(63).is_err() && digits(65).is_err());
    for text in ["{\"format\": \"x\"}", "{\"path\": \"x\"}", "{}"] {
        assert!(manifest(text).unwrap_err().contains("is missing"), "{text}");
    }
}

#[test]
fn documents_that_are_no_manifest_are_refused() {
    for (text, part) in [
        ("", "empty"),
        ("[]", "an array, no object"),
        ("null", "null, no object"),
        ("<html>", "HTML"),
        ("{\"path\": }", "line 1"),
        ("{} {}", "trailing"),
        (&"[".repeat(100_000), "32 levels"),
        (&format!("{{\"x\": {}1{}}}", "[".repeat(40), "]".repeat(40)), "32 levels"),
    ] {
        let error = manifest(text).unwrap_err();
        assert!(error.contains("aiperf.json is not valid") && error.contains(part), "{error}");
    }
    assert!(manifest(&" ".repeat(2 << 20)).unwrap_err().contains("1 MiB"));
    assert!(
        read(b"{\"path\": \"\xff\"}", Role::Manifest, "m", "1").unwrap_err().to_string().contains("UTF-8")
    );
}

#[test]
fn hostile_paths_are_refused_with_the_manifest_and_the_value() {
    let long = "x/".repeat(500_000);
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "..\\\\x",
        "C:\\\\x",
        "C:x",
        "//host/x",
        "file:///x",
        "file:x",
        "https://h/x",
        "a\\u0000b",
        "a//b",
        "./x",
        "",
        "/",
        "a/./b",
        "a\\nb",
        "aiperf.json",
        "d/aiperf.json",
        "x.jsonl.aiperf.json",
        &long,
    ] {
        let error = manifest(&format!("{{\"path\": \"{path}\", \"format\": \"single_turn\"}}")).unwrap_err();
        assert!(error.contains("aiperf.json is not valid: the path \""), "{path}: {error}");
        assert!(error.len() < 400, "{error}");
    }
    let path =
        |text: &str| manifest(&format!("{{\"path\": \"{text}\", \"format\": \"x\"}}")).unwrap().path.unwrap();
    assert_eq!(path("%2e%2e/x").path, "%2e%2e/x");
    assert_eq!((path(".").path.as_str(), path(".").folder), ("", true));
    assert_eq!((path("d/").path.as_str(), path("d/").folder), ("d", true));
    assert!(!path("d").folder);
}

proptest! {
    #[test]
    fn no_document_panics(text in "\\PC{0,80}", json in "[\\[\\]{}\":,a-z0-9 .-]{0,60}") {
        let _ = manifest(&text);
        let _ = sidecar(&json);
        let _ = with(&json);
    }
}
