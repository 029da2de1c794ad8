//! Files of a model repository on the Hub: those that are asked for, at one commit, in the cache.

use std::path::{Path, PathBuf};

use crate::cache::hub::marks::blob_of_copy;
use crate::cache::hub::{HubCache, has_bytes_of};
use crate::digest::{ITS_SOURCE, Promise};
use crate::error::{Problem, SourceError};
use crate::events::{Event, Stop};
use crate::lock;
use crate::names;
use crate::protocol::hub::client::Repo;
use crate::protocol::hub::{Hub, promise};
use crate::protocol::{Entry, Range};
use crate::settings::HUB_CACHE_VARIABLE;
use crate::sources::Sources;
use crate::store::Store as _;
use crate::transfer::{self, Meter, Order, disk_problem};

/// What lies at the root of a model repository at one commit.
#[derive(Clone, Debug)]
pub struct ModelListing {
    /// The repository.
    pub name: String,
    /// The commit that the revision was.
    pub commit: String,
    entries: Vec<Entry>,
}

impl ModelListing {
    /// The names of its files, in order.
    pub fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.path.clone()).collect()
    }
}

/// A repository that a search found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct FoundModel {
    /// Its name, with its owner.
    pub id: String,
    /// Downloads of the last month.
    #[serde(default)]
    pub downloads: u64,
}

/// Whether a file of a cache of the Hub is not what was downloaded: its blob is gone, or has other bytes than those that
/// the name of the blob is the digest of. A copy that links no blob has the name that was noted when it was made, if any.
pub fn is_damaged_copy(path: &Path) -> bool {
    let blob = match path.read_link() {
        Ok(target) => target.file_name().and_then(|name| name.to_str()).map(str::to_owned),
        Err(_) => blob_of_copy(path),
    };
    let Some(blob) = blob.filter(|name| promise(name).is_some()) else { return false };
    if path.metadata().is_err() {
        return path.symlink_metadata().is_ok();
    }
    has_bytes_of(path, &blob, &Stop::default()).is_ok_and(|has| has == Some(false))
}

impl Sources {
    /// Fixes the version of a model repository and lists its root.
    pub fn model(&self, name: &str, revision: &str) -> Result<ModelListing, SourceError> {
        self.about(name.to_owned(), async {
            let repo = Repo::model(name);
            let cache = HubCache::new(&self.settings.hub, &repo);
            let commit = self.hub().commit(&repo, revision).await?;
            if commit != revision {
                cache.keep_ref(revision, &commit);
            }
            let items = self.hub().tree(&repo, &commit, "", false).await?;
            let files =
                items.into_iter().filter(|item| !item.is_folder() && names::fault(&item.path).is_none());
            let mut entries = files.map(Hub::entry).collect::<Result<Vec<_>, _>>()?;
            entries.sort_by(|one, other| one.path.cmp(&other.path));
            Ok(ModelListing { name: name.to_owned(), commit, entries })
        })
    }

    /// Brings some files of a listing into the cache, verified; the folder they lie in.
    pub fn model_files(&self, listing: &ModelListing, wanted: &[&str]) -> Result<PathBuf, SourceError> {
        self.about(listing.name.clone(), async {
            let repo = Repo::model(&listing.name);
            let cache = HubCache::new(&self.settings.hub, &repo);
            let wanted = listing.entries.iter().filter(|entry| wanted.contains(&entry.path.as_str()));
            let missing = self.missing(&cache, &listing.commit, wanted)?;
            let mut meter = None;
            for (index, entry) in missing.iter().enumerate() {
                let later = &missing[index + 1..];
                self.model_file(&repo, &cache, &listing.commit, entry, later, &mut meter).await?;
            }
            if meter.is_some() {
                self.events.send(Event::End);
            }
            Ok(cache.snapshot(&listing.commit))
        })
    }

    /// Those that are not in the cache with their bytes.
    fn missing<'e>(
        &self,
        cache: &HubCache,
        commit: &str,
        entries: impl IntoIterator<Item = &'e Entry>,
    ) -> Result<Vec<&'e Entry>, Problem> {
        let mut missing = Vec::new();
        for entry in entries {
            if !cache.has_whole_file(commit, entry, &self.stop)? {
                missing.push(entry);
            }
        }
        Ok(missing)
    }

    /// Brings a file before those that come `later`. The first that is transferred makes the meter, and says how many
    /// are: while another process is waited for, nothing is.
    async fn model_file(
        &self,
        repo: &Repo,
        cache: &HubCache,
        commit: &str,
        entry: &Entry,
        later: &[&Entry],
        meter: &mut Option<Meter>,
    ) -> Result<(), Problem> {
        let disk = |error: std::io::Error| disk_problem(&self.settings.hub.cache, &error, HUB_CACHE_VARIABLE);
        let patience = &self.settings.patience;
        let lock = match cache.lock_of(entry) {
            Some(path) => Some(lock::acquire(&path, &cache.root(), patience, &self.events, disk).await?),
            None => None,
        };
        // Whoever held the lock may have brought it.
        if cache.has_whole_file(commit, entry, &self.stop)? {
            return Ok(());
        }
        let temp = cache.temp_of(entry, lock.as_ref().is_some_and(lock::Lock::is_held)).map_err(disk)?;
        let promises: Vec<(Promise, String)> =
            entry.promise.iter().map(|promise| (promise.clone(), ITS_SOURCE.to_owned())).collect();
        let order = Order {
            name: &entry.path,
            size: entry.size,
            promises: &promises,
            resumes: entry.etag.is_some(),
            variable: HUB_CACHE_VARIABLE,
        };
        let meter = if let Some(meter) = meter {
            meter
        } else {
            let missing = self.missing(cache, commit, later.iter().copied())?;
            let bytes = missing.iter().chain([&entry]).map(|entry| entry.size).sum();
            self.events.send(Event::Start { files: 1 + missing.len(), bytes });
            meter.insert(Meter::new(self.events.clone()))
        };
        let (temp, _) = transfer::fetch(&order, temp, patience, meter, async |start| {
            self.hub().open(repo, commit, entry, Range { start, end: None }).await
        })
        .await?;
        cache.publish_at(commit, entry, temp).map_err(disk)?;
        Ok(())
    }

    /// The model repositories whose names hold `text`, the most downloaded first.
    pub fn find_models(&self, text: &str) -> Result<Vec<FoundModel>, SourceError> {
        self.about(text.to_owned(), async {
            let mut found = self.hub().search_models(text).await?;
            found.sort_by_key(|model| std::cmp::Reverse(model.downloads));
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_copy_is_damaged_where_its_bytes_are_not_those_of_the_name_of_its_blob() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        // Of "hello\n": its sha256, its git blob id, and its plain sha1.
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        let git = "ce013625030ba8dba906f756967f9e9ca394464a";
        let sha1 = "f572d396fae9206628714fb2ce00f72e94f2258f";
        for (name, known) in [(sha256, true), (git, true), (sha1, true), ("other-etag", false)] {
            let blob = root.path().join(name);
            std::fs::write(&blob, "hello\n").unwrap();
            symlink(&blob, &file).unwrap();
            assert!(!is_damaged_copy(&file), "{name}");
            // Newer clients share what lies behind blobs.
            let shared = root.path().join("shared");
            std::fs::rename(&blob, &shared).unwrap();
            symlink(&shared, &blob).unwrap();
            assert!(!is_damaged_copy(&file), "{name}");
            std::fs::write(&shared, "Hello\n").unwrap();
            assert_eq!(is_damaged_copy(&file), known, "{name}");
            std::fs::remove_file(&shared).unwrap();
            assert_eq!(is_damaged_copy(&file), known, "{name}");
            std::fs::remove_file(&file).unwrap();
            assert!(!is_damaged_copy(&file), "there is none");
        }
        std::fs::write(&file, "a copy by itself").unwrap();
        assert!(!is_damaged_copy(&file));
    }

    #[test]
    fn a_whole_copy_is_not_fetched_whatever_digest_names_its_blob() {
        let home = tempfile::tempdir().unwrap();
        let commit = "c".repeat(40);
        let variables = [("HOME", home.path().to_str().unwrap()), ("HF_ENDPOINT", "http://127.0.0.1:9")];
        let settings =
            crate::Settings::of(&variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let stop = Stop::default();
        let sources = Sources::new(settings.unwrap(), crate::Events::none(), stop.clone());
        let cache = HubCache::new(&sources.settings.hub, &Repo::model("org/m"));
        // The sha256 of "hello\n", its git blob id, and its plain sha1.
        let blobs = [
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
            "ce013625030ba8dba906f756967f9e9ca394464a",
            "f572d396fae9206628714fb2ce00f72e94f2258f",
        ];
        let mut entries = Vec::new();
        for blob in blobs {
            let entry = Entry {
                path: blob.to_owned(),
                size: Some(6),
                etag: Some(blob.to_owned()),
                promise: promise(blob),
                ..Entry::default()
            };
            cache.keep_small_file(&commit, &entry, b"hello\n");
            entries.push(entry);
        }
        let listing = ModelListing { name: "org/m".into(), commit: commit.clone(), entries };
        assert_eq!(sources.model_files(&listing, &blobs).unwrap(), cache.snapshot(&commit));
        for entry in &listing.entries {
            std::fs::write(cache.snapshot(&commit).join(&entry.path), "Hello\n").unwrap();
            assert!(!cache.has_whole_file(&commit, entry, &stop).unwrap(), "{}", entry.path);
        }
        // Whoever is told to stop reads no large file to its end.
        stop.now();
        let stopped = cache.has_whole_file(&commit, &listing.entries[1], &stop);
        assert!(matches!(stopped, Err(Problem::Interrupted)));
    }
}
