//! What can go wrong, in one sentence each, with the way out.

mod fix;

use std::fmt;
use std::path::PathBuf;

use crate::http::MOST_HOPS;

/// A reference that cannot be used, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The reference as typed, credentials hidden.
    pub reference: String,
    /// What went wrong.
    pub problem: Problem,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!("Cannot use {}: {}. {}.", self.reference, self.problem, self.problem.fix());
        f.write_str(&printable(&aiperf_config::redact_keys(&line)))
    }
}

impl std::error::Error for SourceError {}

/// Who can put it right; decides how the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The user or the publisher: reference, credentials, manifest, format, splits, digest, stop condition.
    Input,
    /// Network, server, lock, disk, or a source that changed.
    World,
}

/// What went wrong. `Display` is the fault, [`Problem::fix`] the next step; neither ends in a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is no reference of its scheme.
    #[error("{what}")]
    Grammar {
        /// The rule that is broken.
        what: String,
        /// The next step.
        fix: String,
    },
    /// The repository, path, bucket, key or URL is not there.
    #[error("{what} was not found")]
    NotFound {
        /// What was looked for.
        what: String,
        /// The next step.
        fix: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("revision \"{0}\" was not found")]
    RevisionNotFound(String),
    /// The credentials were refused, or there were none.
    #[error("access was denied: {what}")]
    Denied {
        /// What refused, and with which kind of credentials.
        what: String,
        /// What to grant.
        fix: String,
    },
    /// The repository has terms that must be accepted.
    #[error("{what} is gated")]
    Gated {
        /// The repository.
        what: String,
        /// Whether a token was sent.
        token: bool,
    },
    /// A presigned URL is too old.
    #[error("access was denied: the presigned URL has expired{}", at(expired.as_deref()))]
    Expired {
        /// When, in UTC.
        expired: Option<String>,
    },
    /// No connection, in three attempts.
    #[error("could not connect to {host}: {cause}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system said.
        cause: String,
        /// The setting that names the host in the place of the usual one.
        named_by: Option<&'static str>,
    },
    /// The server did not prove who it is.
    #[error("could not connect to {host}: {cause}")]
    Untrusted {
        /// Host and port.
        host: String,
        /// What is wrong with its certificate.
        cause: String,
        /// The next step.
        fix: String,
    },
    /// Something answers there, and speaks another protocol.
    #[error("{host} answered something that is not HTTP ({cause})")]
    NotHttp {
        /// Host and port.
        host: String,
        /// What could not be read.
        cause: String,
        /// Whether it was asked by https, and may speak HTTP without TLS.
        is_https: bool,
    },
    /// An answer that means "not now", three times.
    #[error("the server answered {status} to {what}{}", after(*attempts))]
    Answered {
        /// The HTTP status.
        status: u16,
        /// What was asked for.
        what: String,
        /// Attempts made.
        attempts: u32,
    },
    /// The server asks for a longer wait than this program makes.
    #[error("the server answered {status} to {what}: it is rate limited for {seconds} s")]
    RateLimited {
        /// The HTTP status.
        status: u16,
        /// What was asked for.
        what: String,
        /// Seconds until it may be asked again.
        seconds: u64,
    },
    /// An answer that nothing above explains.
    #[error("the server answered {what}")]
    Unexpected {
        /// The answer.
        what: String,
        /// The next step.
        fix: String,
    },
    /// Not the API that was expected at this address.
    #[error("{endpoint} does not look like a Hugging Face Hub: {what}")]
    NotAHub {
        /// The address.
        endpoint: String,
        /// What it answered.
        what: String,
    },
    /// A redirect that is not followed.
    #[error("the redirect {what}")]
    Redirect {
        /// From where to where, and why not.
        what: String,
    },
    /// Redirects without an end.
    #[error("the redirect of {0} is one of more than {MOST_HOPS}")]
    EndlessRedirect(String),
    /// A folder without a manifest, and without a layout that needs none.
    #[error("{folder} has no aiperf.json{also}")]
    NoManifest {
        /// The folder.
        folder: String,
        /// What else was looked for.
        also: String,
        /// The next step.
        fix: String,
    },
    /// A manifest or sidecar breaks a rule.
    #[error("{manifest} is not valid: {what}")]
    BadManifest {
        /// Its path.
        manifest: String,
        /// Where, and what.
        what: String,
        /// The rule.
        rule: String,
    },
    /// The manifest asks for another version of this program.
    #[error("{manifest} needs AIPerf {spec}, and this is {own}")]
    NeedsVersion {
        /// Its path.
        manifest: String,
        /// The specifier.
        spec: String,
        /// The version of this program.
        own: String,
    },
    /// The manifest is for other endpoints.
    #[error("{manifest} supports endpoint types {supported}, and the run uses {given}")]
    NeedsEndpoint {
        /// Its path.
        manifest: String,
        /// Those that it names.
        supported: String,
        /// That of the run.
        given: String,
    },
    /// The flag and the manifest disagree.
    #[error("{manifest} declares format {declared} but --custom-dataset-type is {flag}")]
    FormatConflict {
        /// Its path.
        manifest: String,
        /// The manifest's format.
        declared: String,
        /// The flag's.
        flag: String,
    },
    /// No loader has this name.
    #[error("unknown format \"{0}\"")]
    UnknownFormat(String),
    /// The format and the kind of data do not go together.
    #[error("{what}")]
    Unreadable {
        /// Which, and why.
        what: String,
        /// The next step.
        fix: String,
    },
    /// Several splits or data sets, and none is the obvious one; or a shard is missing.
    #[error("{what}")]
    Layout {
        /// What is there.
        what: String,
        /// Ready references.
        fix: String,
    },
    /// Nothing to read.
    #[error("{0} is empty")]
    Empty(String),
    /// A trace that cannot be counted before it is downloaded.
    #[error("a remote dag_jsonl cannot be counted before it is downloaded")]
    NeedsStop,
    /// A name in a listing that cannot be a file name here.
    #[error("the name \"{name}\" cannot be used: {rule}")]
    UnsafeName {
        /// The name, control characters escaped.
        name: String,
        /// The rule.
        rule: &'static str,
    },
    /// More than is listed or fetched.
    #[error("{0}")]
    TooMuch(String),
    /// The source is no longer what was pinned.
    #[error("{0} changed after AIPerf pinned its version")]
    Changed(String),
    /// The bytes are not those that were promised.
    #[error("{kind} does not match: {file} has {found}, and {by} says {promised}")]
    Digest {
        /// Which digest.
        kind: &'static str,
        /// The file.
        file: String,
        /// The first 12 digits of the digest found.
        found: Box<str>,
        /// Those of the digest promised.
        promised: Box<str>,
        /// Who promised it.
        by: String,
    },
    /// The body is shorter or longer than announced, three times.
    #[error("the transfer was cut short: {file}: {what}")]
    CutShort {
        /// The file.
        file: String,
        /// What came.
        what: String,
    },
    /// The storage behind a Hub sent something else than the file, three times.
    #[error("the storage at {host} sent {sent} in place of the {size} bytes of {file} at this commit")]
    NotTheFile {
        /// Host and port.
        host: String,
        /// What came.
        sent: String,
        /// Bytes of the file.
        size: u64,
        /// The file.
        file: String,
    },
    /// Offline, and what is in the cache is not what was downloaded.
    #[error("{} is damaged: its bytes are not those that were downloaded", .0.display())]
    Damaged(PathBuf),
    /// Offline, and not downloaded before.
    #[error("{0} was not found: it is not in the cache and offline mode is on")]
    Offline(String),
    /// Another process did not finish in time.
    #[error("another process holds {}", .0.display())]
    Locked(PathBuf),
    /// The disk cannot hold it.
    #[error("not enough disk space in {}: {what}", directory.display())]
    DiskFull {
        /// Where.
        directory: PathBuf,
        /// How much is needed or left.
        what: String,
        /// The variable that moves the cache.
        variable: &'static str,
    },
    /// The cache cannot be written.
    #[error("cannot write {}: {cause}", directory.display())]
    CannotWrite {
        /// Where.
        directory: PathBuf,
        /// What the system said.
        cause: String,
        /// The variable that moves the cache.
        variable: &'static str,
    },
    /// A cached file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    CannotRead {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// A directory of the cache keeps what lies in it from being seen.
    #[error("cannot read {}: {cause}", directory.display())]
    CannotEnter {
        /// Which.
        directory: PathBuf,
        /// What the system said.
        cause: String,
        /// The variable that moves the cache.
        variable: &'static str,
    },
    /// A setting of the environment is not usable.
    #[error("{name} is \"{value}\": {rule}")]
    Setting {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Ctrl-C or SIGTERM.
    #[error("it was interrupted")]
    Interrupted,
}

fn after(attempts: u32) -> String {
    if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() }
}

fn at(expired: Option<&str>) -> String {
    expired.map(|at| format!(" (at {at})")).unwrap_or_default()
}

impl Problem {
    /// Who can put it right.
    pub fn blame(&self) -> Blame {
        match self {
            Problem::Connect { .. }
            | Problem::Untrusted { .. }
            | Problem::NotHttp { .. }
            | Problem::Answered { .. }
            | Problem::RateLimited { .. }
            | Problem::Unexpected { .. }
            | Problem::NotAHub { .. }
            | Problem::Redirect { .. }
            | Problem::EndlessRedirect(_)
            | Problem::Changed(_)
            | Problem::CutShort { .. }
            | Problem::NotTheFile { .. }
            | Problem::Locked(_)
            | Problem::DiskFull { .. }
            | Problem::CannotWrite { .. }
            | Problem::CannotRead { .. }
            | Problem::CannotEnter { .. }
            | Problem::Damaged(_)
            | Problem::Interrupted => Blame::World,
            _ => Blame::Input,
        }
    }

    /// With the reference that it is about.
    pub fn about(self, reference: impl Into<String>) -> SourceError {
        SourceError { reference: reference.into(), problem: self }
    }
}

/// `text` with control characters (and those that reorder a line) escaped: what a server says is not obeyed by a
/// terminal.
pub fn printable(text: &str) -> String {
    let harmless = |c: char| {
        !(c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}'))
    };
    if text.chars().all(harmless) {
        return text.to_owned();
    }
    text.chars().map(|c| if harmless(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_ends_with_the_way_out() {
        let error = Problem::Empty("data/\u{1b}[31mx\n.jsonl".into()).about("hf://a/b");
        assert_eq!(
            error.to_string(),
            "Cannot use hf://a/b: data/\\u{1b}[31mx\\n.jsonl is empty. Ask the publisher for the data, or point at \
             another file."
        );
        assert_eq!(error.problem.blame(), Blame::Input);
        let host = "traces.s3.us-east-1.amazonaws.com".into();
        let aws = Problem::Connect { host, cause: "x".into(), named_by: None };
        assert!(aws.fix().contains("AWS_ENDPOINT_URL_S3 if it is not that of AWS, or set"), "{}", aws.fix());
        assert_eq!(Problem::Changed("x".into()).blame(), Blame::World);
    }
}
