//! Data that are somewhere else: from a reference on the command line to files that a run can read.

mod first_record;
mod formats;
mod named;
mod progress;
pub(crate) mod public;
mod signals;
pub(crate) mod tokenizers;
mod view;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::Path;

use aiperf_config::{DatasetSource, FileFormat, InputColumns, RemoteDataset, RunConfig};
use aiperf_dataset::{Beginning, is_html, whole_lines};
use aiperf_source::{Ask, Plan, Problem, Provenance, Reference, Settings, SourceError, Sources, Stop};

use crate::environment::Environment;
use crate::settle::{Access, DatasetProbe, Files, Found, Timing};
use crate::usage::UsageError;
pub(crate) use first_record::{FirstRecord, first_record};
pub(crate) use formats::Table;
pub(crate) use named::Named;
use progress::Progress;
pub(crate) use progress::size;
pub(crate) use signals::Signals;
pub(crate) use view::View;

/// The version that manifests are compared with.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Sources whose talk goes to stderr, until a signal ends their work.
pub(crate) fn sources(environment: &Environment) -> Result<(Sources, Signals), Problem> {
    sources_with(environment, |_| Ok(()))
}

/// The same, which read what was downloaded before, and compare it with what is on record.
pub(crate) fn comparing_sources(environment: &Environment) -> Result<(Sources, Signals), Problem> {
    sources_with(environment, |settings| {
        settings.compares = true;
        Ok(())
    })
}

/// The same, with other settings than the usual.
fn sources_with(
    environment: &Environment,
    change: impl FnOnce(&mut Settings) -> Result<(), Problem>,
) -> Result<(Sources, Signals), Problem> {
    let stop = Stop::default();
    let signals = Signals::set(&stop);
    let mut settings = Settings::of(&environment.variables)?;
    change(&mut settings)?;
    Ok((Sources::new(settings, Progress::events(environment.terminal), stop), signals))
}

/// The same, saying nothing: for those who print what was found themselves.
pub(crate) fn quiet_sources(environment: &Environment) -> Result<(Sources, Signals), Problem> {
    let stop = Stop::default();
    let signals = Signals::set(&stop);
    let settings = Settings::of(&environment.variables)?;
    Ok((Sources::new(settings, aiperf_source::Events::none(), stop), signals))
}

/// The reference that `text` is, if it is one. A local path is not.
pub(crate) fn reference(text: &str) -> Option<Result<Reference, SourceError>> {
    Reference::is_reference(text).then(|| Reference::parse(text))
}

/// Looks at data wherever they are. What a reference needs is done when it is asked for: the access check first, the
/// first record next, and everything only where its format must be found.
#[derive(Debug)]
pub(crate) struct Anywhere<'a> {
    environment: &'a Environment,
    remote: OnceCell<Remote>,
    failure: RefCell<Option<SourceError>>,
}

#[derive(Debug)]
struct Remote {
    sources: Sources,
    /// Ends with the fetch: the run has signal handlers of its own.
    _signals: Signals,
    plan: Plan,
    /// Once everything is here.
    fetched: OnceCell<Fetched>,
    /// The run goes by recorded times because it was told to: the data must have them.
    must_be_timed: Cell<bool>,
}

/// A reference whose files are here.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// What a loader reads; holds it together while it is used.
    pub(crate) view: View,
    pub(crate) provenance: Provenance,
}

impl<'a> Anywhere<'a> {
    pub(crate) fn new(environment: &'a Environment) -> Anywhere<'a> {
        Anywhere { environment, remote: OnceCell::new(), failure: RefCell::default() }
    }

    /// The error of a source that settling met, where its text alone does not tell how the program ends.
    pub(crate) fn failure(&self) -> Option<SourceError> {
        self.failure.borrow().clone()
    }

    fn told<T>(&self, result: Result<T, SourceError>) -> Result<T, String> {
        result.map_err(|error| {
            let text = error.to_string();
            *self.failure.borrow_mut() = Some(error);
            text
        })
    }

    /// Brings everything, and puts it in the place of the reference in a settled run.
    pub(crate) fn bring(self, config: &mut RunConfig) -> Result<Option<View>, SourceError> {
        let Some(remote) = self.remote.into_inner() else { return Ok(None) };
        let DatasetSource::File(file) = &mut config.dataset.source else { return Ok(None) };
        let plan = &remote.plan;
        let Fetched { view, mut provenance } = match remote.fetched.into_inner() {
            Some(fetched) => fetched,
            None => fetch(&remote.sources, plan)?,
        };
        if !file.detected {
            check_first_record(plan, view.path(), file.format, file.block_size, &file.columns)?;
        }
        if remote.must_be_timed.get() {
            check_times(plan, view.path(), file.format, &file.columns)?;
        }
        provenance.detected(file.format.name());
        view.path().clone_into(&mut file.path);
        config.remote = Some(RemoteDataset {
            name: Some(plan.place()),
            lines: provenance.lines(),
            provenance: provenance.json(),
        });
        Ok(Some(view))
    }
}

impl Remote {
    fn fetched(&self) -> Result<&Fetched, SourceError> {
        once(&self.fetched, &self.sources, &self.plan)
    }
}

fn once<'a>(cell: &'a OnceCell<Fetched>, sources: &Sources, plan: &Plan) -> Result<&'a Fetched, SourceError> {
    if let Some(fetched) = cell.get() {
        return Ok(fetched);
    }
    let fetched = fetch(sources, plan)?;
    Ok(cell.get_or_init(|| fetched))
}

/// Finds the format of data of which nobody declared one. What fits none is told, and is no error: a run may be told more.
pub(crate) fn detect(plan: &Plan, fetched: &mut Fetched) -> Result<(), String> {
    let path = fetched.view.path();
    match aiperf_dataset::detect(path, &InputColumns::default()) {
        Ok(found) => {
            fetched.provenance.detected(found.format.name());
            Ok(())
        }
        Err(fault) => Err(by_reference(&fault.to_string(), path, plan)),
    }
}

/// What times the first record carries, from as few bytes as it takes.
fn timing(
    sources: &Sources,
    plan: &Plan,
    fetched: &OnceCell<Fetched>,
    format: FileFormat,
    columns: &InputColumns,
) -> Result<Result<Timing, String>, SourceError> {
    // What all data of a format have in common needs no look.
    if !aiperf_dataset::format(format).promotes {
        return Ok(Ok(Timing::default()));
    }
    if format == FileFormat::WekaTrace {
        return Ok(Ok(Timing { timestamp: true, promotes: true, ..Timing::default() }));
    }
    let look = |path: &Path| {
        Files.first_record_timing(path, format, columns).map_err(|fault| by_reference(&fault, path, plan))
    };
    let columnar = plan.files().next().is_some_and(|(name, _)| is_columnar(name));
    if columnar {
        let first = sources.fetch_first(plan)?;
        return Ok(look(&first.path));
    }
    if let Some(seen) = on_first_lines(sources, plan, lines_of_record(format), look)? {
        return Ok(seen);
    }
    let fetched = once(fetched, sources, plan)?;
    Ok(look(fetched.view.path()))
}

/// What `look` sees in a file of the first lines of the data; `None` where they have none within the first 8 MiB, or are
/// columnar whatever their name.
fn on_first_lines<T>(
    sources: &Sources,
    plan: &Plan,
    lines: usize,
    look: impl FnOnce(&Path) -> T,
) -> Result<Option<T>, SourceError> {
    const STEPS: [u64; 3] = [64 << 10, 1 << 20, 8 << 20];
    for most in STEPS {
        let leading = sources.leading(plan, most)?;
        let Some(text) = aiperf_dataset::decoded_head(&leading.bytes) else { break };
        if is_page(&text) {
            return Err(a_page(plan));
        }
        if let Some(head) = whole_lines(&text, lines, leading.whole) {
            let seen = with_head(head, look);
            return seen.map(Some).map_err(|problem| problem.about(plan.reference.redacted()));
        }
        if leading.whole {
            break;
        }
    }
    Ok(None)
}

/// A message about the data at `path`, naming them as the person did instead of by the place that they were brought to.
fn by_reference(message: &str, path: &Path, plan: &Plan) -> String {
    message.replace(&*path.to_string_lossy(), &plan.place())
}

impl DatasetProbe for Anywhere<'_> {
    fn detect(&self, path: &Path, columns: &InputColumns) -> Result<Found, String> {
        let Some(remote) = self.remote.get() else { return Files.detect(path, columns) };
        let fetched = self.told(remote.fetched())?;
        let path = fetched.view.path();
        let mut found =
            self.told(Files.detect(path, columns).map_err(|fault| undetected(&remote.plan, path, &fault)))?;
        // Columns make a schedule only where somebody says that they are a trace.
        let by_name = remote.plan.files().next().is_some_and(|(name, _)| is_columnar(name));
        found.promotes &= !by_name && !holds_columns(fetched.view.path());
        Ok(found)
    }

    fn first_record_timing(
        &self,
        path: &Path,
        format: FileFormat,
        columns: &InputColumns,
    ) -> Result<Timing, String> {
        let Some(remote) = self.remote.get() else {
            return Files.first_record_timing(path, format, columns);
        };
        self.told(timing(&remote.sources, &remote.plan, &remote.fetched, format, columns))?
    }

    fn recorded_times(
        &self,
        path: &Path,
        format: FileFormat,
        columns: &InputColumns,
    ) -> Result<Timing, String> {
        let Some(remote) = self.remote.get() else {
            return Files.first_record_timing(path, format, columns);
        };
        remote.must_be_timed.set(true);
        Ok(Timing { timestamp: true, ..Timing::default() })
    }

    fn access(&self, reference: &Reference, ask: &Ask<'_>) -> Result<Access, UsageError> {
        let about = |problem: Problem| UsageError::Source(problem.about(reference.redacted()));
        let (sources, signals) = sources(self.environment).map_err(about)?;
        let plan = sources.access(reference, ask).map_err(UsageError::Source)?;
        let access = Access {
            format: plan.format.and_then(formats::of_name),
            block_size: plan.block_size,
            is_folder: plan.is_folder(),
        };
        // Only one reference is on a command line.
        let remote = Remote {
            sources,
            _signals: signals,
            plan,
            fetched: OnceCell::new(),
            must_be_timed: Cell::new(false),
        };
        let _ = self.remote.set(remote);
        Ok(access)
    }
}

fn is_page(head: &[u8]) -> bool {
    is_html(String::from_utf8_lossy(head).trim_start())
}

/// Data that fit no format, as a fault of their source: what is wrong stands before the last semicolon, and the next step
/// behind it.
fn undetected(plan: &Plan, path: &Path, fault: &str) -> SourceError {
    let fault = fault
        .strip_prefix(&*path.to_string_lossy())
        .and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or(fault);
    let fault = by_reference(fault, path, plan);
    let is_step = |(_, fix): &(&str, &str)| fix.starts_with(|first: char| first.is_ascii_lowercase());
    let (what, fix) = fault
        .rsplit_once("; ")
        .filter(is_step)
        .unwrap_or((&fault, "name the type with --custom-dataset-type"));
    let (first, rest) = fix.split_at(1);
    let fix = first.to_ascii_uppercase() + rest;
    Problem::Unreadable { what: what.to_owned(), fix }.about(plan.reference.redacted())
}

/// A page that came in the place of data.
fn a_page(plan: &Plan) -> SourceError {
    let page = "it is an HTML page and no data";
    Problem::Unreadable {
        what: match plan.format {
            Some(format) => format!("it does not look like {format}: {page}"),
            None => page.into(),
        },
        fix: "Name the file itself, not a page that shows it or asks for a sign-in".into(),
    }
    .about(plan.reference.redacted())
}

/// Brings every file of a plan.
pub(crate) fn fetch(sources: &Sources, plan: &Plan) -> Result<Fetched, SourceError> {
    let local = sources.fetch(plan)?;
    if let [file] = local.files.as_slice()
        && head_of(&file.path, 64).is_some_and(|head| is_page(&head))
    {
        return Err(a_page(plan));
    }
    let view = View::of(&local).map_err(|error| {
        view::cannot_write(&std::env::temp_dir(), &error).about(plan.reference.redacted())
    })?;
    Ok(Fetched { view, provenance: local.provenance })
}

/// Whether the first record is one of the format: now, rather than in the middle of a run.
pub(crate) fn check_first_record(
    plan: &Plan,
    path: &Path,
    format: FileFormat,
    block_size: Option<u32>,
    columns: &InputColumns,
) -> Result<(), SourceError> {
    let first = |path: &Path| crate::commands::first_record(path, format, block_size, columns);
    let fault = match beginning(path, format) {
        Some(Beginning::Endless) => "its first record does not end within 64 MiB".to_owned(),
        // What is right in the first record is so whatever follows; the rest is not decompressed for it.
        Some(Beginning::Lines(head)) if with_head(&head, |path| first(path).is_ok()) == Ok(true) => {
            return Ok(());
        }
        _ => match first(path) {
            Ok(()) => return Ok(()),
            Err(fault) => as_published(&fault.to_string(), plan, path),
        },
    };
    if let Some(wrong) = fault.strip_suffix(aiperf_dataset::WRONG_COLUMN) {
        let (what, fix) = (wrong.to_owned(), "Correct the name, or leave it out".to_owned());
        return Err(Problem::Unreadable { what, fix }.about(plan.reference.redacted()));
    }
    Err(Problem::Unreadable {
        what: format!("it does not look like {}: {fault}", format.name()),
        fix: "Choose another format with --custom-dataset-type, or ask the publisher to correct the data"
            .into(),
    }
    .about(plan.reference.redacted()))
}

/// A fault with the names that the files have in their source, not those of a cache.
fn as_published(fault: &str, plan: &Plan, path: &Path) -> String {
    let here = path.display().to_string();
    match plan.paths().next() {
        Some(published) if !plan.is_folder() => fault.replace(&here, &published),
        _ => {
            let (place, typed) = (plan.place(), plan.reference.redacted());
            // From the reference on.
            let below = place.strip_prefix(typed.trim_end_matches('/')).unwrap_or_default();
            let within = below.strip_prefix('/').map_or_else(String::new, |below| format!("{below}/"));
            fault.replace(&format!("{here}/"), &within).replace(&here, &place)
        }
    }
}

/// How a compressed file begins whose records are lines.
fn beginning(path: &Path, format: FileFormat) -> Option<Beginning> {
    let of_lines = matches!(
        aiperf_dataset::format(format).files,
        aiperf_dataset::Files::Jsonl | aiperf_dataset::Files::Csv
    );
    if of_lines { aiperf_dataset::beginning(path, lines_of_record(format)) } else { None }
}

/// The first bytes of a file.
fn head_of(path: &Path, most: usize) -> Option<Vec<u8>> {
    use std::io::Read as _;

    let mut head = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(most as u64).read_to_end(&mut head)).ok()?;
    Some(head)
}

/// Whether the first record has a time, for a run that was told to go by it.
fn check_times(
    plan: &Plan,
    path: &Path,
    format: FileFormat,
    columns: &InputColumns,
) -> Result<(), SourceError> {
    let what = match Files.first_record_timing(path, format, columns) {
        Ok(timing) if timing.timestamp => return Ok(()),
        Ok(timing) => format!(
            "--fixed-schedule needs recorded times, and its first record ({}) has no timestamp{}",
            format.name(),
            if timing.delay { ", only a delay" } else { "" }
        ),
        Err(what) => what,
    };
    let fix = "Drop --fixed-schedule, or use data whose records have a timestamp".into();
    Err(Problem::Unreadable { what, fix }.about(plan.reference.redacted()))
}

/// Whether a file holds columns, whatever its name.
fn holds_columns(path: &Path) -> bool {
    head_of(path, 8).is_some_and(|head| aiperf_dataset::decoded_head(&head).is_none())
}

fn is_columnar(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".parquet", ".arrow", ".ipc"].iter().any(|ending| name.ends_with(ending))
}

/// Lines up to the end of a first record: the names of columns stand above it.
fn lines_of_record(format: FileFormat) -> usize {
    if aiperf_dataset::format(format).files == aiperf_dataset::Files::Csv { 2 } else { 1 }
}

/// What `look` makes of a file of these bytes.
fn with_head<T>(head: &[u8], look: impl FnOnce(&Path) -> T) -> Result<T, Problem> {
    let directory = view::scratch()?;
    let path = directory.path().join("head");
    std::fs::write(&path, head).map_err(|error| view::cannot_write(directory.path(), &error))?;
    Ok(look(&path))
}
