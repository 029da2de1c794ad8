//! Step 1, the access check: from a reference to the exact files of a run. Reads metadata, listings and the manifest,
//! no data.

use crate::error::Problem;
use crate::events::Events;
use crate::format::{Format, Formats, Parquet, normal};
use crate::manifest::{self, Declaration, Role};
use crate::names;
use crate::plan::{FormatSource, ManifestMark, Plan};
use crate::protocol::{Entry, Found, Node, Protocol, Target};
use crate::reference::Reference;
use crate::shards::{self, Place, is_arrow, is_parquet};
use crate::store::Store;

/// More files than this are not one data set.
const MOST_FILES: usize = 10_000;

/// References that a hint lists.
const MOST_READY: usize = 3;

/// What the run brings to the check.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// `--custom-dataset-type`
    pub format: Option<&'a str>,
    /// `--endpoint-type`; `None` leaves the manifest's condition unchecked.
    pub endpoint_type: Option<&'a str>,
    /// Whether the run has an end that does not depend on the data.
    pub has_stop: bool,
    /// `--max-context-length`
    pub max_context_length: Option<u64>,
    /// The formats of this build.
    pub formats: &'a dyn Formats,
    /// The version of this program; an empty one leaves the manifest's condition unchecked.
    pub own_version: &'a str,
}

/// Checks a reference and decides what is read, and kept in `store`.
pub(crate) async fn access<P: Protocol, S: Store>(
    protocol: &P,
    store: &S,
    reference: &Reference,
    ask: &Ask<'_>,
    offline: bool,
    events: &Events,
) -> Result<Plan, Problem> {
    // What the flag alone decides comes before any question to the source.
    let flag = ask.format.map(|name| known(ask, name)).transpose()?;
    check_stop(ask, flag)?;
    refuse_manifest(reference)?;
    let found = protocol.look_up().await?;
    let declaration = found
        .declaration
        .as_ref()
        .map(|(place, bytes)| {
            let role = if matches!(found.node, Node::File(_)) { Role::Sidecar } else { Role::Manifest };
            manifest::read(bytes, role, place, ask.own_version)
        })
        .transpose()?;
    let format = decide_format(ask, flag, declaration.as_ref())?;
    let mut notes = Vec::new();
    let data = locate(protocol, &found, declaration.as_ref(), &mut notes).await?;
    let chosen = choose(protocol, data, format.map(|(format, _)| format), declaration.as_ref())?;
    notes.extend(chosen.notes);
    let mut files = chosen.files;
    let folder = chosen.folder.as_deref().filter(|_| !protocol.keeps_paths());
    let is_alone = chosen.folder.is_none();
    let kept = files.iter().filter(|_| protocol.keeps_paths() || !is_alone);
    let kept = kept.map(|file| below(folder.unwrap_or_default(), &file.path).unwrap_or(&file.path));
    names::check(kept, || store.folds_case())?;
    if let (Some(declaration), false) = (&declaration, is_alone)
        && declaration.data_sha256.is_some()
    {
        return Err(Problem::BadManifest {
            manifest: declaration.place.clone(),
            what: "it has a sha256, and its path is a folder".into(),
            rule: "sha256 is the digest of one file".into(),
        });
    }
    if files.len() > MOST_FILES {
        return Err(Problem::TooMuch(format!(
            "it has {} data files, at most {MOST_FILES} data files are read",
            files.len()
        )));
    }
    if let Some(first) = files.first_mut() {
        *first = protocol.prove(&found, std::mem::take(first)).await?;
    }
    if let Some(empty) = files.iter().find(|file| file.size == Some(0)) {
        return Err(Problem::Empty(empty.path.clone()));
    }
    for note in notes {
        events.info(format!("{reference}: {note}"));
    }
    let target = Target { files: &files, folder: chosen.folder.as_deref() };
    let (version, resolved_reference) = protocol.version(&found, &target);
    let block_size = declaration.as_ref().and_then(|declaration| declaration.block_size);
    let uses_blocks = format.is_none_or(|(format, _)| format.block_size);
    if let (Some(size), false, Some((format, _))) = (block_size, uses_blocks, format) {
        events.info(format!("{reference}: block_size {size} is ignored: {} has no blocks", format.name));
    }
    let max_context_tokens = declaration.as_ref().and_then(|declaration| declaration.max_context_tokens);
    if let (Some(needed), Some(given)) = (max_context_tokens, ask.max_context_length)
        && needed > given
    {
        events.warn(format!(
            "{reference} asks for a context of {needed} tokens, and --max-context-length is {given}"
        ));
    }
    Ok(Plan {
        reference: reference.clone(),
        resolved_reference,
        pinned: is_pinned(reference),
        version,
        format: format.map(|(format, _)| format.name),
        format_source: format.map(|(_, source)| source),
        block_size: block_size.filter(|_| uses_blocks),
        endpoint_types: declaration.as_ref().and_then(|declaration| declaration.endpoint_types.clone()),
        max_context_tokens,
        dropped: chosen.dropped,
        manifest: declaration.as_ref().map(|declaration| ManifestMark {
            path: declaration.place.clone(),
            sha256: declaration.sha256.clone(),
            version: found.declared_by.as_ref().and_then(Entry::version),
        }),
        offline,
        files,
        folder: chosen.folder,
        data_sha256: declaration.and_then(|declaration| declaration.data_sha256),
        found,
    })
}

fn is_pinned(reference: &Reference) -> bool {
    match reference {
        Reference::Hub(hub) => hub.commit().is_some(),
        Reference::S3(s3) => s3.version.is_some(),
        Reference::Web(_) | Reference::Local(_) => false,
    }
}

/// A manifest is found by itself; as the data it is a mistake.
fn refuse_manifest(reference: &Reference) -> Result<(), Problem> {
    let path = match reference {
        Reference::Hub(hub) => hub.path.as_deref().unwrap_or_default(),
        Reference::S3(s3) => s3.key.as_str(),
        Reference::Web(web) => web.url.expose().path(),
        Reference::Local(path) => path.to_str().unwrap_or_default(),
    };
    if !manifest::is_manifest(path) {
        return Ok(());
    }
    Err(Problem::Grammar {
        what: "it names a manifest, not data".into(),
        fix: "Name the folder that the manifest lies in, or the data file".into(),
    })
}

fn known(ask: &Ask<'_>, name: &str) -> Result<Format, Problem> {
    ask.formats.find(&normal(name)).ok_or_else(|| Problem::UnknownFormat(name.to_owned()))
}

fn check_stop(ask: &Ask<'_>, format: Option<Format>) -> Result<(), Problem> {
    match format {
        Some(format) if format.needs_stop && !ask.has_stop => Err(Problem::NeedsStop),
        _ => Ok(()),
    }
}

/// The format, and who named it; the flag and the publisher must agree.
fn decide_format(
    ask: &Ask<'_>,
    flag: Option<Format>,
    declaration: Option<&Declaration>,
) -> Result<Option<(Format, FormatSource)>, Problem> {
    let Some(declaration) = declaration else { return Ok(flag.map(|format| (format, FormatSource::Flag))) };
    let declared = declaration.format.as_deref().map(|name| known(ask, name)).transpose()?;
    if let (Some(flag), Some(declared)) = (flag, declared)
        && flag.name != declared.name
    {
        return Err(Problem::FormatConflict {
            manifest: declaration.place.clone(),
            declared: declared.name.to_owned(),
            flag: flag.name.to_owned(),
        });
    }
    check_stop(ask, declared)?;
    if let (Some(supported), Some(given)) = (&declaration.endpoint_types, ask.endpoint_type)
        && !supported.iter().any(|name| normal(name) == normal(given))
    {
        return Err(Problem::NeedsEndpoint {
            manifest: declaration.place.clone(),
            supported: supported.join(", "),
            given: given.to_owned(),
        });
    }
    Ok(flag
        .map(|format| (format, FormatSource::Flag))
        .or(declared.map(|format| (format, declaration.role.into()))))
}

/// The data before anything is chosen among them.
enum Data {
    File(Entry),
    Folder {
        /// Its path in the source.
        path: String,
        /// Every file below it.
        entries: Vec<Entry>,
        /// Found by the layout rules, not named by a manifest.
        layout: bool,
    },
}

async fn locate<P: Protocol>(
    protocol: &P,
    found: &Found,
    declaration: Option<&Declaration>,
    notes: &mut Vec<String>,
) -> Result<Data, Problem> {
    if let Node::File(entry) = &found.node {
        return Ok(Data::File(entry.clone()));
    }
    let root = protocol.folder();
    let Some(declaration) = declaration else {
        return without_manifest(protocol, found, root, notes).await;
    };
    // Invariant of `manifest::read`: the manifest of a folder has a path.
    let Some(data) = &declaration.path else { return Err(Problem::Empty(protocol.title(&root))) };
    let path = join(&root, &data.path);
    let missing = || Problem::BadManifest {
        manifest: declaration.place.clone(),
        what: format!("the path \"{}\" does not exist at this version", data.written.escape_debug()),
        rule: "the path names the data, relative to the manifest's folder".into(),
    };
    let node = if data.path.is_empty() { Some(Node::Folder) } else { protocol.node(found, &path).await? };
    match node {
        None => Err(missing()),
        Some(Node::File(_)) if data.folder => Err(missing()),
        Some(Node::File(entry)) => Ok(Data::File(entry)),
        Some(Node::Folder) => {
            let entries = protocol.list(found, &path).await?;
            if entries.is_empty() {
                return Err(missing());
            }
            Ok(Data::Folder { path, entries, layout: false })
        }
    }
}

async fn without_manifest<P: Protocol>(
    protocol: &P,
    found: &Found,
    root: String,
    notes: &mut Vec<String>,
) -> Result<Data, Problem> {
    let title = protocol.title(&root);
    let no_manifest = |also: &str, fix: &str| Problem::NoManifest {
        folder: title.clone(),
        also: also.into(),
        fix: fix.into(),
    };
    if !protocol.knows_layouts() {
        return Err(no_manifest(
            "",
            "Point at one file, or add an aiperf.json that names the data file and its format",
        ));
    }
    let entries = protocol.list(found, &root).await?;
    let relative = |entry: &Entry| {
        if root.is_empty() { entry.path.clone() } else { entry.path[root.len() + 1..].to_owned() }
    };
    let paths: Vec<String> = entries.iter().map(relative).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let reference_to = |path: &str| protocol.reference_to(&join(&root, path));
    let place = Place { name: title.clone(), reference: &reference_to, of_manifest: false };
    let Some((folder, found_notes)) = shards::descend(&paths, &place)? else {
        let ready: Vec<String> = shards::other_data(&paths).take(MOST_READY).map(reference_to).collect();
        let such_as = if ready.is_empty() { String::new() } else { format!(", e.g. {},", ready.join(", ")) };
        return Err(no_manifest(
            ", and no parquet files",
            &format!("Point at one file of it{such_as} or {}", protocol.way_to_a_manifest()),
        ));
    };
    notes.extend(found_notes);
    let path = join(&root, &folder);
    let entries =
        entries.into_iter().filter(|entry| path.is_empty() || below(&path, &entry.path).is_some()).collect();
    Ok(Data::Folder { path, entries, layout: true })
}

fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, path) => format!("{folder}/{path}"),
    }
}

/// The part of `path` below `folder`.
fn below<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// The files that are read.
#[derive(Default)]
struct Chosen {
    files: Vec<Entry>,
    folder: Option<String>,
    dropped: Vec<String>,
    notes: Vec<String>,
}

fn choose<P: Protocol>(
    protocol: &P,
    data: Data,
    format: Option<Format>,
    declaration: Option<&Declaration>,
) -> Result<Chosen, Problem> {
    match data {
        Data::File(entry) => {
            check_file(&entry.path, format)?;
            Ok(Chosen { files: vec![entry], ..Chosen::default() })
        }
        Data::Folder { path, entries, layout } => {
            folder(protocol, path, entries, layout, format, declaration)
        }
    }
}

fn check_file(path: &str, format: Option<Format>) -> Result<(), Problem> {
    let Some(format) = format else { return Ok(()) };
    if is_parquet(path) && format.parquet == Parquet::No {
        return Err(no_parquet(format));
    }
    if is_arrow(path) && !format.arrow {
        return Err(Problem::Unreadable {
            what: format!("{} does not read Arrow files, only baseten_trace does", format.name),
            fix: "Choose baseten_trace with --custom-dataset-type, or convert the data to JSONL".into(),
        });
    }
    Ok(())
}

fn no_parquet(format: Format) -> Problem {
    Problem::Unreadable {
        what: format!("{} does not read parquet files", format.name),
        fix: "Convert the data to JSONL, or choose a format that reads parquet with --custom-dataset-type"
            .into(),
    }
}

fn folder<P: Protocol>(
    protocol: &P,
    path: String,
    entries: Vec<Entry>,
    layout: bool,
    format: Option<Format>,
    declaration: Option<&Declaration>,
) -> Result<Chosen, Problem> {
    let title = protocol.title(&path);
    let direct: Vec<&str> = entries
        .iter()
        .filter_map(|entry| below(&path, &entry.path))
        .filter(|name| !name.contains('/') && (!layout || !name.starts_with(['.', '_'])))
        .collect();
    if !direct.iter().any(|name| is_parquet(name) && !shards::is_skipped(name)) {
        return other_folder(path, entries, format, &title);
    }
    if let Some(format) = format {
        match format.parquet {
            Parquet::No => return Err(no_parquet(format)),
            Parquet::File => {
                return Err(Problem::Unreadable {
                    what: format!(
                        "{} reads one parquet file, and {title} is a folder of shards",
                        format.name
                    ),
                    fix: "Name one shard".into(),
                });
            }
            Parquet::FileOrShards => {}
        }
    }
    let reference_to = |name: &str| protocol.reference_to(&join(&path, name));
    let whole = protocol.fetches_whole_folders() && declaration.is_some();
    let place = Place { name: title, reference: &reference_to, of_manifest: whole };
    let read = shards::choose(direct).map_err(|fault| place.problem(fault))?;
    let wanted: std::collections::HashSet<&str> = read.read.iter().map(String::as_str).collect();
    let is_read = |entry: &Entry| below(&path, &entry.path).is_some_and(|name| wanted.contains(name));
    let is_fetched = |entry: &Entry| {
        is_read(entry) || (whole && below(&path, &entry.path).is_some_and(|name| !shards::is_skipped(name)))
    };
    let mut notes = shards::notes(&read);
    if !layout {
        notes.extend(shards::note_of_folders(entries.iter().filter_map(|entry| below(&path, &entry.path))));
    }
    let mut files: Vec<Entry> = entries.into_iter().filter(is_fetched).collect();
    // What comes first is looked at before a run: it must be of the split that runs.
    files.sort_by_key(|entry| !is_read(entry));
    let dropped = [read.dropped_splits, read.dropped_files].concat();
    Ok(Chosen { files, folder: Some(path), dropped, notes })
}

/// A folder without Parquet: everything that is not hidden, in the order that loaders read a folder in, which is that of
/// the parts of the paths.
fn other_folder(
    path: String,
    entries: Vec<Entry>,
    format: Option<Format>,
    title: &str,
) -> Result<Chosen, Problem> {
    if let Some(format) = format
        && !format.folder
    {
        return Err(Problem::Unreadable {
            what: format!("{} reads one file, and {title} is a folder", format.name),
            fix: "Name one file of it".into(),
        });
    }
    let mut files: Vec<Entry> = entries
        .into_iter()
        .filter(|entry| {
            below(&path, &entry.path).is_some_and(|name| {
                !name.split('/').any(|segment| segment.starts_with('.'))
                    && !name.rsplit('/').next().is_some_and(shards::is_skipped)
            })
        })
        .collect();
    files.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
    if files.is_empty() {
        return Err(Problem::Empty(title.to_owned()));
    }
    Ok(Chosen { files, folder: Some(path), ..Chosen::default() })
}
