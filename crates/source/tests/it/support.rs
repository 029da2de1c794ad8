//! A machine with a cache of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiperf_source::{
    Ask, Event, Events, Format, Formats, Local, Parquet, Patience, Plan, Reference, Settings, SourceError,
    Sources, Stop,
};
use tempfile::TempDir;

/// The formats that the tests know.
pub(crate) struct Known;

impl Formats for Known {
    fn find(&self, name: &str) -> Option<Format> {
        let reads = |name, parquet| Format { name, parquet, ..Format::default() };
        Some(match name {
            "mooncake_trace" => Format { block_size: true, ..reads("mooncake_trace", Parquet::FileOrShards) },
            "single_turn" => reads("single_turn", Parquet::FileOrShards),
            "baseten_trace" => Format { arrow: true, ..reads("baseten_trace", Parquet::File) },
            "inputs_json" => reads("inputs_json", Parquet::No),
            "raw_payload" => Format { folder: true, ..reads("raw_payload", Parquet::No) },
            "dag_jsonl" => Format { needs_stop: true, ..reads("dag_jsonl", Parquet::No) },
            _ => return None,
        })
    }
}

/// What a run brings when nothing is given.
pub(crate) fn ask() -> Ask<'static> {
    Ask {
        format: None,
        endpoint_type: Some("chat"),
        has_stop: false,
        max_context_length: None,
        formats: &Known,
        own_version: "0.14.0",
    }
}

/// A machine.
pub(crate) struct Machine {
    pub(crate) home: TempDir,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    pub(crate) stop: Stop,
    /// Changes how long it waits.
    pub(crate) patience: fn(&mut Patience),
    /// It reads what it has, as `aiperf dataset fetch` does.
    pub(crate) compares: bool,
}

impl Machine {
    pub(crate) fn new(variables: &[(&str, &str)]) -> Machine {
        let home = tempfile::tempdir().unwrap();
        let mut all: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.insert("HOME".into(), home.path().to_str().unwrap().to_owned());
        Machine {
            home,
            variables: all,
            events: Arc::default(),
            stop: Stop::default(),
            patience: |_| {},
            compares: false,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn sources(&self) -> Sources {
        let mut settings = Settings::of(&self.variables).unwrap();
        settings.patience.between_attempts = [Duration::from_millis(1); 2];
        settings.patience.say_again = Duration::from_millis(100);
        (self.patience)(&mut settings.patience);
        settings.compares = self.compares;
        let events = Arc::clone(&self.events);
        Sources::new(settings, Events::to(move |event| events.lock().unwrap().push(event)), self.stop.clone())
    }

    pub(crate) fn access(&self, reference: &str, ask: &Ask<'_>) -> Result<Plan, SourceError> {
        self.sources().access(&Reference::parse(reference)?, ask)
    }

    pub(crate) fn fetch(&self, reference: &str, ask: &Ask<'_>) -> Result<Local, SourceError> {
        let sources = self.sources();
        let plan = sources.access(&Reference::parse(reference)?, ask)?;
        sources.fetch(&plan)
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|event| match event {
                Event::Note { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn hub_cache(&self) -> PathBuf {
        self.home.path().join(".cache/huggingface/hub")
    }
}

/// Writes other bytes, or the same, and puts the time back, as who copies them with `cp -p` does.
pub(crate) fn write_at_the_same_time(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::MetadataExt as _;

    let before = path.metadata().unwrap();
    std::fs::write(path, bytes).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let changed = |found: &std::fs::Metadata| (found.ctime(), found.ctime_nsec());
    // Again while the clock of the filesystem, which is coarse, stands still.
    loop {
        file.set_modified(before.modified().unwrap()).unwrap();
        if changed(&path.metadata().unwrap()) != changed(&before) {
            return;
        }
    }
}

fn files(machine: &Machine) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![machine.home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), std::fs::read(entry.path()).unwrap_or_default());
            }
        }
    }
    found
}

/// Fetches what must not work: one line, nothing written outside the cache, nothing lost in it, nothing half there.
pub(crate) fn refused(machine: &Machine, reference: &str, ask: &Ask<'_>) -> SourceError {
    let before = files(machine);
    let error = machine.fetch(reference, ask).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("Cannot use ") && text.ends_with('.'), "{text}");
    assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
    let after = files(machine);
    // What a branch is may be another commit by now.
    for (path, bytes) in before.into_iter().filter(|(path, _)| !path.to_string_lossy().contains("/refs/")) {
        assert_eq!(after.get(&path), Some(&bytes), "{}", path.display());
    }
    let cache = machine.home.path().join(".cache");
    for path in after.keys() {
        let name = path.to_string_lossy();
        assert!(path.starts_with(&cache) && !name.contains("incomplete"), "{name}: {text}");
        assert!(!name.contains("/https/") && !name.contains("/s3/"), "{name}: {text}");
    }
    error
}

/// A Python with these packages in it, shared by all tests of a target directory.
pub(crate) fn venv(name: &str, check: &str, packages: &[&str]) -> PathBuf {
    aiperf_test_servers::venv(&tools(), name, check, packages)
}

/// Where programs stay that tests fetch.
pub(crate) fn tools() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}
