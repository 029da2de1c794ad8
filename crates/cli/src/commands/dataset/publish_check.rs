//! `aiperf dataset publish-check DIR`: would this folder run for others?

mod data;
mod finding;
mod suggestion;
mod texts;

use std::path::Path;

use aiperf_source::{Ask, Plan, Problem, Reference, SourceError, is_skipped};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use crate::commands::interrupt::EndsAtOnce;
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::{print, remote};
use finding::{Finding, Level};
use suggestion::Suggested;

use super::endpoint_type;

const MANIFEST: &str = "aiperf.json";
/// In the place of a version: the manifest's condition is not checked.
const ANY_VERSION: &str = "";

pub(super) fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("publish-check")
        .about("Check that a folder with an aiperf.json would run for others")
        .long_about(
            "Check a folder before it is published: its aiperf.json and sidecars by the rules of a run, its data by the \
             loader. Reads this machine only, writes nothing. Exit code 0 without errors, else 1.",
        )
        .arg(Arg::new("dir").value_name("DIR").required(true).help("The folder, with its aiperf.json at the root"))
        .arg(
            Arg::new("endpoint")
                .long("endpoint-type")
                .value_name("TYPE")
                .help("Check that the data are meant for this endpoint"),
        )
        .arg(switch("all", "Read every record instead of the first 1,000"))
        .arg(switch("json", "One JSON object"))
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    // Invariant: clap requires it.
    let directory = Path::new(given("dir").unwrap_or("."));
    if !directory.is_dir() {
        print::err(&format!(
            "error: {} is no folder; name the one with the aiperf.json\n",
            aiperf_config::redact_reference(&directory.display().to_string())
        ));
        return ExitStatus::Usage;
    }
    if let Some(unknown) = given("endpoint").and_then(|name| endpoint_type(name).err()) {
        print::err(&format!("error: --endpoint-type: {unknown}\n"));
        return ExitStatus::Usage;
    }
    let _ends = EndsAtOnce::new(None);
    let checked = check(directory, given("endpoint"), matches.get_flag("all"));
    let ok = !checked.findings.iter().any(|finding| finding.level == Level::Error);
    if matches.get_flag("json") {
        let findings: Vec<Value> = checked.findings.iter().map(Finding::json).collect();
        print::json(&json!({ "ok": ok, "findings": findings, "suggested": checked.suggested }), true);
    } else {
        for finding in &checked.findings {
            print::out(&format!("{}\n", finding.line()));
        }
        if let (Some(suggested), true) = (&checked.suggested, checked.is_to_paste) {
            print::out("\n");
            print::json(suggested, true);
        }
        if ok {
            print::out(&format!("{}\n", verdict(directory, &checked)));
        }
    }
    if ok { ExitStatus::Success } else { ExitStatus::Failure }
}

/// What is said of a folder without errors.
fn verdict(directory: &Path, checked: &Checked) -> String {
    let directory = directory.display();
    if !checked.unchecked.is_empty() {
        let unchecked = checked.unchecked.join(", ");
        return format!("nothing wrong was found in {directory}; not checked: {unchecked}");
    }
    let warned = checked.findings.iter().any(|finding| finding.level == Level::Warning);
    let before = if warned { "; look at the warnings before it is published" } else { "" };
    format!("{directory} would run for others{before}")
}

/// What came of a folder.
struct Checked {
    findings: Vec<Finding>,
    /// What this version cannot tell.
    unchecked: Vec<String>,
    /// A manifest that would do.
    suggested: Option<Value>,
    /// There is none yet, or an empty one.
    is_to_paste: bool,
}

fn check(directory: &Path, endpoint: Option<&str>, all: bool) -> Checked {
    let mut checked = Checked {
        findings: Vec::new(),
        unchecked: Vec::new(),
        suggested: None,
        is_to_paste: !directory.join(MANIFEST).is_file(),
    };
    let has_rest = sidecars(directory, endpoint, all, &mut checked);
    if checked.is_to_paste {
        let Suggested { manifest, fix, fault } = suggestion::of(directory);
        let what = format!("{} has no aiperf.json", directory.display());
        checked.findings.push(Finding::error(MANIFEST, what, fix));
        checked.findings.extend(fault);
        checked.suggested = manifest;
        return checked;
    }
    if let Some(plan) = look(directory, MANIFEST, endpoint, &mut checked) {
        let mut found = Vec::new();
        let unknown = data::check(directory, &plan, all, &mut found);
        // What a sidecar beside the data brought to light is said.
        found.retain(|finding| !checked.findings.contains(finding));
        checked.findings.append(&mut found);
        if unknown.rest || has_rest {
            checked.unchecked.push("what follows the first 1,000 records (--all reads it)".into());
        }
        if unknown.links {
            checked.unchecked.push("whether its links are published as the files that they lead to".into());
        }
        let is_readable = !data::holds_unreadable(&checked.findings);
        checked.suggested = Some(suggestion::of_plan(directory, &plan, is_readable));
    } else {
        // Whatever the manifest means, a credential is one.
        let mut found = Vec::new();
        let mut files = data::files_below(directory);
        files.retain(|path| !path.file_name().and_then(|name| name.to_str()).is_none_or(is_skipped));
        texts::texts(directory, &files, all, &mut found);
        found.retain(|finding| !checked.findings.contains(finding));
        checked.findings.append(&mut found);
        if is_blank(&directory.join(MANIFEST)) {
            suggest_for_blank(directory, &mut checked);
        }
    }
    checked
}

/// Whether a file holds nothing but white space.
fn is_blank(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.len() < 1_000)
        && std::fs::read(path).is_ok_and(|bytes| bytes.iter().all(u8::is_ascii_whitespace))
}

/// A manifest to paste where it is empty: a shell that writes this command's output there empties it first.
fn suggest_for_blank(directory: &Path, checked: &mut Checked) {
    let Suggested { manifest, fix, fault } = suggestion::of(directory);
    if let Some(finding) = checked.findings.iter_mut().find(|finding| finding.file == MANIFEST) {
        finding.fix = match &manifest {
            Some(_) => "Paste the one suggested; a shell that writes this output there has emptied it".into(),
            None => fix,
        };
    }
    checked.is_to_paste = true;
    checked.suggested = manifest;
    checked.findings.extend(fault);
}

/// Checks a manifest, or the sidecar of a file. One that is for another version of this program is read all the same;
/// what cannot be is then no fault, and not checked.
fn look(path: &Path, manifest: &str, endpoint: Option<&str>, checked: &mut Checked) -> Option<Plan> {
    let problem = match access(path, endpoint, remote::VERSION) {
        Ok(plan) => {
            unknown_types(manifest, &plan, checked);
            return Some(plan);
        }
        Err(error) => error.problem,
    };
    checked.findings.push(Finding::of(manifest, &problem));
    let Problem::NeedsVersion { spec, .. } = &problem else { return None };
    let reads = format!("how AIPerf {spec} reads it");
    match access(path, endpoint, ANY_VERSION) {
        Ok(plan) => {
            checked.unchecked.push(reads);
            Some(plan)
        }
        Err(error) => {
            let mut finding = Finding::of(manifest, &error.problem);
            if matches!(error.problem, Problem::BadManifest { .. } | Problem::UnknownFormat(_)) {
                finding.level = Level::Note;
                finding.fix = format!("Check it with AIPerf {spec}; this version does not read it");
            }
            checked.findings.push(finding);
            checked.unchecked.push(format!("the data that {manifest} names, and {reads}"));
            None
        }
    }
}

/// Endpoint types that no run of this version has: another version may know them.
fn unknown_types(manifest: &str, plan: &Plan, checked: &mut Checked) {
    let names = || plan.endpoint_types.iter().flatten();
    if names().next().is_some() && names().all(|name| endpoint_type(name).is_err()) {
        checked.unchecked.push(format!("a run, for no endpoint type of {manifest} is one of this version"));
    }
    for name in names() {
        if let Err(unknown) = endpoint_type(name) {
            checked.findings.push(Finding::new(
                Level::Warning,
                manifest,
                format!("requires.endpoint_types: {unknown}"),
                "Correct it, unless a later version knows it",
            ));
        }
    }
}

fn access(path: &Path, endpoint: Option<&str>, own_version: &str) -> Result<Plan, SourceError> {
    let reference = Reference::Local(path.to_owned());
    let mut environment = Environment::of_process();
    // Nothing here asks a server.
    environment.terminal = false;
    let (sources, _signals) =
        remote::quiet_sources(&environment).map_err(|problem| problem.about(reference.redacted()))?;
    sources.access(
        &reference,
        &Ask {
            format: None,
            endpoint_type: endpoint,
            has_stop: true,
            max_context_length: None,
            formats: &remote::Table,
            own_version,
        },
    )
}

/// Each sidecar, with the file that it belongs to; whether one of these has more records than were read.
fn sidecars(directory: &Path, endpoint: Option<&str>, all: bool, checked: &mut Checked) -> bool {
    let mut has_rest = false;
    for path in data::files_below(directory) {
        let name = data::relative(directory, &path);
        let Some(file) = name.strip_suffix(".aiperf.json") else { continue };
        if !directory.join(file).is_file() {
            checked.findings.push(Finding::error(
                &name,
                format!("there is no file \"{file}\" beside it"),
                "Name the sidecar after its file, or remove it",
            ));
            continue;
        }
        let path = directory.join(file);
        let above = path.parent().unwrap_or(directory);
        let first = checked.findings.len();
        if let Some(plan) = look(&path, &name, endpoint, checked) {
            has_rest |= data::check_beside(above, &plan, &name, all, &mut checked.findings);
        }
        // Faults of a sidecar in a folder below are named from the top.
        let below = data::relative(directory, above);
        for finding in &mut checked.findings[first..] {
            if !below.is_empty() && !finding.file.starts_with(&below) {
                finding.file = format!("{below}/{}", finding.file);
            }
        }
    }
    has_rest
}

impl Finding {
    /// A fault of the rules that a run goes by, in the words of a run; the next step is the publisher's.
    fn of(file: &str, problem: &Problem) -> Finding {
        let place = match problem {
            Problem::BadManifest { manifest, .. } => manifest.clone(),
            _ => file.to_owned(),
        };
        // A manifest for another version is right where it is read by that one.
        let level = if matches!(problem, Problem::NeedsVersion { .. }) { Level::Note } else { Level::Error };
        let fix = match problem {
            Problem::Empty(_) => "Put the data there, or name another path".into(),
            _ => problem.fix(),
        };
        let fix = match fix.strip_prefix("Ask the publisher to ") {
            Some(rest) => rest[..1].to_uppercase() + &rest[1..],
            None => fix,
        };
        Finding::new(level, &place, problem.to_string(), fix)
    }
}
