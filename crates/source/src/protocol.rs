//! What each scheme must be able to do. One file per scheme; nothing outside them knows how a source is asked.

pub(crate) mod hub;
pub(crate) mod local;
pub(crate) mod recalled;
pub(crate) mod s3;
pub(crate) mod web;

use crate::digest::Promise;
use crate::error::Problem;
use crate::http::{Body, Failure};

/// A file of a source, at its pin.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Entry {
    /// Its path in the source: in the repository, the key, the last part of the URL.
    pub(crate) path: String,
    /// Bytes, when the source says.
    pub(crate) size: Option<u64>,
    /// What it must be at every read: an `ETag` as sent (of the Hub: the blob's id).
    pub(crate) etag: Option<String>,
    /// The version of an S3 object.
    pub(crate) version_id: Option<String>,
    /// `Last-Modified`, where there is no etag.
    pub(crate) modified: Option<String>,
    /// It is compressed for the transfer, and decoded while it is written: its size is not known, and it is never read
    /// from the middle.
    #[serde(default)]
    pub(crate) coded: bool,
    /// What its bytes must be.
    #[serde(skip)]
    pub(crate) promise: Option<Promise>,
}

impl Entry {
    /// The version that its source gives this one file: the version id of an object, else its tag.
    pub(crate) fn version(&self) -> Option<String> {
        match (&self.version_id, &self.etag) {
            (Some(version), _) => Some(format!("versionId:{version}")),
            (None, Some(etag)) => Some(format!("etag:{etag}")),
            (None, None) => None,
        }
    }
}

/// What lies at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A file.
    File(Entry),
    /// A folder.
    Folder,
}

/// What a reference names.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The version of the whole source, where there is one: the commit of a repository.
    pub(crate) commit: Option<String>,
    /// A file, or a folder with the path that it has in the source (no `/` at its end).
    pub(crate) node: Node,
    /// The folder's manifest or the file's sidecar: its path and its bytes.
    pub(crate) declaration: Option<(String, Vec<u8>)>,
    /// The manifest as an entry, where its version goes into that of the source.
    pub(crate) declared_by: Option<Entry>,
}

/// Bytes from `start` up to and without `end`; `None` is the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
}

impl Range {
    /// The value of a `Range` header; `None` for the whole file.
    pub(crate) fn header(self) -> Option<String> {
        match (self.start, self.end) {
            (0, None) => None,
            (start, None) => Some(format!("bytes={start}-")),
            (start, Some(end)) => Some(format!("bytes={start}-{}", end.saturating_sub(1))),
        }
    }
}

/// A source that can be asked. Every method may be called again; each retries what is worth it, but for
/// [`Protocol::open`], whose caller does.
pub(crate) trait Protocol {
    /// Finds what the reference names, fixes its version, and brings the manifest or sidecar.
    async fn look_up(&self) -> Result<Found, Problem>;

    /// What lies at a path of the source.
    async fn node(&self, found: &Found, path: &str) -> Result<Option<Node>, Problem>;

    /// Every file below a folder (empty for the root), at any depth, sorted by the bytes of their paths.
    async fn list(&self, found: &Found, folder: &str) -> Result<Vec<Entry>, Problem>;

    /// Proves that a file may be read, and completes what is known of it.
    async fn prove(&self, found: &Found, file: Entry) -> Result<Entry, Problem>;

    /// Opens the bytes of a file at its pin. An answer of another version is [`Problem::Changed`]. The body may
    /// start at 0 instead, where ranges are not served.
    async fn open(&self, found: &Found, file: &Entry, range: Range) -> Result<Body, Failure>;

    /// The folder that the reference names, as a path of the source.
    fn folder(&self) -> String;

    /// How a folder of the source is called in messages.
    fn title(&self, folder: &str) -> String;

    /// A reference to a path, at the revision that the reference names: ready to be used.
    fn reference_to(&self, path: &str) -> String;

    /// The version that is recorded for these files, and the reference that names it.
    fn version(&self, found: &Found, target: &Target<'_>) -> (Option<String>, String);

    /// Whether the cache keeps a file under its whole path in the source: then every part of that must be a name.
    fn keeps_paths(&self) -> bool {
        false
    }

    /// Who has a manifest for a folder without one, or how it is made.
    fn way_to_a_manifest(&self) -> String {
        "ask the publisher for an aiperf.json".into()
    }

    /// Whether a folder may go without a manifest when it has a Parquet layout.
    fn knows_layouts(&self) -> bool {
        false
    }

    /// Whether a folder that a manifest names is fetched whole, the split being chosen by the reader.
    fn fetches_whole_folders(&self) -> bool {
        false
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// The files, in their order.
    pub(crate) files: &'a [Entry],
    /// The folder, when it is one.
    pub(crate) folder: Option<&'a str>,
}
