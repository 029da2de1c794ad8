//! The data of a folder that is to be published.

use std::path::{Path, PathBuf};

use aiperf_config::FileFormat;
use aiperf_dataset::DatasetError;
use aiperf_source::{Plan, alike_but_for_case, is_skipped};

use super::finding::{Finding, Level};
use super::texts::texts;

/// Records that are read unless all are asked for.
pub(super) const RECORDS: u64 = 1_000;
/// How a fault begins that no other format and no other record mends.
const CANNOT_READ: &str = "cannot read ";
/// How a loader ends a fault that another size of blocks may mend, for who runs it.
const BLOCK_SIZE_ADVICE: [&str; 2] =
    ["; set the trace's block size with --isl-block-size", ": set it with --isl-block-size"];
/// A text file above this is better compressed.
const LARGE: u64 = 100_000_000;
/// Folders within folders.
const DEEPEST: usize = 64;

/// Every file below a folder, sorted.
pub(super) fn files_below(directory: &Path) -> Vec<PathBuf> {
    below(directory).files
}

/// What lies below a folder, sorted.
struct Below {
    files: Vec<PathBuf>,
    /// Links to folders. They are not followed, as by a loader: they may lead in circles.
    links: Vec<PathBuf>,
}

fn below(directory: &Path) -> Below {
    let mut found = Below { files: Vec::new(), links: Vec::new() };
    let mut folders = vec![(directory.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.is_dir() {
                found.files.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                found.links.push(path);
            } else if depth < DEEPEST && entry.file_name() != ".git" {
                folders.push((path, depth + 1));
            }
        }
    }
    found.files.sort();
    found.links.sort();
    found
}

/// A path as it is written in a manifest.
pub(super) fn relative(directory: &Path, path: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// The digest of a file.
pub(super) fn sha256(path: &Path) -> Option<String> {
    aiperf_source::sha256_of_file(path).ok()
}

/// What of data that were looked at is not known.
pub(super) struct Unknown {
    /// What follows the first records of a file.
    pub(super) rest: bool,
    /// Whether a link is published as what it leads to.
    pub(super) links: bool,
}

/// Looks at the file of a sidecar as a run would that names it; whether it has more records than were read.
pub(super) fn check_beside(
    directory: &Path,
    plan: &Plan,
    sidecar: &str,
    all: bool,
    findings: &mut Vec<Finding>,
) -> bool {
    let read: Vec<PathBuf> = plan.paths().map(|path| directory.join(path)).collect();
    let mut faults = records(directory, plan, all);
    if plan.promised_sha256().is_some() && !holds_unreadable(&faults) {
        digest(plan, sidecar, &read, findings);
    }
    findings.append(&mut faults);
    texts(directory, &read, all, findings)
}

/// Looks at the data that a run would read.
pub(super) fn check(directory: &Path, plan: &Plan, all: bool, findings: &mut Vec<Finding>) -> Unknown {
    let read: Vec<PathBuf> = plan.paths().map(|path| directory.join(path)).collect();
    let mut faults = records(directory, plan, all);
    // Another file comes in the place of one that nobody reads, and one digest is none of a folder.
    if !plan.is_folder() && !holds_unreadable(&faults) {
        digest(plan, super::MANIFEST, &read, findings);
    }
    findings.append(&mut faults);
    if !plan.dropped.is_empty() {
        findings.push(Finding::new(
            Level::Warning,
            super::MANIFEST,
            format!("the folder holds more than is read; not read: {}", plan.dropped.join(", ")),
            "Keep one split in the folder, or tell readers which one runs",
        ));
    }
    for path in &read {
        let name = relative(directory, path);
        let size = path.metadata().map(|found| found.len()).unwrap_or_default();
        let uncompressed = [".jsonl", ".json", ".csv"].iter().any(|ending| name.ends_with(ending));
        if uncompressed && size > LARGE {
            findings.push(Finding::new(
                Level::Warning,
                &name,
                format!("it has {size} bytes and is not compressed"),
                "Publish it as .jsonl.gz, and name that file in the manifest",
            ));
        }
    }
    let unknown =
        Unknown { rest: texts(directory, &read, all, findings), links: links(directory, &read, findings) };
    let names: Vec<String> = plan.paths().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Some(name) = alike_but_for_case(&names) {
        findings.push(Finding::new(
            Level::Warning,
            name,
            "another file differs from it in case alone, and on some machines they are one",
            "Rename one of them",
        ));
    }
    unread(directory, &read, findings);
    unknown
}

fn digest(plan: &Plan, manifest: &str, read: &[PathBuf], findings: &mut Vec<Finding>) {
    let [path] = read else { return };
    let Some(found) = sha256(path) else { return };
    match plan.promised_sha256() {
        None => findings.push(Finding::new(
            Level::Warning,
            manifest,
            "it has no sha256, so that a damaged or replaced file is not noticed",
            format!("Add \"sha256\": \"{found}\""),
        )),
        Some(promised) if promised == found => {}
        Some(promised) => findings.push(Finding::error(
            manifest,
            format!(
                "sha256 does not match: the file has {}, and the manifest says {}",
                &found[..12],
                &promised[..12]
            ),
            format!("Set \"sha256\" to \"{found}\""),
        )),
    }
}

/// Reads the records as a run would: their faults.
fn records(directory: &Path, plan: &Plan, all: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let format = FileFormat::ALL.iter().copied().find(|known| Some(known.name()) == plan.format);
    let Some(format) = format else { return findings };
    let path = plan.folder_path().map_or_else(
        || plan.paths().next().map(|path| directory.join(path)).unwrap_or_default(),
        |folder| directory.join(folder),
    );
    let block_size = plan.block_size.and_then(|size| u32::try_from(size).ok());
    let most = if all { None } else { Some(RECORDS) };
    let (faults, count) = crate::commands::faults(&path, format, block_size, most, 10);
    for fault in &faults {
        let text = told(directory, fault);
        // A fault names its file; one of the whole folder does not.
        let file = plan.paths().find(|path| text.contains(path)).or_else(|| plan.paths().next());
        findings.push(of_record(&file.unwrap_or_default(), format, &text));
    }
    if count > faults.len() as u64 {
        let more = count - faults.len() as u64;
        findings.push(Finding::error(
            super::MANIFEST,
            format!("{more} more records have faults"),
            "Correct the first ones, and check again",
        ));
    }
    findings
}

/// A fault with the names that files have in the folder.
pub(super) fn told(directory: &Path, fault: &DatasetError) -> String {
    fault.to_string().replace(&format!("{}/", directory.display()), "")
}

/// Whether a file of data cannot be read at all, such as one of another compression.
pub(super) fn holds_unreadable(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.level == Level::Error && finding.message.starts_with(CANNOT_READ))
}

/// The same of what a loader says.
pub(super) fn is_unreadable(fault: &DatasetError) -> bool {
    fault.to_string().starts_with(CANNOT_READ)
}

/// A record that is none of the format.
pub(super) fn of_record(file: &str, format: FileFormat, fault: &str) -> Finding {
    if fault.starts_with(CANNOT_READ) {
        let (what, fix) = fault.rsplit_once("; ").unwrap_or((fault, "put a file there that can be read"));
        return Finding::error(file, what, fix[..1].to_uppercase() + &fix[1..]);
    }
    let (fault, fix) = BLOCK_SIZE_ADVICE
        .iter()
        .find_map(|advice| fault.strip_suffix(advice))
        .map_or((fault, "Correct the record, or declare another format"), |fault| {
            (fault, "Correct \"block_size\" in the aiperf.json, or the record")
        });
    let mut finding = Finding::error(file, format!("it does not look like {}: {fault}", format.name()), fix);
    finding.line = between_line(fault);
    finding
}

fn between_line(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once(", line ").or_else(|| text.split_once(':'))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Data that lie elsewhere: who uploads what a link leads to publishes them, who commits the link does not. Whether there
/// are such.
fn links(directory: &Path, read: &[PathBuf], findings: &mut Vec<Finding>) -> bool {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let is_below = |path: &&Path| path.starts_with(directory) && *path != directory;
    let mut found = read.iter().filter(|path| path.ancestors().take_while(is_below).any(is_link));
    let Some(first) = found.next() else { return false };
    let target = first.canonicalize().unwrap_or_else(|_| first.clone());
    let more = match found.count() {
        0 => String::new(),
        more => format!(", and so are {more} more"),
    };
    findings.push(Finding::new(
        Level::Warning,
        &relative(directory, first),
        format!(
            "it is a link to {}{more}: where it is committed as one, others get no data",
            target.display()
        ),
        "Put the data themselves there, or upload with a tool that follows links",
    ));
    true
}

/// Whether a file says who may use the data, and how to cite them.
fn is_legal(name: &str) -> bool {
    let stem = name.split(['.', '-']).next().unwrap_or(name);
    ["LICENSE", "LICENCE", "COPYING", "NOTICE", "CITATION"]
        .iter()
        .any(|known| stem.eq_ignore_ascii_case(known))
}

/// Files that no run reads.
fn unread(directory: &Path, read: &[PathBuf], findings: &mut Vec<Finding>) {
    let Below { files, links } = below(directory);
    for link in links.iter().filter(|link| !read.iter().any(|path| path.starts_with(link))) {
        findings.push(Finding::new(
            Level::Warning,
            &relative(directory, link),
            "it is a link to a folder, and such links are not followed",
            "Put the folder itself there, or leave it out",
        ));
    }
    let names: Vec<String> = files
        .into_iter()
        .filter(|path| !read.contains(path))
        .map(|path| relative(directory, &path))
        .filter(|name| !name.split('/').any(|part| part.starts_with('.')))
        .filter(|name| !name.rsplit('/').next().is_some_and(|name| is_skipped(name) || is_legal(name)))
        .collect();
    if names.is_empty() {
        return;
    }
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().checked_sub(6).map_or(String::new(), |more| format!(" and {} more", more + 1));
    findings.push(Finding::new(
        Level::Warning,
        super::MANIFEST,
        format!("a run does not read {shown}{more}"),
        "Leave them out, or tell readers how to run them",
    ));
}
