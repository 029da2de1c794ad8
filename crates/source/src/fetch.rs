//! Step 3: every file of a plan into the cache, verified.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::cache::times::Times;
use crate::digest::{Digests, ITS_SOURCE, Promise, Wanted, short};
use crate::error::Problem;
use crate::events::{Event, Events, Stop};
use crate::lock::{self, Lock};
use crate::plan::Plan;
use crate::protocol::local::{cannot_read, gone};
use crate::protocol::{Entry, Protocol, Range};
use crate::settings::Patience;
use crate::store::Store;
use crate::transfer::{self, Meter, Order, disk_problem};

/// A file that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalFile {
    /// Its name relative to the folder of the data; the bare name of a single file.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// sha256, in hexadecimal.
    pub sha256: String,
}

/// The promises that a file of a plan must keep. That of its source comes first: bytes that are not those that it has
/// are no fault of the publisher.
fn promises(plan: &Plan, file: &Entry) -> Vec<(Promise, String)> {
    let publisher = plan.data_sha256.as_ref().map(|sha256| {
        let by = plan.manifest.as_ref().map_or_else(|| "its manifest".to_owned(), |mark| mark.path.clone());
        (Promise::Sha256(sha256.clone()), by)
    });
    let source = file.promise.clone().map(|promise| (promise, ITS_SOURCE.to_owned()));
    source.into_iter().chain(publisher).collect()
}

/// What one pass over the files of a plan holds.
struct Pass<'f> {
    /// That of the whole plan, where the cache has one, from the first transfer on.
    lock: Option<Lock>,
    /// The files that are said to be transferred.
    announced: HashSet<&'f str>,
    meter: Meter,
}

/// One fetch of a plan.
pub(crate) struct Fetch<'a, P, S> {
    pub(crate) protocol: &'a P,
    pub(crate) store: &'a S,
    pub(crate) plan: &'a Plan,
    pub(crate) patience: &'a Patience,
    pub(crate) events: &'a Events,
    pub(crate) stop: &'a Stop,
    /// The bytes of what is here are read, whatever its record says.
    pub(crate) compares: bool,
    pub(crate) read: &'a ReadFiles,
}

/// Files that were read through, and what they looked like then: where that cannot be put on record, one command does
/// not read them twice.
#[derive(Debug, Default)]
pub(crate) struct ReadFiles(Mutex<HashMap<PathBuf, (Times, Digests)>>);

impl ReadFiles {
    fn digests(
        &self,
        path: &Path,
        wanted: Wanted,
        read: impl FnOnce() -> io::Result<Option<Digests>>,
    ) -> io::Result<Option<Digests>> {
        let times = path.metadata().map(|found| Times::of(&found))?;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some((then, digests)) = known
            && then.are_still(&times)
            && digests.git.is_some() == wanted.git_length.is_some()
        {
            return Ok(Some(digests));
        }
        let digests = read()?;
        if let Some(digests) = &digests {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(path.to_owned(), (times, digests.clone()));
        }
        Ok(digests)
    }
}

impl<P: Protocol, S: Store> Fetch<'_, P, S> {
    /// Brings every file.
    pub(crate) async fn all(&self) -> Result<Vec<LocalFile>, Problem> {
        let files: Vec<&Entry> = self.plan.files.iter().collect();
        let (found, digests) = self.files(&files).await?;
        self.store.finish(self.plan, &digests)?;
        Ok(found)
    }

    /// Brings the first file.
    pub(crate) async fn first(&self) -> Result<LocalFile, Problem> {
        let first = self.plan.files.first().ok_or_else(|| Problem::Empty(self.plan.reference.redacted()))?;
        let (mut found, _) = self.files(&[first]).await?;
        // Invariant: one file was asked for.
        found.pop().ok_or_else(|| Problem::Empty(first.path.clone()))
    }

    async fn files(&self, files: &[&Entry]) -> Result<(Vec<LocalFile>, Vec<Digests>), Problem> {
        let mut pass = Pass { lock: None, announced: HashSet::new(), meter: Meter::new(self.events.clone()) };
        let mut local = Vec::with_capacity(files.len());
        let mut all = Vec::with_capacity(files.len());
        for (index, file) in files.iter().enumerate() {
            let (path, digests) = self.file(&files[index..], &mut pass).await?;
            local.push(LocalFile {
                name: self.plan.name(file).to_owned(),
                path,
                size: digests.size,
                sha256: digests.sha256.clone(),
            });
            all.push(digests);
        }
        if !pass.announced.is_empty() {
            self.events.send(Event::End);
        }
        Ok((local, all))
    }

    /// Says what is transferred from the first of `files` on, unless that was said.
    fn announce<'f>(&self, files: &[&'f Entry], pass: &mut Pass<'f>) {
        if files.first().is_some_and(|file| pass.announced.contains(file.path.as_str())) {
            return;
        }
        let missing: Vec<&&Entry> =
            files.iter().filter(|file| self.store.hit(self.plan, file).is_none()).collect();
        let bytes = missing.iter().map(|file| file.size).sum::<Option<u64>>();
        self.events.send(Event::Start { files: missing.len(), bytes });
        pass.announced.extend(missing.iter().map(|file| file.path.as_str()));
        pass.meter = Meter::new(self.events.clone());
    }

    async fn lock(&self, file: Option<&Entry>) -> Result<Option<Lock>, Problem> {
        let Some(path) = self.store.lock(self.plan, file) else { return Ok(None) };
        let cannot_write = |error: io::Error| self.disk(&error);
        lock::acquire(&path, &self.store.root(), self.patience, self.events, cannot_write).await.map(Some)
    }

    fn disk(&self, error: &io::Error) -> Problem {
        disk_problem(&self.store.root().path, error, self.store.variable())
    }

    /// Brings the first of `files`; the others are what comes after it.
    async fn file<'f>(
        &self,
        files: &[&'f Entry],
        pass: &mut Pass<'f>,
    ) -> Result<(PathBuf, Digests), Problem> {
        // Invariant: whoever asks for files has one.
        let file = *files.first().ok_or_else(|| Problem::Empty(self.plan.reference.redacted()))?;
        if let Some(hit) = self.verified_hit(file)? {
            return Ok(hit);
        }
        if !self.store.is_cache() {
            return Err(self.not_as_promised(file));
        }
        if let Some(problem) = self.store.obstacle(self.plan, file) {
            return Err(problem);
        }
        if self.plan.offline {
            let damaged = self.store.remains(self.plan, file).map(Problem::Damaged);
            return Err(damaged.unwrap_or_else(|| Problem::Offline(self.protocol.title(&file.path))));
        }
        if pass.lock.is_none() {
            pass.lock = self.lock(None).await?;
        }
        let lock = self.lock(Some(file)).await?;
        // Whoever held the lock may have brought it.
        if let Some(hit) = self.verified_hit(file)? {
            return Ok(hit);
        }
        if let Some(path) = self.store.hit(self.plan, file) {
            self.events.warn(format!("{} is not what it should be: it is fetched again", path.display()));
            self.store.discard(self.plan, file, &path).map_err(|error| self.disk(&error))?;
        }
        let alone = lock.iter().chain(&pass.lock).any(Lock::is_held);
        let temp = self.store.temp(self.plan, file, alone).map_err(|error| self.disk(&error))?;
        self.announce(files, pass);
        let promises = promises(self.plan, file);
        let order = Order {
            name: &file.path,
            size: file.size,
            promises: &promises,
            resumes: !file.coded
                && (file.version_id.is_some()
                    || file.etag.as_deref().is_some_and(|etag| !etag.starts_with("W/"))),
            variable: self.store.variable(),
        };
        let (temp, digests) = transfer::fetch(&order, temp, self.patience, &mut pass.meter, async |start| {
            self.protocol.open(&self.plan.found, file, Range { start, end: None }).await
        })
        .await?;
        let path = self.store.publish(self.plan, file, temp, &digests).map_err(|error| self.disk(&error))?;
        Ok((path, digests))
    }

    /// What is wrong with a file that is not a copy.
    fn not_as_promised(&self, file: &Entry) -> Problem {
        let path = self.store.root().path.join(&file.path);
        let Some(promised) = self.plan.data_sha256.as_deref() else {
            return gone(&path);
        };
        match self.digests(&path, Wanted::default()) {
            Ok(digests) => Problem::Digest {
                kind: "sha256",
                file: file.path.clone(),
                found: short(&digests.sha256),
                promised: short(promised),
                by: self.plan.manifest.as_ref().map(|mark| mark.path.clone()).unwrap_or_default(),
            },
            Err(problem) => problem,
        }
    }

    /// The digests of a file that is here, unless it is all stopped meanwhile.
    fn digests(&self, path: &Path, wanted: Wanted) -> Result<Digests, Problem> {
        match self.read.digests(path, wanted, || transfer::digest_file(path, wanted, self.stop)) {
            Ok(digests) => digests.ok_or(Problem::Interrupted),
            Err(error) if !self.store.is_cache() => Err(cannot_read(path, &error)),
            Err(error) => Err(Problem::CannotRead { path: path.to_owned(), cause: error.to_string() }),
        }
    }

    /// A hit of which there is no doubt; where it is, offline, that is an error. Only bytes that were touched since they
    /// came are read for it.
    pub(crate) fn sound_hit(&self, file: &Entry) -> Result<Option<PathBuf>, Problem> {
        let Some(path) = self.store.hit(self.plan, file) else { return Ok(None) };
        let is_untouched = !self.compares && self.store.is_untouched(self.plan, file);
        if is_untouched || self.verified_hit(file)?.is_some() {
            return Ok(Some(path));
        }
        if self.plan.offline { Err(Problem::Damaged(path)) } else { Ok(None) }
    }

    /// A hit that keeps what was promised of it. What is rehashed is told by the promise of the publisher; a hit
    /// without one is taken by its size and its times, and its digest from the record where there is one. Of a file that
    /// is read here anyway the promise of its source is looked at, too.
    fn verified_hit(&self, file: &Entry) -> Result<Option<(PathBuf, Digests)>, Problem> {
        let Some(path) = self.store.hit(self.plan, file) else { return Ok(None) };
        let mut recorded = self.store.recorded(self.plan, file);
        if !self.compares && self.store.is_untouched(self.plan, file) {
            if self.plan.data_sha256.is_none()
                && let Some(sha256) = recorded
            {
                let size = size_of(&path)?;
                return Ok(Some((path, Digests::known(size, sha256))));
            }
            recorded = None;
        }
        let blob = file.promise.as_ref().filter(|promise| matches!(promise, Promise::GitBlob(_)));
        let git_length = if blob.is_some() { Some(size_of(&path)?) } else { None };
        let digests = self.digests(&path, Wanted { git_length, checksum: None })?;
        let sha256 = self.plan.data_sha256.iter().chain(&recorded);
        let kept = sha256
            .map(|sha256| Promise::Sha256(sha256.clone()))
            .chain(blob.cloned())
            .all(|promise| digests.check(&promise).is_ok());
        if kept {
            self.store.note(file, &path);
        }
        Ok(kept.then_some((path, digests)))
    }
}

fn size_of(path: &Path) -> Result<u64, Problem> {
    std::fs::metadata(path)
        .map(|metadata| metadata.len())
        .map_err(|error| Problem::CannotRead { path: path.to_owned(), cause: error.to_string() })
}
