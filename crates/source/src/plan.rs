//! What would be read: the result of the access check.

use crate::manifest::Role;
use crate::names;
use crate::protocol::{Entry, Found};
use crate::reference::Reference;

/// Who named the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatSource {
    /// `--custom-dataset-type`
    Flag,
    /// The manifest of the folder.
    Manifest,
    /// The sidecar of the file.
    Sidecar,
    /// The first record.
    Detected,
}

impl FormatSource {
    /// The word in results.
    pub fn name(self) -> &'static str {
        match self {
            FormatSource::Flag => "flag",
            FormatSource::Manifest => "manifest",
            FormatSource::Sidecar => "sidecar",
            FormatSource::Detected => "detected",
        }
    }
}

impl From<Role> for FormatSource {
    fn from(role: Role) -> FormatSource {
        match role {
            Role::Manifest => FormatSource::Manifest,
            Role::Sidecar => FormatSource::Sidecar,
        }
    }
}

/// A manifest that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestMark {
    /// Its path in the source.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: String,
    /// Its own version, where the source gives each file one.
    pub version: Option<String>,
}

impl ManifestMark {
    /// As results record it.
    pub fn json(&self) -> serde_json::Value {
        let mut value = serde_json::json!({ "path": self.path, "sha256": self.sha256 });
        if let Some(version) = &self.version {
            value["version"] = version.as_str().into();
        }
        value
    }
}

/// What a run over a reference reads, at an exact version.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The reference.
    pub reference: Reference,
    /// The reference that names this version, where one can.
    pub resolved_reference: String,
    /// The version.
    pub version: Option<String>,
    /// Whether the reference itself names it.
    pub pinned: bool,
    /// The format, unless the first record has to tell.
    pub format: Option<&'static str>,
    /// Who named it.
    pub format_source: Option<FormatSource>,
    /// The publisher's block size, for formats that use one.
    pub block_size: Option<u64>,
    /// What `requires.endpoint_types` names.
    pub endpoint_types: Option<Vec<String>>,
    /// What `requires.max_context_tokens` says.
    pub max_context_tokens: Option<u64>,
    /// Splits, folders and files that are not read.
    pub dropped: Vec<String>,
    /// The manifest or sidecar.
    pub manifest: Option<ManifestMark>,
    /// Whether only the cache was asked.
    pub offline: bool,
    pub(crate) files: Vec<Entry>,
    /// The folder in the source that names of files are relative to, when it is one.
    pub(crate) folder: Option<String>,
    /// The publisher's digest of the one file.
    pub(crate) data_sha256: Option<String>,
    pub(crate) found: Found,
}

impl Plan {
    /// Whether the files lie in a folder.
    pub fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Number of files.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Name (relative to the folder) and size of each file, in the order they are read.
    pub fn files(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.files.iter().map(|file| (self.name(file), file.size))
    }

    /// The paths of the files in the source.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.files.iter().map(|file| file.path.clone())
    }

    /// The folder of the data in the source, when it is one.
    pub fn folder_path(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// The place of the data as messages name it: the reference as typed, and the folder below it that they lie in.
    pub fn place(&self) -> String {
        let typed = self.reference.redacted();
        let place = typed.strip_suffix('/').unwrap_or(&typed);
        let root = match &self.reference {
            Reference::Hub(hub) => hub.path.as_deref().unwrap_or_default(),
            Reference::S3(s3) => s3.key.trim_end_matches('/'),
            Reference::Web(_) | Reference::Local(_) => return place.to_owned(),
        };
        let below = self.folder.as_deref().and_then(|folder| folder.strip_prefix(root)).unwrap_or_default();
        match below.trim_matches('/') {
            "" => place.to_owned(),
            below => format!("{place}/{below}"),
        }
    }

    /// The digest of the one data file that the publisher declares.
    pub fn promised_sha256(&self) -> Option<&str> {
        self.data_sha256.as_deref()
    }

    /// Bytes of all files together, when every size is known.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The name of a file relative to the folder; its last part when it is alone.
    pub(crate) fn name<'a>(&self, file: &'a Entry) -> &'a str {
        match self.folder.as_deref() {
            None => {
                let last = file.path.rsplit('/').next().unwrap_or(&file.path);
                if names::fault(last).is_some() { "data" } else { last }
            }
            Some("") => &file.path,
            Some(folder) => {
                file.path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&file.path)
            }
        }
    }
}
