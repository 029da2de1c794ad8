//! The Hugging Face cache, in the layout of the Python client: each reads what the other fetched.
//!
//! ```text
//! <root>/datasets--<org>--<repo>/blobs/<etag>                  content
//!                               /snapshots/<commit>/<path>     link to the blob
//!                               /refs/<revision>               commit
//!                               /.no_exist/<commit>/<path>     proven absence
//!                               /trees/<commit>.json           complete listing
//!                               /.aiperf/<commit>/…            listings of folders; see `listings`
//!                               /.aiperf/files/…               which bytes were compared; see `marks`
//! <root>/.locks/datasets--<org>--<repo>/<etag>.lock
//! ```

mod listings;
pub(crate) mod marks;

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::real::Real;
use crate::digest::{Checksum, Digests, Promise, Wanted, digests_of};
use crate::error::Problem;
use crate::events::Stop;
use crate::names;
use crate::plan::Plan;
use crate::protocol::Entry;
use crate::protocol::hub::client::Repo;
use crate::protocol::hub::promise;
use crate::reference::{Reference, is_commit};
use crate::settings::{HUB_CACHE_VARIABLE, HubSettings};
use crate::store::Store;
use crate::temp::{self, Leftover, Root, TempFile};
use crate::transfer::digest_file;

/// The cache of one repository.
#[derive(Debug)]
pub(crate) struct HubCache {
    root: PathBuf,
    folder: String,
    copies: bool,
    real: Real,
}

impl HubCache {
    pub(crate) fn new(settings: &HubSettings, repo: &Repo) -> HubCache {
        HubCache {
            root: settings.cache.clone(),
            folder: repo.folder(),
            copies: settings.copies,
            real: Real::default(),
        }
    }

    fn repo(&self) -> PathBuf {
        self.root.join(&self.folder)
    }

    fn blob(&self, etag: &str) -> PathBuf {
        self.repo().join("blobs").join(etag)
    }

    /// Where a file of a snapshot lies; `None` for a name or a commit that cannot be part of a path.
    fn pointer(&self, commit: &str, path: &str) -> Option<PathBuf> {
        (is_commit(commit) && names::fault(path).is_none())
            .then(|| self.repo().join("snapshots").join(commit).join(path))
    }

    /// Whether `path` ends, through links, in a regular file of this size inside the root.
    fn is_whole(&self, path: &Path, size: Option<u64>) -> bool {
        self.real.file(&self.root, path).is_some_and(|length| size.is_none_or(|size| size == length))
    }

    fn find(&self, commit: &str, file: &Entry) -> Option<PathBuf> {
        let pointer = self.pointer(commit, &file.path)?;
        if self.is_whole(&pointer, file.size) {
            // A link to another blob is not this file.
            let other = std::fs::read_link(&pointer).is_ok_and(|target| {
                let name = target.file_name().and_then(|name| name.to_str()).map(str::to_owned);
                file.etag.is_some()
                    && name.is_some_and(|name| promise(&name).is_some() && Some(name) != file.etag)
            });
            if !other {
                return Some(pointer);
            }
        }
        let blob = self.blob(file.etag.as_deref().filter(|etag| promise(etag).is_some())?);
        if !self.is_whole(&blob, file.size) {
            return None;
        }
        // Fetched under another name or commit: linked where that can be written.
        if !self.copies && self.link(commit, file).is_ok() { Some(pointer) } else { Some(blob) }
    }

    /// What lies in the place of a file and is not whole.
    pub(crate) fn remains_of(&self, commit: &str, file: &Entry) -> Option<PathBuf> {
        let blob = file.etag.as_deref().filter(|etag| promise(etag).is_some()).map(|etag| self.blob(etag));
        let places = self.pointer(commit, &file.path).into_iter().chain(blob);
        places.into_iter().find(|path| self.is_whole(path, None))
    }

    pub(crate) fn has_file(&self, commit: &str, file: &Entry) -> bool {
        self.find(commit, file).is_some()
    }

    /// Whether a file is here with the bytes that its blob id says; an error once `stop` is set.
    pub(crate) fn has_whole_file(&self, commit: &str, file: &Entry, stop: &Stop) -> Result<bool, Problem> {
        let Some(path) = self.find(commit, file) else { return Ok(false) };
        let Some(etag) = file.etag.as_deref() else { return Ok(true) };
        match has_bytes_of(&path, etag, stop) {
            Ok(has) => has.ok_or(Problem::Interrupted),
            Err(_) => Ok(false),
        }
    }

    /// The bytes of a manifest that is here; an error where they are not what its blob id says.
    pub(crate) fn small_file(&self, commit: &str, file: &Entry) -> Result<Option<Vec<u8>>, Problem> {
        let Some(path) = self.find(commit, file) else { return Ok(None) };
        let bytes = std::fs::read(&path)
            .map_err(|error| Problem::CannotRead { path: path.clone(), cause: error.to_string() })?;
        let kept = file.promise.as_ref().is_none_or(|promise| digests_of(&bytes).check(promise).is_ok());
        if kept { Ok(Some(bytes)) } else { Err(Problem::Damaged(path)) }
    }

    /// Keeps a manifest. What cannot be written is asked for again next time.
    pub(crate) fn keep_small_file(&self, commit: &str, file: &Entry, bytes: &[u8]) {
        let Some(etag) = file.etag.as_deref().filter(|etag| promise(etag).is_some()) else { return };
        let _ = self
            .prepare()
            .and_then(|()| self.write(&self.blob(etag), bytes))
            .and_then(|()| self.place(commit, file).map(|_| ()));
    }

    /// Keeps what a revision is.
    pub(crate) fn keep_ref(&self, revision: &str, commit: &str) {
        let path = self.repo().join("refs").join(revision);
        if names::fault(revision).is_some() || std::fs::read(&path).is_ok_and(|old| old == commit.as_bytes())
        {
            return;
        }
        let _ = self.prepare().and_then(|()| self.write(&path, commit.as_bytes()));
    }

    /// The commit that a revision was when it was last asked for, and when it first was (nanoseconds of wall time).
    pub(crate) fn kept_ref(&self, revision: &str) -> Option<(String, Option<u64>)> {
        let path = self.repo().join("refs").join(revision);
        let commit = std::fs::read_to_string(&path).ok()?.trim().to_owned();
        let modified = std::fs::metadata(&path).and_then(|found| found.modified()).ok();
        let since = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        is_commit(&commit).then_some((commit, since.map(aiperf_clock::nanos)))
    }

    /// Keeps that a path does not exist at a commit.
    pub(crate) fn keep_absence(&self, commit: &str, path: &str) {
        if !is_commit(commit) || names::fault(path).is_some() {
            return;
        }
        let marker = self.absence(commit, path);
        if !marker.exists() {
            let _ = self.prepare().and_then(|()| self.write(&marker, b""));
        }
    }

    fn absence(&self, commit: &str, path: &str) -> PathBuf {
        self.repo().join(".no_exist").join(commit).join(path)
    }

    /// Whether a path is known not to exist at a commit.
    pub(crate) fn is_absent(&self, commit: &str, path: &str) -> bool {
        is_commit(commit) && names::fault(path).is_none() && self.absence(commit, path).is_file()
    }

    /// Whether anything of a commit is here.
    pub(crate) fn has_snapshot(&self, commit: &str) -> bool {
        is_commit(commit) && self.repo().join("snapshots").join(commit).is_dir()
    }

    /// Whether a commit was read before: a file of it is here, or what it lists.
    pub(crate) fn knows(&self, commit: &str) -> bool {
        self.has_snapshot(commit) || self.listing(commit, "").is_some()
    }

    /// What keeps from knowing what is here of a commit or a revision.
    pub(crate) fn barrier(&self, name: &str) -> Option<Problem> {
        let path = if is_commit(name) { self.snapshot(name) } else { self.repo().join("refs").join(name) };
        temp::obstacle(&path, self.variable()).filter(|_| !path.is_dir())
    }

    /// The one commit that is here whose id begins so.
    pub(crate) fn commit_of(&self, start: &str) -> Option<String> {
        const FEWEST: usize = 7;
        let hexadecimal = start.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if start.len() < FEWEST || !hexadecimal {
            return None;
        }
        let snapshots = std::fs::read_dir(self.repo().join("snapshots")).ok()?;
        let mut found = snapshots
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(start) && self.has_snapshot(name));
        found.next().filter(|_| found.next().is_none())
    }

    /// Where the files of a commit lie.
    pub(crate) fn snapshot(&self, commit: &str) -> PathBuf {
        self.repo().join("snapshots").join(commit)
    }

    /// The lock of a file's blob.
    pub(crate) fn lock_of(&self, file: &Entry) -> Option<PathBuf> {
        let etag = file.etag.as_deref().filter(|etag| promise(etag).is_some())?;
        Some(self.root.join(".locks").join(&self.folder).join(format!("{etag}.lock")))
    }

    /// A file to fetch into. What killed runs of this program left is removed: of this file where its lock is held
    /// (the caller is `alone`), of others after a day. The Python client goes on with its own.
    pub(crate) fn temp_of(&self, file: &Entry, alone: bool) -> io::Result<TempFile> {
        const ENDING: &str = ".incomplete";
        self.prepare()?;
        let blobs = self.repo().join("blobs");
        let stem = format!("{}.", file.etag.as_deref().unwrap_or("file"));
        temp::sweep(&blobs, |name| match temp::is_temp(name, None, ENDING) {
            true if alone && temp::is_temp(name, Some(&stem), ENDING) => Leftover::Yes,
            true => Leftover::Perhaps,
            false => Leftover::No,
        });
        TempFile::create(&blobs, &stem, ENDING)
    }

    /// Gives a fetched file its name, and its place in a commit; where it lies then.
    pub(crate) fn publish_at(&self, commit: &str, file: &Entry, temp: TempFile) -> io::Result<PathBuf> {
        // Invariant: entries of a Hub have an etag that is a digest.
        let etag = file.etag.as_deref().unwrap_or_default();
        temp.place(&self.blob(etag))?;
        let path = self.place(commit, file)?;
        self.mark(&path, etag);
        Ok(path)
    }

    /// Whether a path of a snapshot is a folder.
    pub(crate) fn is_folder(&self, commit: &str, path: &str) -> bool {
        if path.is_empty() {
            return self.has_snapshot(commit);
        }
        self.pointer(commit, path).is_some_and(|folder| folder.is_dir())
    }

    /// A file of a snapshot, as its link tells it.
    pub(crate) fn snapshot_file(&self, commit: &str, path: &str) -> Option<Entry> {
        let pointer = self.pointer(commit, path)?;
        if !self.is_whole(&pointer, None) {
            return None;
        }
        let etag = std::fs::read_link(&pointer)
            .ok()
            .and_then(|target| target.file_name().and_then(|name| name.to_str()).map(str::to_owned))
            .or_else(|| marks::blob_of_copy(&pointer))
            .filter(|name| promise(name).is_some());
        Some(Entry {
            path: path.to_owned(),
            size: std::fs::metadata(&pointer).ok().map(|found| found.len()),
            promise: etag.as_deref().and_then(promise),
            etag,
            ..Entry::default()
        })
    }

    /// Every file of a snapshot below a folder, sorted.
    pub(crate) fn snapshot_files(&self, commit: &str, folder: &str) -> Vec<Entry> {
        const DEEPEST: usize = 64;
        let mut found = Vec::new();
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let directory = if folder.is_empty() {
                Some(self.repo().join("snapshots").join(commit))
            } else {
                self.pointer(commit, &folder)
            };
            let Some(Ok(entries)) = directory.map(std::fs::read_dir) else { continue };
            for entry in entries.flatten() {
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if depth < DEEPEST {
                        folders.push((path, depth + 1));
                    }
                } else if let Some(file) = self.snapshot_file(commit, &path) {
                    found.push(file);
                }
            }
        }
        found.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
        found
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.directory_of(path)?;
        temp::write(path, bytes)
    }

    /// Directories and the tag that keeps backups away.
    fn prepare(&self) -> io::Result<()> {
        self.root().directory(&self.repo().join("blobs"))?;
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            let text = "Signature: 8a477f597d28d172789f06886806bc55\n\
                        # This file is a cache directory tag created by huggingface_hub.\n\
                        # For information about cache directory tags, see:\n\
                        #\thttps://bford.info/cachedir/\n";
            self.write(&tag, text.as_bytes())?;
        }
        Ok(())
    }

    /// Links or copies a blob into its snapshot; where it lies then.
    fn place(&self, commit: &str, file: &Entry) -> io::Result<PathBuf> {
        let unsafe_name = || io::Error::other("a name that cannot be a path");
        let pointer = self.pointer(commit, &file.path).ok_or_else(unsafe_name)?;
        self.mark_partial(commit)?;
        if !self.copies && self.link(commit, file).is_ok() {
            return Ok(pointer);
        }
        let blob = self.blob(file.etag.as_deref().ok_or_else(unsafe_name)?);
        let directory = self.directory_of(&pointer)?;
        let copy = TempFile::create(&directory, ".", ".incomplete")?;
        io::copy(&mut std::fs::File::open(&blob)?, &mut copy.file())?;
        copy.file().sync_all()?;
        copy.place(&pointer)?;
        Ok(pointer)
    }

    fn link(&self, commit: &str, file: &Entry) -> io::Result<()> {
        let unsafe_name = || io::Error::other("a name that cannot be a path");
        let pointer = self.pointer(commit, &file.path).ok_or_else(unsafe_name)?;
        let etag = file.etag.as_deref().ok_or_else(unsafe_name)?;
        self.mark_partial(commit)?;
        let up = "../".repeat(file.path.matches('/').count() + 2);
        let directory = self.directory_of(&pointer)?;
        // Under a name of its own first, so that a link that is there is replaced at once.
        let random = TempFile::create(&directory, ".", ".link")?;
        let name = random.path().to_owned();
        drop(random);
        symlink(format!("{up}blobs/{etag}"), &name)?;
        std::fs::rename(&name, &pointer).inspect_err(|_| {
            let _ = std::fs::remove_file(&name);
        })
    }

    /// Makes the directory of a file, and sees that no link leads it out of the root.
    fn directory_of(&self, pointer: &Path) -> io::Result<PathBuf> {
        let directory = pointer.parent().ok_or_else(|| io::Error::other("a file lies in a directory"))?;
        self.root().directory(directory)?;
        Ok(directory.to_owned())
    }
}

/// Whether a file has the bytes that the blob of this name has; a name that is no digest says nothing of them. `None` once
/// `stop` is set.
pub(crate) fn has_bytes_of(path: &Path, blob: &str, stop: &Stop) -> io::Result<Option<bool>> {
    let Some(promise) = promise(blob) else { return Ok(Some(true)) };
    let wanted = match &promise {
        // Other stores that speak like the Hub name blobs by their plain sha1.
        Promise::GitBlob(_) => {
            Wanted { git_length: Some(path.metadata()?.len()), checksum: Some(Checksum::Sha1) }
        }
        _ => Wanted::default(),
    };
    let digests = digest_file(path, wanted, stop)?;
    Ok(digests.map(|digests| {
        let is_plain = digests.stored.as_ref().is_some_and(|(_, sum)| sum == blob);
        is_plain || digests.check(&promise).is_ok()
    }))
}

fn commit_of(plan: &Plan) -> &str {
    plan.found.commit.as_deref().unwrap_or_default()
}

impl Store for HubCache {
    fn hit(&self, plan: &Plan, file: &Entry) -> Option<PathBuf> {
        self.find(commit_of(plan), file)
    }

    fn lock(&self, _: &Plan, file: Option<&Entry>) -> Option<PathBuf> {
        self.lock_of(file?)
    }

    fn temp(&self, _: &Plan, file: &Entry, alone: bool) -> io::Result<TempFile> {
        self.temp_of(file, alone)
    }

    fn publish(&self, plan: &Plan, file: &Entry, temp: TempFile, _: &Digests) -> io::Result<PathBuf> {
        self.publish_at(commit_of(plan), file, temp)
    }

    fn discard(&self, plan: &Plan, file: &Entry, path: &Path) -> io::Result<()> {
        let blob = file.etag.as_deref().map(|etag| self.blob(etag));
        for path in
            [Some(path.to_owned()), blob, self.pointer(commit_of(plan), &file.path)].into_iter().flatten()
        {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(&self, plan: &Plan, _: &[Digests]) -> Result<(), Problem> {
        // Only now: offline a branch is the newest commit that is here.
        if let Reference::Hub(reference) = &plan.reference
            && reference.commit().is_none()
            && !plan.offline
        {
            self.keep_ref(reference.revision(), commit_of(plan));
        }
        Ok(())
    }

    fn recorded(&self, _: &Plan, file: &Entry) -> Option<String> {
        match file.etag.as_deref().and_then(promise) {
            Some(Promise::Sha256(sha256)) => Some(sha256),
            _ => None,
        }
    }

    fn is_untouched(&self, plan: &Plan, file: &Entry) -> bool {
        let Some(etag) = file.etag.as_deref() else { return false };
        self.hit(plan, file).is_some_and(|path| self.is_marked(&path, etag))
    }

    fn note(&self, file: &Entry, path: &Path) {
        if let Some(etag) = file.etag.as_deref().filter(|etag| promise(etag).is_some()) {
            self.mark(path, etag);
        }
    }

    fn remains(&self, plan: &Plan, file: &Entry) -> Option<PathBuf> {
        self.remains_of(commit_of(plan), file)
    }

    fn obstacle(&self, plan: &Plan, file: &Entry) -> Option<Problem> {
        let blob = file.etag.as_deref().map(|etag| self.blob(etag));
        let pointer = self.pointer(commit_of(plan), &file.path);
        blob.iter().chain(&pointer).find_map(|path| temp::obstacle(path, self.variable()))
    }

    fn variable(&self) -> &'static str {
        HUB_CACHE_VARIABLE
    }

    fn root(&self) -> Root {
        Root { path: self.root.clone(), mode: 0o777 }
    }
}
