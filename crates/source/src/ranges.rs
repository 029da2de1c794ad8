//! A file of the Hub of which only some bytes are needed. What was read stays in the cache:
//!
//! ```text
//! <root>/v1/ranges/<etag>/<first>-<last>      the bytes from first to last, both inclusive
//! ```

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cache::hub::HubCache;
use crate::error::{Problem, SourceError};
use crate::events::{Event, Events};
use crate::http::{Failure, retrying};
use crate::hub_files::HubFiles;
use crate::plan::Plan;
use crate::protocol::hub::offline::OfflineHub;
use crate::protocol::hub::{Hub, promise};
use crate::protocol::{Entry, Protocol as _, Range as Wanted};
use crate::settings::REMOTE_CACHE_VARIABLE;
use crate::sources::Sources;
use crate::temp::{self, Leftover, TempFile};
use crate::transfer::{Meter, check_space, disk_problem};

/// Bytes between two ranges that are fetched rather than asked for around.
const GAP: u64 = 4 << 10;
/// The end of a file, where its index is, is fetched at once: this share of the file, and no more than so many bytes.
const TAIL_SHARE: u64 = 64;
const TAIL_MOST: u64 = 64 << 10;
/// Bytes that are read ahead where nobody says what is read next.
const AHEAD: u64 = 4 << 20;
/// Transfers of fewer bytes are over before anyone could read of them.
const WORTH_SAYING: u64 = 8 << 20;

/// A file of a repository at a commit, read by ranges; read from the cache where it is there as a whole.
#[derive(Debug)]
pub struct RangedFile {
    sources: Arc<Sources>,
    files: HubFiles,
    plan: Plan,
    entry: Entry,
    size: u64,
    /// The whole file, where the cache holds it.
    whole: Option<File>,
    /// Where its ranges are kept.
    folder: PathBuf,
    /// Ranges that are here, by their start.
    kept: Mutex<Vec<Range<u64>>>,
    /// The range that was read last.
    last: Mutex<Option<(Range<u64>, Arc<File>)>>,
    fetched: AtomicU64,
}

impl Sources {
    /// Opens a file to read ranges of it. Nothing is asked of the network before some are read.
    pub fn hub_ranged(self: &Arc<Sources>, files: &HubFiles, path: &str) -> Result<RangedFile, SourceError> {
        let files = files.only(path)?;
        let entry = files.entry(path)?;
        let plan = files.plan(entry.clone());
        let about = |problem: Problem| problem.about(plan.reference.redacted());
        let cache = HubCache::new(&self.settings.hub, files.repo());
        let sound = self.run(&plan.reference, async {
            if files.is_offline() {
                let (reference, events) = (files.reference(), &self.events);
                let protocol = OfflineHub { cache: &cache, reference, events };
                return self.work(&protocol, &cache, &plan).sound_hit(&entry);
            }
            let protocol =
                Hub { client: self.hub(), cache: &cache, reference: files.reference(), repo: files.repo() };
            self.work(&protocol, &cache, &plan).sound_hit(&entry)
        })?;
        let whole = match sound {
            None => None,
            Some(path) => Some(File::open(&path).map_err(|error| {
                about(Problem::CannotRead { path: path.clone(), cause: error.to_string() })
            })?),
        };
        // Only digests become part of a path. A copy in a snapshot has none, and needs none.
        let etag = entry.etag.as_deref().filter(|etag| promise(etag).is_some());
        let (Some(size), true) = (entry.size, etag.is_some() || whole.is_some()) else {
            return Err(about(Problem::Offline(entry.path.clone())));
        };
        let folder = self.settings.remote_cache.join("v1/ranges").join(etag.unwrap_or_default());
        let kept = Mutex::new(if whole.is_some() { Vec::new() } else { kept_in(&folder, size) });
        let sources = Arc::clone(self);
        Ok(RangedFile {
            sources,
            files,
            plan,
            entry,
            size,
            whole,
            folder,
            kept,
            last: Mutex::default(),
            fetched: AtomicU64::new(0),
        })
    }
}

impl RangedFile {
    /// Bytes of the whole file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that came over the network.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Brings what is missing of these ranges into the cache; those that nearly touch with one request.
    pub fn bring(&self, ranges: &[Range<u64>]) -> Result<(), SourceError> {
        if self.whole.is_some() {
            return Ok(());
        }
        let missing = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            joined(ranges, self.size, GAP)
                .into_iter()
                .flat_map(|range| missing(range, &kept))
                .collect::<Vec<_>>()
        };
        if missing.is_empty() { Ok(()) } else { self.fetch(&missing) }
    }

    /// Bytes from `start` on that are here.
    pub fn here(&self, start: u64) -> u64 {
        match &self.whole {
            Some(_) => self.size.saturating_sub(start),
            None => self.covering(start).map_or(0, |range| range.end - start),
        }
    }

    /// Fills `buffer` with the bytes from `start` on, which are brought where they are not here.
    pub fn read_at(&self, start: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let end = start.saturating_add(buffer.len() as u64);
        if end > self.size {
            let what = format!("bytes {start} to {end} of {}, which has {}", self.entry.path, self.size);
            return Err(self.about(Problem::CutShort { file: self.entry.path.clone(), what }));
        }
        if let Some(file) = &self.whole {
            return file.read_exact_at(buffer, start).map_err(|error| {
                self.about(Problem::CannotRead {
                    path: PathBuf::from(&self.entry.path),
                    cause: error.to_string(),
                })
            });
        }
        let mut at = start;
        let mut brought = false;
        while at < end {
            let Some(range) = self.covering(at) else {
                brought = true;
                self.bring(&[self.around(at..end)])?;
                continue;
            };
            let upto = range.end.min(end);
            let part = &mut buffer[(at - start) as usize..(upto - start) as usize];
            match self.opened(&range).and_then(|file| file.read_exact_at(part, at - range.start)) {
                Ok(()) => at = upto,
                // Gone since it was listed: once more.
                Err(_) if !brought => {
                    self.kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|kept| *kept != range);
                }
                Err(error) => {
                    let path = self.path_of(&range);
                    return Err(self.about(Problem::CannotRead { path, cause: error.to_string() }));
                }
            }
        }
        Ok(())
    }

    /// What to fetch when this is needed and missing.
    fn around(&self, needed: Range<u64>) -> Range<u64> {
        let columnar = self.entry.path.to_ascii_lowercase().ends_with(".parquet");
        if !columnar {
            return needed.start..needed.end.max(needed.start.saturating_add(AHEAD)).min(self.size);
        }
        let tail = self.size.saturating_sub((self.size / TAIL_SHARE).min(TAIL_MOST));
        let start = if needed.end == self.size { needed.start.min(tail) } else { needed.start };
        start..needed.end
    }

    fn covering(&self, at: u64) -> Option<Range<u64>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|range| range.contains(&at)).max_by_key(|range| range.end).cloned()
    }

    fn opened(&self, range: &Range<u64>) -> io::Result<Arc<File>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, file)) = &*last
            && of == range
        {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(open(&self.path_of(range))?);
        *last = Some((range.clone(), Arc::clone(&file)));
        Ok(file)
    }

    fn path_of(&self, range: &Range<u64>) -> PathBuf {
        self.folder.join(format!("{}-{}", range.start, range.end - 1))
    }

    fn about(&self, problem: Problem) -> SourceError {
        problem.about(self.plan.reference.redacted())
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<(), SourceError> {
        let Sources { settings, events, .. } = &*self.sources;
        if self.files.is_offline() {
            let range = &ranges[0];
            let what = format!("bytes {} to {} of {}", range.start, range.end - 1, self.entry.path);
            let cache = HubCache::new(&settings.hub, self.files.repo());
            let damaged = cache.remains_of(self.files.commit(), &self.entry).map(Problem::Damaged);
            return Err(self.about(damaged.unwrap_or(Problem::Offline(what))));
        }
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let events = if bytes < WORTH_SAYING { &Events::none() } else { events };
        let disk = |error: io::Error| disk_problem(&settings.remote_cache, &error, REMOTE_CACHE_VARIABLE);
        let work = async {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(disk)?;
            check_space(&self.folder, bytes, REMOTE_CACHE_VARIABLE)?;
            temp::sweep(&self.folder, |name| {
                if name.ends_with(".incomplete") { Leftover::Perhaps } else { Leftover::No }
            });
            let mut meter = Meter::new(events.clone());
            for range in ranges {
                let temp = self.receive(range, &mut meter).await?;
                temp.file().sync_all().and_then(|()| temp.place(&self.path_of(range))).map_err(disk)?;
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(range.clone());
                kept.sort_by_key(|range| range.start);
            }
            Ok(())
        };
        events.send(Event::Start { files: ranges.len(), bytes: Some(bytes) });
        let result = self.sources.run(&self.plan.reference, work);
        events.send(Event::End);
        result
    }

    /// Brings the bytes of a range into a file without a name. A transfer that was cut goes on where it ended.
    async fn receive(&self, range: &Range<u64>, meter: &mut Meter) -> Result<TempFile, Problem> {
        let Sources { settings, .. } = &*self.sources;
        let disk = |error: io::Error| disk_problem(&settings.remote_cache, &error, REMOTE_CACHE_VARIABLE);
        let repo = self.files.repo();
        let cache = HubCache::new(&settings.hub, repo);
        let protocol =
            Hub { client: self.sources.hub(), cache: &cache, reference: self.files.reference(), repo };
        let temp = TempFile::create(&self.folder, ".", ".incomplete").map_err(disk)?;
        let mut at = range.start;
        retrying(&settings.patience, async || {
            let wanted = Wanted { start: at, end: Some(range.end) };
            let mut body = protocol.open(&self.plan.found, &self.entry, wanted).await?;
            if let Some(total) = body.total
                && total != self.size
            {
                return Err(Problem::Changed(self.entry.path.clone()).into());
            }
            let cut = |what| Failure::transient(Problem::CutShort { file: self.entry.path.clone(), what });
            // Where ranges are not served the bytes before are read and dropped.
            let mut skip = at - body.start.min(at);
            let ranged = body.start == wanted.start && body.start > 0;
            while at < range.end {
                let Some(chunk) = body.chunk().await? else { break };
                let dropped = skip.min(chunk.len() as u64);
                skip -= dropped;
                let chunk = &chunk[dropped as usize..];
                let taken = (range.end - at).min(chunk.len() as u64) as usize;
                if ranged && taken < chunk.len() {
                    return Err(cut("more bytes came than were asked for".to_owned()));
                }
                temp.file().write_all(&chunk[..taken]).map_err(disk)?;
                at += taken as u64;
                self.fetched.fetch_add(taken as u64, Ordering::Relaxed);
                meter.add(taken as u64);
            }
            if at == range.end {
                return Ok(());
            }
            let (came, of) = (at - range.start, range.end - range.start);
            Err(cut(format!("{came} of the {of} bytes from {} on came", range.start)))
        })
        .await?;
        Ok(temp)
    }
}

/// Opens a kept range; never through a link.
fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)
}

/// The ranges that lie in a folder whole, by their start.
fn kept_in(folder: &Path, size: u64) -> Vec<Range<u64>> {
    let range_of = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let (first, last) = name.to_str()?.split_once('-')?;
        let range = first.parse::<u64>().ok()?..last.parse::<u64>().ok()?.checked_add(1)?;
        let found = entry.metadata().ok()?;
        let whole = found.is_file() && found.len() == range.end.checked_sub(range.start)?;
        (whole && range.end <= size && range.start < range.end).then_some(range)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kept: Vec<Range<u64>> = entries.filter_map(range_of).collect();
    kept.sort_by_key(|range| range.start);
    kept
}

/// The ranges in order, those with at most `gap` bytes between them as one, none beyond `size`.
fn joined(ranges: &[Range<u64>], size: u64, gap: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> = ranges
        .iter()
        .map(|range| range.start..range.end.min(size))
        .filter(|range| range.start < range.end)
        .collect();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The parts of a range that are not among those `kept`, which are in the order of their starts.
fn missing(range: Range<u64>, kept: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut at = range.start;
    for kept in kept {
        if kept.end <= at || kept.start >= range.end {
            continue;
        }
        if kept.start > at {
            found.push(at..kept.start);
        }
        at = kept.end;
    }
    if at < range.end {
        found.push(at..range.end);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_that_nearly_touch_are_one() {
        assert_eq!(joined(&[30..40, 0..10, 12..20, 95..200], 100, 2), [0..20, 30..40, 95..100]);
        assert_eq!(joined(&[5..5, 200..300], 100, 2), []);
    }

    #[test]
    fn only_whole_ranges_of_the_file_are_taken_for_kept() {
        let folder = tempfile::tempdir().unwrap();
        for (name, length) in [
            ("0-9", 10),
            ("20-29", 9),
            ("30-20", 1),
            ("90-109", 20),
            ("x-3", 4),
            (".a.incomplete", 3),
            ("40-44", 5),
        ] {
            std::fs::write(folder.path().join(name), vec![0; length]).unwrap();
        }
        std::os::unix::fs::symlink("0-9", folder.path().join("50-59")).unwrap();
        assert_eq!(kept_in(folder.path(), 100), [0..10, 40..45]);
        assert_eq!(kept_in(&folder.path().join("none"), 100), []);
    }

    proptest! {
        #[test]
        fn what_is_kept_and_what_is_missing_make_the_range(
            range in (0u64..60, 1u64..60),
            kept in prop::collection::vec((0u64..100, 1u64..30), 0..6),
        ) {
            let range = range.0..range.0 + range.1;
            let mut kept: Vec<_> = kept.into_iter().map(|(start, length)| start..start + length).collect();
            kept.sort_by_key(|range| range.start);
            let missing = missing(range.clone(), &kept);
            for at in 0..130 {
                let here = kept.iter().any(|range| range.contains(&at));
                let asked = missing.iter().filter(|range| range.contains(&at)).count();
                prop_assert_eq!(asked, usize::from(range.contains(&at) && !here));
            }
        }
    }
}
