//! The cache of S3 and HTTPS files.
//!
//! ```text
//! <root>/v1/{s3,https}/<key>/files/<path>     content
//!                           /entry.json       the files with their digests; without it there is no entry
//!                           /partial.jsonl    a line for each file that is there while an entry is made
//!          /refs/<reference>.json             the newest version of a reference, for offline runs
//!          /locks/<key>.lock
//!          /tmp/<key>.<random>.incomplete     files that are not whole
//! ```
//!
//! A key is the digest of what was fetched and of its version; nothing secret is part of it in the clear.

mod record;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::real::Real;
use crate::digest::{Digests, sha256_hex};
use crate::error::Problem;
use crate::names;
use crate::plan::Plan;
use crate::protocol::{Entry, Node};
use crate::settings::REMOTE_CACHE_VARIABLE;
use crate::store::Store;
use crate::temp::{self, Leftover, Root, TempFile};
use crate::transfer::disk_problem;
use record::{RECORDS, Record, RecordedFile, line};

/// The files of one reference.
#[derive(Debug)]
pub(crate) struct RemoteCache {
    root: PathBuf,
    scheme: &'static str,
    /// What is fetched, without its version: no secret, the same for every signature of one URL.
    identity: String,
    /// What the reference asks for; differs from `identity` by a version that it names.
    asked: String,
    real: Real,
    /// The record that was read last: folders have thousands of files, and each is looked up several times.
    read: Mutex<Option<Read>>,
}

/// A record as it was read.
#[derive(Debug)]
struct Read {
    key: String,
    /// When that was: where a file is another one, or longer, it is read again.
    stamp: [Option<Stamp>; 2],
    files: HashMap<String, RecordedFile>,
}

/// Device, inode, length and time of a file.
type Stamp = (u64, u64, u64, i64, i64);

/// `refs/….json`: a whole access check, to be repeated without a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recalled {
    schema: u32,
    reference: String,
    pub(crate) resolved_reference: String,
    pub(crate) version: Option<String>,
    /// Of the entry; that of an unversioned file has no version in it.
    key: String,
    /// Wall time of the check, nanoseconds since 1970.
    pub(crate) checked: u64,
    pub(crate) is_folder_reference: bool,
    pub(crate) folder: Option<String>,
    pub(crate) files: Vec<Entry>,
    /// Path and text of the manifest or sidecar; `None` is its proven absence.
    pub(crate) declaration: Option<(String, String)>,
    /// The manifest or sidecar as an entry of the source.
    #[serde(default)]
    pub(crate) declared_by: Option<Entry>,
}

impl RemoteCache {
    /// `identity` is what is fetched, `asked` the same with a version that the reference names.
    pub(crate) fn new(root: &Path, scheme: &'static str, identity: &[&str], asked: &[&str]) -> RemoteCache {
        RemoteCache {
            root: root.join("v1"),
            scheme,
            identity: identity.join("\0"),
            asked: asked.join("\0"),
            real: Real::default(),
            read: Mutex::default(),
        }
    }

    fn key_of(&self, version: &str) -> String {
        sha256_hex(format!("{}\0{}\0{version}", self.scheme, self.identity).as_bytes())
    }

    /// The key of a plan's entry. A source without versions is found by what was fetched last, and only offline.
    fn key(&self, plan: &Plan) -> Option<String> {
        match &plan.version {
            Some(version) => Some(self.key_of(version)),
            None if plan.offline => self.recall().map(|recalled| recalled.key),
            None => None,
        }
    }

    fn entry(&self, key: &str) -> PathBuf {
        self.root.join(self.scheme).join(key)
    }

    fn record(&self, key: &str) -> Option<Record> {
        let text = std::fs::read(self.entry(key).join(RECORDS[0])).ok()?;
        serde_json::from_slice(&text).ok().filter(|record: &Record| record.schema == 1)
    }

    /// The files of an entry that is being made. A line that was cut off is none.
    fn partial(&self, key: &str) -> Vec<RecordedFile> {
        let text = std::fs::read_to_string(self.entry(key).join(RECORDS[1])).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn stamp(&self, key: &str) -> [Option<Stamp>; 2] {
        RECORDS.map(|name| {
            let found = std::fs::symlink_metadata(self.entry(key).join(name)).ok()?;
            Some((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        })
    }

    /// What is on record of a file.
    fn recorded_file(&self, plan: &Plan, file: &Entry) -> Option<(PathBuf, RecordedFile)> {
        let key = self.key(plan)?;
        let name = plan.name(file);
        if names::fault(name).is_some() {
            return None;
        }
        let stamp = self.stamp(&key);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.as_ref().is_none_or(|read| read.key != key || read.stamp != stamp) {
            let files = self.record(&key).map_or_else(|| self.partial(&key), |record| record.files);
            let files = files.into_iter().map(|file| (file.path.clone(), file)).collect();
            *read = Some(Read { key: key.clone(), stamp, files });
        }
        let recorded = read.as_ref()?.files.get(name)?.clone();
        Some((self.entry(&key).join("files").join(name), recorded))
    }

    /// Notes a file of an entry that is being made.
    fn add_to_partial(&self, key: &str, file: RecordedFile) -> io::Result<()> {
        let before = self.stamp(key);
        let line = line(&file)?;
        let path = self.entry(key).join(RECORDS[1]);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits();
        let mut partial =
            std::fs::File::options().create(true).append(true).custom_flags(flags as i32).open(path)?;
        partial.write_all(line.as_bytes())?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_mut().filter(|read| read.key == key && read.stamp == before) {
            read.stamp = self.stamp(key);
            read.files.insert(file.path.clone(), file);
        }
        Ok(())
    }

    fn write_record(&self, key: &str, record: &Record) -> io::Result<()> {
        // Invariant: the types of a record are those that JSON has.
        let text = serde_json::to_vec(record).map_err(io::Error::other)?;
        self.root().directory(&self.entry(key))?;
        temp::write(&self.entry(key).join(RECORDS[0]), &text)
    }

    /// Notes when files were written that were found to be what is on record, in a cache that was copied, for one: they
    /// are read through once. Where that cannot be written, they are the next time, too.
    fn note_times(&self, key: &str, mut record: Record, files: &[RecordedFile]) {
        let found: HashMap<&str, &RecordedFile> =
            files.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut changed = false;
        for known in &mut record.files {
            if let Some(file) = found.get(known.path.as_str())
                && known.sha256 == file.sha256
                && known.times() != file.times()
            {
                (known.modified, known.changed) = (file.modified, file.changed);
                changed = true;
            }
        }
        if changed {
            let _ = self.write_record(key, &record);
        }
    }

    fn reference_file(&self, asked: &str) -> PathBuf {
        let name = sha256_hex(format!("{}\0{asked}", self.scheme).as_bytes());
        self.root.join("refs").join(format!("{name}.json"))
    }

    /// What keeps from knowing what the last run that was online found.
    pub(crate) fn barrier(&self) -> Option<Problem> {
        temp::obstacle(&self.reference_file(&self.asked), self.variable())
    }

    /// What the last run that was online found.
    pub(crate) fn recall(&self) -> Option<Recalled> {
        let recalled: Recalled =
            serde_json::from_slice(&std::fs::read(self.reference_file(&self.asked)).ok()?).ok()?;
        (recalled.schema == 1).then_some(recalled)
    }

    fn remember(&self, plan: &Plan, key: String) -> io::Result<()> {
        let recalled = Recalled {
            schema: 1,
            reference: plan.reference.redacted(),
            resolved_reference: plan.resolved_reference.clone(),
            version: plan.version.clone(),
            key,
            checked: aiperf_clock::wall(aiperf_clock::now()),
            is_folder_reference: matches!(plan.found.node, Node::Folder),
            folder: plan.folder.clone(),
            files: plan.files.clone(),
            declaration: declared(plan),
            declared_by: plan.found.declared_by.clone(),
        };
        let text = serde_json::to_vec(&recalled).map_err(io::Error::other)?;
        self.root().directory(&self.root.join("refs"))?;
        // The exact reference of an object is that of its version: what the log names runs offline, too.
        if let (Node::File(_), [Entry { version_id: Some(version), .. }]) =
            (&plan.found.node, plan.files.as_slice())
        {
            temp::write(&self.reference_file(&format!("{}\0{version}", self.identity)), &text)?;
        }
        temp::write(&self.reference_file(&self.asked), &text)
    }

    /// The key that is locked while a plan is fetched; that of a source without versions has none in it.
    fn locked(&self, plan: &Plan) -> String {
        self.key(plan).unwrap_or_else(|| self.key_of(""))
    }

    /// The key that a file without a version gets once it is here.
    fn key_after(&self, plan: &Plan, digests: &Digests) -> String {
        self.key_of(plan.version.as_deref().unwrap_or(&digests.sha256))
    }
}

impl Store for RemoteCache {
    fn hit(&self, plan: &Plan, file: &Entry) -> Option<PathBuf> {
        let (path, recorded) = self.recorded_file(plan, file)?;
        let found = std::fs::symlink_metadata(&path).ok()?;
        // Nothing of this cache is a link.
        let whole = found.is_file() && self.real.file(&self.root, &path)? == recorded.size;
        (whole && file.size.is_none_or(|size| recorded.is_of(size))).then_some(path)
    }

    fn lock(&self, plan: &Plan, file: Option<&Entry>) -> Option<PathBuf> {
        if file.is_some() {
            return None;
        }
        Some(self.root.join("locks").join(format!("{}.lock", self.locked(plan))))
    }

    fn temp(&self, plan: &Plan, _: &Entry, alone: bool) -> io::Result<TempFile> {
        let directory = self.root.join("tmp");
        self.root().directory(&directory)?;
        let stem = format!("{}.", self.locked(plan));
        temp::sweep(&directory, |name| {
            if alone && name.starts_with(&stem) { Leftover::Yes } else { Leftover::Perhaps }
        });
        TempFile::create(&directory, &stem, ".incomplete")
    }

    fn publish(&self, plan: &Plan, file: &Entry, temp: TempFile, digests: &Digests) -> io::Result<PathBuf> {
        let key = self.key_after(plan, digests);
        let name = plan.name(file);
        let path = self.entry(&key).join("files").join(name);
        if let Some(directory) = path.parent() {
            self.root().directory(directory)?;
        }
        temp.place(&path)?;
        self.add_to_partial(&key, RecordedFile::of(plan, file, digests, &path))?;
        Ok(path)
    }

    fn discard(&self, plan: &Plan, file: &Entry, path: &Path) -> io::Result<()> {
        // The record first: without it the file does not exist. The others of a folder stay.
        if let Some(key) = self.key(plan) {
            let mut others = self.record(&key).map_or_else(|| self.partial(&key), |record| record.files);
            others.retain(|other| other.path != plan.name(file));
            let lines: Vec<String> = others.iter().map(line).collect::<io::Result<_>>()?;
            temp::write(&self.entry(&key).join(RECORDS[1]), lines.concat().as_bytes())?;
            match std::fs::remove_file(self.entry(&key).join(RECORDS[0])) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::remove_file(path)
    }

    fn finish(&self, plan: &Plan, digests: &[Digests]) -> Result<(), Problem> {
        let key = match (&plan.version, digests) {
            (Some(version), _) => self.key_of(version),
            (None, [digests, ..]) => self.key_of(&digests.sha256),
            (None, []) => return Ok(()),
        };
        let content = self.entry(&key).join("files");
        let files: Vec<RecordedFile> = plan
            .files
            .iter()
            .zip(digests)
            .map(|(file, digests)| RecordedFile::of(plan, file, digests, &content.join(plan.name(file))))
            .collect();
        let mut record = self.record(&key).unwrap_or_else(|| Record {
            schema: 1,
            reference: plan.reference.redacted(),
            version: plan.version.clone(),
            files: Vec::new(),
        });
        let complete = {
            let known: HashSet<&str> = record.files.iter().map(|file| file.path.as_str()).collect();
            files.iter().all(|file| known.contains(file.path.as_str()))
        };
        if complete {
            self.note_times(&key, record, &files);
        } else if !plan.offline {
            let new: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
            record.files.retain(|file| !new.contains(file.path.as_str()));
            record.files.extend(files);
            self.write_record(&key, &record)
                .map_err(|error| disk_problem(&self.root().path, &error, self.variable()))?;
        }
        if plan.offline {
            return Ok(());
        }
        let _ = std::fs::remove_file(self.entry(&key).join(RECORDS[1]));
        // For offline runs; where it cannot be written, the run at hand goes on.
        let newest = self.recall().is_some_and(|recalled| {
            // The manifest may be another one beside the same data.
            recalled.key == key && recalled.declaration == declared(plan)
        });
        if !(newest && complete) {
            let _ = self.remember(plan, key);
        }
        Ok(())
    }

    fn recorded(&self, plan: &Plan, file: &Entry) -> Option<String> {
        self.recorded_file(plan, file).map(|(_, recorded)| recorded.sha256)
    }

    fn is_untouched(&self, plan: &Plan, file: &Entry) -> bool {
        self.recorded_file(plan, file).is_some_and(|(path, recorded)| {
            recorded.times().are_still(&recorded.clone().at_times_of(&path).times())
        })
    }

    fn remains(&self, plan: &Plan, file: &Entry) -> Option<PathBuf> {
        self.recorded_file(plan, file).map(|(path, _)| path).filter(|path| path.is_file())
    }

    fn obstacle(&self, plan: &Plan, file: &Entry) -> Option<Problem> {
        let entry = self.entry(&self.key(plan)?);
        let content = entry.join("files").join(plan.name(file));
        let records = RECORDS.map(|name| entry.join(name));
        records.iter().chain([&content]).find_map(|path| temp::obstacle(path, self.variable()))
    }

    fn variable(&self) -> &'static str {
        REMOTE_CACHE_VARIABLE
    }

    fn root(&self) -> Root {
        let path = self.root.parent().map_or_else(|| self.root.clone(), Path::to_owned);
        Root { path, mode: 0o700 }
    }
}

/// Path and text of the manifest or sidecar of a plan.
fn declared(plan: &Plan) -> Option<(String, String)> {
    let (path, bytes) = plan.found.declaration.as_ref()?;
    Some((path.clone(), String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Found;
    use crate::reference::Reference;

    fn plan(names: &[&str]) -> Plan {
        let entry = |name: &&str| Entry { path: format!("p/{name}"), size: Some(1), ..Entry::default() };
        Plan {
            reference: Reference::parse("s3://traces/p/").unwrap(),
            resolved_reference: String::new(),
            version: Some("listing:1".into()),
            pinned: false,
            format: None,
            format_source: None,
            block_size: None,
            endpoint_types: None,
            max_context_tokens: None,
            dropped: Vec::new(),
            manifest: None,
            offline: false,
            files: names.iter().map(entry).collect(),
            folder: Some("p".into()),
            data_sha256: None,
            found: Found { commit: None, node: Node::Folder, declaration: None, declared_by: None },
        }
    }

    #[test]
    fn the_record_of_a_folder_is_read_once_for_all_of_its_files() {
        let root = tempfile::tempdir().unwrap();
        let cache = || RemoteCache::new(root.path(), "s3", &["traces", "p/"], &["traces", "p/"]);
        let (plan, digests) = (plan(&["a", "b", "c"]), Digests::known(1, sha256_hex(b"x")));
        let made = cache();
        for (index, file) in plan.files.iter().enumerate() {
            assert_eq!(plan.files.iter().filter(|file| made.hit(&plan, file).is_some()).count(), index);
            let temp = made.temp(&plan, file, true).unwrap();
            temp.file().write_all(b"x").unwrap();
            made.publish(&plan, file, temp, &digests).unwrap();
        }
        made.finish(&plan, &[digests.clone(), digests.clone(), digests]).unwrap();
        let key = made.key(&plan).unwrap();
        let entry = made.entry(&key);
        assert!(entry.join(RECORDS[0]).is_file() && !entry.join(RECORDS[1]).exists());
        let cache = cache();
        let hits = || plan.files.iter().filter(|file| cache.hit(&plan, file).is_some()).count();
        assert_eq!(hits(), 3);
        // Nothing tells that it is another one: nobody looks into it again.
        let (path, length) = (entry.join(RECORDS[0]), entry.join(RECORDS[0]).metadata().unwrap().len());
        let time = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, vec![b' '; length as usize]).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        assert_eq!(hits(), 3);
        file.set_modified(time + std::time::Duration::from_secs(1)).unwrap();
        assert_eq!(hits(), 0);
    }
}
