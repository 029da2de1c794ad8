//! A folder or file of this machine, held to the rules of a published one: for those who publish, and for those who
//! ask what would run.

use std::path::{Path, PathBuf};

use crate::error::Problem;
use crate::http::{Body, Failure};
use crate::manifest::{MANIFEST, MOST_BYTES, SIDECAR};
use crate::protocol::{Entry, Found, Node, Protocol, Range, Target};
use crate::store::Store;
use crate::temp::{Root, TempFile};
use crate::{digest::Digests, plan::Plan};

/// Deeper folders are not looked into.
const DEEPEST: usize = 64;

/// A path that exists.
#[derive(Clone, Debug)]
pub(crate) struct LocalSource {
    /// The folder, or the one that the file lies in.
    root: PathBuf,
    /// The name of the file; `None` for a folder.
    file: Option<String>,
}

impl LocalSource {
    pub(crate) fn new(path: &Path) -> Result<LocalSource, Problem> {
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Problem::NotFound {
                what: shown(path),
                fix: match path.to_str().and_then(aiperf_config::meant_reference) {
                    Some(reference) => format!("Write {reference}, if that is meant"),
                    None => "Check the path: a relative one starts at the working directory".into(),
                },
            },
            _ => cannot_read(path, &error),
        })?;
        if metadata.is_dir() {
            return Ok(LocalSource { root: path.to_owned(), file: None });
        }
        if !metadata.is_file() {
            return Err(Problem::Unreadable {
                what: "it is a pipe or a device, and data is read more than once".into(),
                fix: "Save it to a file, and name that file".into(),
            });
        }
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| Problem::Unreadable {
            what: "its name is not UTF-8".into(),
            fix: "Rename the file".into(),
        })?;
        let root = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok(LocalSource {
            root: root.map_or_else(|| PathBuf::from("."), Path::to_owned),
            file: Some(name.to_owned()),
        })
    }

    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let found = std::fs::metadata(self.path(path)).ok()?;
        found.is_file().then(|| Entry { path: path.to_owned(), size: Some(found.len()), ..Entry::default() })
    }

    fn declaration(&self, name: &str) -> Result<Option<(String, Vec<u8>)>, Problem> {
        use std::io::Read as _;

        let path = self.path(name);
        if !path.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| cannot_read(&path, &error))?;
        Ok(Some((name.to_owned(), bytes)))
    }
}

/// What was typed may be a mistyped URL.
fn shown(path: &Path) -> String {
    aiperf_config::redact_reference(&path.display().to_string())
}

/// A file or folder of the user's own: nothing that could be downloaded again.
pub(crate) fn cannot_read(path: &Path, error: &std::io::Error) -> Problem {
    Problem::Unreadable {
        what: format!("cannot read {}: {error}", shown(path)),
        fix: "Check its permissions".into(),
    }
}

/// It was there a moment ago.
pub(crate) fn gone(path: &Path) -> Problem {
    Problem::Unreadable {
        what: format!("cannot read {}: it is gone", shown(path)),
        fix: "Put it back, and try again".into(),
    }
}

impl Protocol for LocalSource {
    async fn look_up(&self) -> Result<Found, Problem> {
        let (node, beside) = match &self.file {
            None => (Node::Folder, MANIFEST.to_owned()),
            Some(name) => {
                let entry = self.entry(name).ok_or_else(|| gone(&self.path(name)))?;
                (Node::File(entry), format!("{name}{SIDECAR}"))
            }
        };
        let declaration = self.declaration(&beside)?;
        Ok(Found { commit: None, node, declaration, declared_by: None })
    }

    async fn node(&self, _: &Found, path: &str) -> Result<Option<Node>, Problem> {
        if let Some(entry) = self.entry(path) {
            return Ok(Some(Node::File(entry)));
        }
        Ok(self.path(path).is_dir().then_some(Node::Folder))
    }

    async fn list(&self, _: &Found, folder: &str) -> Result<Vec<Entry>, Problem> {
        let mut found = Vec::new();
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let directory = self.path(&folder);
            let cannot = |error: std::io::Error| cannot_read(&directory, &error);
            for entry in std::fs::read_dir(&directory).map_err(cannot)? {
                let entry = entry.map_err(cannot)?;
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                // Links to folders are not followed: they may lead in circles.
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                match self.entry(&path) {
                    Some(file) => found.push(file),
                    None if is_folder && depth < DEEPEST => folders.push((path, depth + 1)),
                    None => {}
                }
            }
        }
        found.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
        Ok(found)
    }

    async fn prove(&self, _: &Found, file: Entry) -> Result<Entry, Problem> {
        let path = self.path(&file.path);
        match std::fs::File::open(&path) {
            Ok(_) => Ok(file),
            Err(error) => Err(cannot_read(&path, &error)),
        }
    }

    async fn open(&self, _: &Found, file: &Entry, _: Range) -> Result<Body, Failure> {
        Err(gone(&self.path(&file.path)).into())
    }

    fn folder(&self) -> String {
        String::new()
    }

    fn title(&self, folder: &str) -> String {
        shown(&self.path(folder))
    }

    fn reference_to(&self, path: &str) -> String {
        shown(&self.path(path))
    }

    fn version(&self, _: &Found, target: &Target<'_>) -> (Option<String>, String) {
        let path = match (target.folder, target.files) {
            (Some(folder), _) => self.path(folder),
            (None, [file, ..]) => self.path(&file.path),
            (None, []) => self.root.clone(),
        };
        (None, shown(&path))
    }

    fn way_to_a_manifest(&self) -> String {
        "take the aiperf.json that `aiperf dataset publish-check` suggests for this folder".into()
    }

    fn knows_layouts(&self) -> bool {
        true
    }

    fn keeps_paths(&self) -> bool {
        true
    }
}

/// Every file is where it is.
impl Store for LocalSource {
    fn hit(&self, _: &Plan, file: &Entry) -> Option<PathBuf> {
        let path = self.path(&file.path);
        path.is_file().then_some(path)
    }

    fn lock(&self, _: &Plan, _: Option<&Entry>) -> Option<PathBuf> {
        None
    }

    fn temp(&self, _: &Plan, _: &Entry, _: bool) -> std::io::Result<TempFile> {
        Err(std::io::Error::other("the files of this machine are not fetched"))
    }

    fn publish(&self, _: &Plan, _: &Entry, _: TempFile, _: &Digests) -> std::io::Result<PathBuf> {
        Err(std::io::Error::other("the files of this machine are not fetched"))
    }

    fn discard(&self, _: &Plan, _: &Entry, _: &Path) -> std::io::Result<()> {
        Err(std::io::Error::other("the files of this machine are not replaced"))
    }

    fn finish(&self, _: &Plan, _: &[Digests]) -> Result<(), Problem> {
        Ok(())
    }

    fn recorded(&self, _: &Plan, _: &Entry) -> Option<String> {
        None
    }

    fn variable(&self) -> &'static str {
        "TMPDIR"
    }

    fn root(&self) -> Root {
        Root { path: self.root.clone(), mode: 0o777 }
    }

    fn is_cache(&self) -> bool {
        false
    }

    /// They lie there under these very names.
    fn folds_case(&self) -> bool {
        false
    }
}
