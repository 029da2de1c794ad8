//! The table of the documentation is what the errors say.

use aiperf_source::Problem;

/// One error of each kind, as they come about.
fn problems() -> Vec<Problem> {
    let text = || "x".to_owned();
    let path = || std::path::PathBuf::from("/x");
    vec![
        Problem::NotFound {
            what: text(),
            fix: "Check the spelling; a private repository needs a token".into(),
        },
        Problem::RevisionNotFound(text()),
        Problem::Denied { what: text(), fix: "Set HF_TOKEN to a valid token".into() },
        Problem::Gated { what: text(), token: false },
        Problem::Gated { what: text(), token: true },
        Problem::Expired { expired: None },
        Problem::Connect { host: text(), cause: text(), named_by: None },
        Problem::Connect { host: text(), cause: text(), named_by: Some("X") },
        Problem::Untrusted {
            host: text(),
            cause: "invalid peer certificate: UnknownIssuer".into(),
            fix: "Name its file in SSL_CERT_FILE".into(),
        },
        Problem::NotHttp { host: text(), cause: text(), is_https: false },
        Problem::NotHttp { host: text(), cause: text(), is_https: true },
        Problem::Answered { status: 503, what: text(), attempts: 3 },
        Problem::RateLimited { status: 429, what: text(), seconds: 99 },
        Problem::NotAHub { endpoint: text(), what: text() },
        Problem::Redirect { what: text() },
        Problem::EndlessRedirect(text()),
        Problem::NoManifest { folder: text(), also: String::new(), fix: "Point at one file of it".into() },
        Problem::BadManifest { manifest: "aiperf.json".into(), what: text(), rule: text() },
        Problem::NeedsVersion { manifest: text(), spec: text(), own: text() },
        Problem::NeedsEndpoint { manifest: text(), supported: text(), given: text() },
        Problem::FormatConflict { manifest: text(), declared: text(), flag: text() },
        Problem::UnknownFormat(text()),
        Problem::Empty(text()),
        Problem::NeedsStop,
        Problem::UnsafeName { name: text(), rule: "x" },
        Problem::TooMuch("it has 20000 data files, at most 10000 data files are read".into()),
        Problem::Changed(text()),
        Problem::Digest { kind: "sha256", file: text(), found: "x".into(), promised: "x".into(), by: text() },
        Problem::Digest {
            kind: "crc32c",
            file: text(),
            found: "x".into(),
            promised: "x".into(),
            by: "its source".into(),
        },
        Problem::CutShort { file: text(), what: text() },
        Problem::NotTheFile { host: text(), sent: text(), size: 1, file: text() },
        Problem::Offline(text()),
        Problem::Damaged(path()),
        Problem::Locked(path()),
        Problem::DiskFull { directory: path(), what: text(), variable: "X" },
        Problem::CannotWrite { directory: path(), cause: text(), variable: "X" },
        Problem::CannotRead { path: path(), cause: text() },
        Problem::CannotEnter { directory: path(), cause: text(), variable: "X" },
        Problem::Interrupted,
    ]
}

#[test]
fn every_error_is_in_the_troubleshooting_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/remote-data.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (_, table) = document.split_once("## Troubleshooting").unwrap();
    let rows: Vec<(String, String)> = table
        .lines()
        .filter_map(|line| {
            let (what, fix) = line.strip_prefix("| `")?.split_once("` | `")?;
            Some((what.to_owned(), fix.strip_suffix("` |")?.to_owned()))
        })
        .collect();
    assert!(rows.len() > 25, "{rows:?}");
    for problem in problems() {
        let (what, fix) = (problem.to_string(), problem.fix());
        let found = rows.iter().any(|row| what.contains(&row.0) && fix.contains(&row.1));
        assert!(found, "no row for: {what}. {fix}.");
        assert!(!what.ends_with('.') && !fix.ends_with('.'), "{what}. {fix}.");
        assert!(!what.contains('\n') && !fix.contains('\n'));
    }
}
