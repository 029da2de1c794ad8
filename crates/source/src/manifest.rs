//! `aiperf.json` and `<file>.aiperf.json`: what the publisher says about the data.

mod json;

use std::str::FromStr;

use crate::digest;
use crate::error::Problem;
use json::{Member, Node};

/// The manifest's file name, at the root of a folder.
pub(crate) const MANIFEST: &str = "aiperf.json";
/// What follows a data file's name in the name of its sidecar.
pub(crate) const SIDECAR: &str = ".aiperf.json";
/// A manifest is not larger than this.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// Whether a path names a manifest or a sidecar.
pub(crate) fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == MANIFEST || name.ends_with(SIDECAR)
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// At the root of a folder; names the data.
    Manifest,
    /// Beside a file.
    Sidecar,
}

impl Role {
    /// The word in `format_source`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Manifest => "manifest",
            Role::Sidecar => "sidecar",
        }
    }
}

/// Where the data lie, relative to the manifest's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataPath {
    /// Without a `/` at its end; empty for the manifest's own folder.
    pub(crate) path: String,
    /// Written so that it can only be a folder.
    pub(crate) folder: bool,
    /// As written.
    pub(crate) written: String,
}

/// A manifest or sidecar that keeps its own rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    /// Which of the two.
    pub(crate) role: Role,
    /// Its path in the source, for messages and provenance.
    pub(crate) place: String,
    /// Digest of its bytes.
    pub(crate) sha256: String,
    /// Where the data lie.
    pub(crate) path: Option<DataPath>,
    /// The format, as written.
    pub(crate) format: Option<String>,
    /// The block size.
    pub(crate) block_size: Option<u64>,
    /// The digest of the data file, lower case.
    pub(crate) data_sha256: Option<String>,
    /// Endpoint types that it is meant for, as written.
    pub(crate) endpoint_types: Option<Vec<String>>,
    /// Advisory.
    pub(crate) max_context_tokens: Option<u64>,
}

const KEYS: [&str; 5] = ["path", "format", "block_size", "sha256", "requires"];
const REQUIRES: [&str; 3] = ["aiperf", "endpoint_types", "max_context_tokens"];

/// Reads a manifest or sidecar that lies at `place`; `own` is the version of this program, empty when its
/// condition is not checked.
pub(crate) fn read(bytes: &[u8], role: Role, place: &str, own: &str) -> Result<Declaration, Problem> {
    let reader = Reader { bytes, role, place };
    let members = reader.object()?;
    let requires = members.iter().find(|member| member.key == "requires");
    reader.version(requires, own)?;
    reader.keys(&members, &KEYS, "")?;
    let requires: &[Member] = match requires {
        None => &[],
        Some(Member { value: Node::Object(requires), .. }) => {
            reader.keys(requires, &REQUIRES, "requires.")?;
            requires
        }
        Some(_) => return Err(reader.wrong("requires", "it must be an object")),
    };
    let find = |key| members.iter().find(|member| member.key == key).map(|member| &member.value);
    let inner = |key| requires.iter().find(|member| member.key == key).map(|member| &member.value);
    let path = reader.text("path", find("path"))?;
    let format = reader.text("format", find("format"))?;
    let block_size = reader.count("block_size", find("block_size"))?;
    let data_sha256 = reader.digest(find("sha256"))?;
    let endpoint_types = reader.endpoint_types(inner("endpoint_types"))?;
    let max_context_tokens = reader.count("requires.max_context_tokens", inner("max_context_tokens"))?;
    if role == Role::Manifest {
        for (key, missing) in [("path", path.is_none()), ("format", format.is_none())] {
            if missing {
                return Err(reader.fault(format!("the key \"{key}\" is missing"), "it is required"));
            }
        }
    }
    let path = path.map(|path| reader.data_path(path)).transpose()?;
    Ok(Declaration {
        role,
        place: place.to_owned(),
        sha256: digest::sha256_hex(bytes),
        path,
        format: format.map(str::to_owned),
        block_size,
        data_sha256,
        endpoint_types,
        max_context_tokens,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    role: Role,
    place: &'a str,
}

impl Reader<'_> {
    fn fault(&self, what: impl Into<String>, rule: impl Into<String>) -> Problem {
        Problem::BadManifest { manifest: self.place.to_owned(), what: what.into(), rule: rule.into() }
    }

    /// A fault of the value of `key`, with its line.
    fn wrong(&self, key: &str, rule: &str) -> Problem {
        let name = key.rsplit('.').next().unwrap_or(key);
        let line =
            json::line_of(self.bytes, name, 1).map(|line| format!(" (line {line})")).unwrap_or_default();
        self.fault(format!("the value of \"{key}\"{line}"), rule)
    }

    fn object(&self) -> Result<Vec<Member>, Problem> {
        const RULE: &str = "a manifest is one JSON object, in UTF-8, of at most 1 MiB and 32 levels";
        if self.bytes.len() > MOST_BYTES {
            return Err(self.fault("it is larger than 1 MiB", RULE));
        }
        match json::parse(self.bytes) {
            Ok(Node::Object(members)) => Ok(members),
            Ok(other) => Err(self.fault(format!("it is {}, no object", other.kind()), RULE)),
            Err(what) => Err(self.fault(what, RULE)),
        }
    }

    /// The version first: what is written for a newer version may break every other rule.
    fn version(&self, requires: Option<&Member>, own: &str) -> Result<(), Problem> {
        let Some(Member { value: Node::Object(requires), .. }) = requires else { return Ok(()) };
        let Some(member) = requires.iter().find(|member| member.key == "aiperf") else { return Ok(()) };
        let Node::Text(spec) = &member.value else {
            return Err(self.wrong("requires.aiperf", "it must be a text"));
        };
        let rule = "it must be a version specifier like \">=0.14,<1.0\"";
        let specifiers =
            pep440_rs::VersionSpecifiers::from_str(spec).map_err(|_| self.wrong("requires.aiperf", rule))?;
        if own.is_empty() {
            return Ok(());
        }
        let own_version = release(own);
        if specifiers.contains(&own_version) {
            return Ok(());
        }
        Err(Problem::NeedsVersion {
            manifest: self.place.to_owned(),
            spec: spec.clone(),
            own: own_version.to_string(),
        })
    }

    fn keys(&self, members: &[Member], known: &[&str], prefix: &str) -> Result<(), Problem> {
        let sidecar: Vec<&str> = known.iter().copied().filter(|key| *key != "path").collect();
        let known = if self.role == Role::Sidecar { sidecar.as_slice() } else { known };
        for (index, member) in members.iter().enumerate() {
            let key = &member.key;
            let twice = members[..index].iter().any(|other| other.key == *key);
            let line = json::line_of(self.bytes, key, if twice { 2 } else { 1 })
                .map(|line| format!(" (line {line})"))
                .unwrap_or_default();
            let name = format!("\"{prefix}{}\"{line}", key.escape_debug());
            if twice {
                return Err(self.fault(format!("the key {name} is there twice"), "a key is there once"));
            }
            if self.role == Role::Sidecar && prefix.is_empty() && key == "path" {
                return Err(self.fault(
                    format!("the key {name} is not allowed in a sidecar"),
                    "a sidecar belongs to the file beside it",
                ));
            }
            if !known.contains(&key.as_str()) {
                return Err(self.fault(
                    format!("the key {name} is unknown"),
                    format!("the known keys are {}", known.join(", ")),
                ));
            }
        }
        Ok(())
    }

    fn text<'n>(&self, key: &str, value: Option<&'n Node>) -> Result<Option<&'n str>, Problem> {
        match value {
            None => Ok(None),
            Some(Node::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "it must be a text")),
        }
    }

    fn count(&self, key: &str, value: Option<&Node>) -> Result<Option<u64>, Problem> {
        match value {
            None => Ok(None),
            Some(Node::Count(count)) if *count >= 1 => Ok(Some(*count)),
            Some(_) => Err(self.wrong(key, "it must be a whole number, 1 or more, written in digits")),
        }
    }

    fn digest(&self, value: Option<&Node>) -> Result<Option<String>, Problem> {
        match self.text("sha256", value)? {
            None => Ok(None),
            Some(text) if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Ok(Some(text.to_ascii_lowercase()))
            }
            Some(_) => Err(self.wrong("sha256", "it must be 64 hexadecimal digits")),
        }
    }

    fn endpoint_types(&self, value: Option<&Node>) -> Result<Option<Vec<String>>, Problem> {
        let wrong = || self.wrong("requires.endpoint_types", "it must be a list of texts with at least one");
        match value {
            None => Ok(None),
            Some(Node::List(list)) if !list.is_empty() => list
                .iter()
                .map(|node| match node {
                    Node::Text(text) => Ok(text.clone()),
                    _ => Err(wrong()),
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(wrong()),
        }
    }

    fn data_path(&self, path: &str) -> Result<DataPath, Problem> {
        if path == "." {
            return Ok(DataPath { path: String::new(), folder: true, written: path.to_owned() });
        }
        let bare = path.strip_suffix('/').unwrap_or(path);
        let shown: String = path.chars().take(120).collect();
        let refuse = |rule: &str| {
            self.fault(format!("the path \"{}\"", shown.escape_debug()), format!("a path {rule}"))
        };
        let bytes = bare.as_bytes();
        if path.len() > 1024 {
            return Err(refuse("has at most 1024 bytes"));
        }
        if path.starts_with('/') {
            return Err(refuse("is relative to the manifest's folder"));
        }
        if path.contains('\\') || path.chars().any(char::is_control) {
            return Err(refuse("has no backslash and no control character"));
        }
        if path.contains("://") || path.starts_with("file:") {
            return Err(refuse("has no scheme"));
        }
        if bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
            return Err(refuse("has no drive letter"));
        }
        if bare.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return Err(refuse("has no empty, '.' or '..' part"));
        }
        if is_manifest(bare) {
            return Err(refuse("names the data, not a manifest"));
        }
        Ok(DataPath { path: bare.to_owned(), folder: bare.len() < path.len(), written: path.to_owned() })
    }
}

/// The version of this program without its pre-release, dev and local parts.
fn release(own: &str) -> pep440_rs::Version {
    let release = own.split(['-', '+']).next().unwrap_or(own);
    pep440_rs::Version::from_str(release).map_or_else(
        |_| pep440_rs::Version::new([0]),
        |version| pep440_rs::Version::new(version.release().iter().copied()),
    )
}

#[cfg(test)]
mod tests;
