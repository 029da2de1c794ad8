//! A manifest that would do for a folder.

use std::path::{Path, PathBuf};

use aiperf_config::{FileFormat, InputColumns};
use aiperf_source::{Plan, is_parquet, is_skipped};
use serde_json::{Map, Value};

use super::data::{self, RECORDS};
use super::finding::Finding;

/// What is told to who has a folder without a manifest.
pub(super) struct Suggested {
    /// Ready to paste, where one file or folder of shards is all the data.
    pub(super) manifest: Option<Value>,
    /// The next step.
    pub(super) fix: String,
    /// Why the data would not run with it.
    pub(super) fault: Option<Finding>,
}

/// For a folder that has no manifest.
pub(super) fn of(directory: &Path) -> Suggested {
    let files = data::files_below(directory);
    let name_of = |path: &Path| path.file_name().and_then(|name| name.to_str().map(str::to_owned));
    let mut data: Vec<&PathBuf> =
        files.iter().filter(|path| !name_of(path).is_none_or(|name| is_skipped(&name))).collect();
    if named(&data).is_none() {
        // A license, a script or a picture beside the data is none of them.
        let fits = |path: &&PathBuf| {
            path.to_str().is_some_and(is_parquet)
                || aiperf_dataset::detect(path, &InputColumns::default()).is_ok()
        };
        let fitting: Vec<&PathBuf> = data.iter().copied().filter(fits).collect();
        data = if fitting.is_empty() { data } else { fitting };
    }
    let (manifest, mut fix, fault) = match named(&data) {
        Some(named) => {
            let (manifest, format, fault) = filled(directory, &named, data[0]);
            let fix = "Add one that names the data and their format, such as the one suggested";
            let to_fill = if format.is_none() { ", with the format filled in" } else { "" };
            (Some(manifest), format!("{fix}{to_fill}"), fault)
        }
        None if data.is_empty() => {
            (None, "Put the data there, and add one that names them and their format".to_owned(), None)
        }
        None => {
            let names: Vec<String> =
                data.iter().take(5).map(|path| data::relative(directory, path)).collect();
            let more = if data.len() > names.len() { " …" } else { "" };
            let fix = format!(
                "Add one whose \"path\" names one file of data ({}{more} could be it), or a folder of parquet shards, \
                 and whose \"format\" is theirs",
                names.join(", ")
            );
            (None, fix, None)
        }
    };
    let beside = files.iter().find_map(|path| {
        let name = data::relative(directory, path);
        let file = name.strip_suffix(".aiperf.json")?;
        directory.join(file).is_file().then(|| file.to_owned())
    });
    if let Some(file) = beside {
        fix.push_str("; without it no reference to the folder runs, only one to ");
        fix.push_str(&file);
        fix.push_str(", which has a sidecar");
    }
    Suggested { manifest, fix, fault }
}

/// The one file of data, or the folder of shards, that lies in a folder.
fn named(data: &[&PathBuf]) -> Option<PathBuf> {
    let folder = data.first()?.parent()?;
    let are_shards =
        data.iter().all(|path| path.parent() == Some(folder) && path.to_str().is_some_and(is_parquet));
    match data {
        [one] => Some((*one).clone()),
        _ if are_shards => Some(folder.to_owned()),
        _ => None,
    }
}

/// The manifest that names a file or folder, the format that its first file has, and what is wrong with it then.
fn filled(directory: &Path, named: &Path, first: &Path) -> (Value, Option<FileFormat>, Option<Finding>) {
    let path = Some(data::relative(directory, named)).filter(|path| !path.is_empty());
    let detected = aiperf_dataset::detect(first, &InputColumns::default());
    let is_readable = !detected.as_ref().is_err_and(data::is_unreadable);
    let format = detected.ok().map(|found| found.format);
    let mut manifest = Map::new();
    manifest.insert("path".into(), path.unwrap_or_else(|| ".".into()).into());
    manifest.insert("format".into(), format.map_or("<format>", FileFormat::name).into());
    let mut fault = None;
    if let Some(format) = format {
        let size = aiperf_dataset::format(format).block_size.map(|usual| fitting(named, format, usual));
        if let Some(size) = size {
            manifest.insert("block_size".into(), size.into());
        }
        let found = crate::commands::faults(named, format, size, Some(RECORDS), 1).0;
        fault = found.first().map(|fault| {
            data::of_record(&data::relative(directory, first), format, &data::told(directory, fault))
        });
    }
    if named == first
        && is_readable
        && let Some(sha256) = data::sha256(first)
    {
        manifest.insert("sha256".into(), sha256.into());
    }
    (Value::Object(manifest), format, fault)
}

/// The block size that the first records keep to: the usual one, else the largest power of two, for records of fewer
/// blocks fit smaller ones too; else the usual one all the same.
fn fitting(path: &Path, format: FileFormat, usual: u32) -> u32 {
    let fits = |size: &u32| crate::commands::faults(path, format, Some(*size), Some(RECORDS), 1).0.is_empty();
    std::iter::once(usual).chain((0..=14).rev().map(|power| 1 << power)).find(fits).unwrap_or(usual)
}

/// The manifest that would do for these data, with their digest if they can be read.
pub(super) fn of_plan(directory: &Path, plan: &Plan, is_readable: bool) -> Value {
    let mut manifest = Map::new();
    let path = plan.folder_path().map_or_else(
        || plan.paths().next().unwrap_or_default(),
        |folder| {
            if folder.is_empty() { ".".to_owned() } else { folder.to_owned() }
        },
    );
    manifest.insert("path".into(), path.clone().into());
    if let Some(format) = plan.format {
        manifest.insert("format".into(), format.into());
    }
    if let Some(size) = plan.block_size {
        manifest.insert("block_size".into(), size.into());
    }
    if plan.folder_path().is_none()
        && is_readable
        && let Some(sha256) = data::sha256(&directory.join(path))
    {
        manifest.insert("sha256".into(), sha256.into());
    }
    Value::Object(manifest)
}
