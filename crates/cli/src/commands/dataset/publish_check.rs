//! `aiperf dataset publish-check DIR`: would this folder run for others?

mod data;
mod finding;

use std::path::Path;

use aiperf_config::{FileFormat, InputColumns};
use aiperf_source::{Ask, Plan, Problem, Reference, SourceError, is_parquet, is_skipped};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};

use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::{print, remote};
use finding::{Finding, Level};

const MANIFEST: &str = "aiperf.json";

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
            aiperf_config::redact_text(&directory.display().to_string())
        ));
        return ExitStatus::Usage;
    }
    let checked = check(directory, given("endpoint"), matches.get_flag("all"));
    let ok = !checked.findings.iter().any(|finding| finding.level == Level::Error);
    if matches.get_flag("json") {
        let findings: Vec<Value> = checked.findings.iter().map(Finding::json).collect();
        print::out(&format!(
            "{:#}\n",
            json!({ "ok": ok, "findings": findings, "suggested": checked.suggested })
        ));
    } else {
        for finding in &checked.findings {
            print::out(&format!("{}\n", finding.line()));
        }
        if let (Some(suggested), false) = (&checked.suggested, checked.has_manifest) {
            print::out(&format!("\n{suggested:#}\n"));
        }
        if ok {
            print::out(&format!("{} would run for others\n", directory.display()));
        }
    }
    if ok { ExitStatus::Success } else { ExitStatus::Failure }
}

/// What came of a folder.
struct Checked {
    findings: Vec<Finding>,
    /// A manifest that would do.
    suggested: Option<Value>,
    has_manifest: bool,
}

fn check(directory: &Path, endpoint: Option<&str>, all: bool) -> Checked {
    let mut checked =
        Checked { findings: Vec::new(), suggested: None, has_manifest: directory.join(MANIFEST).is_file() };
    sidecars(directory, endpoint, all, &mut checked.findings);
    if !checked.has_manifest {
        checked.findings.push(Finding::error(
            MANIFEST,
            format!("{} has no aiperf.json", directory.display()),
            "Add one that names the data and their format, such as the one suggested",
        ));
        checked.suggested = suggestion(directory);
        return checked;
    }
    match access(directory, endpoint) {
        Ok(plan) => {
            let mut found = Vec::new();
            data::check(directory, &plan, all, &mut found);
            // What a sidecar beside the data brought to light is said.
            found.retain(|finding| !checked.findings.contains(finding));
            checked.findings.append(&mut found);
            checked.suggested = Some(data::suggested(directory, &plan));
        }
        Err(error) => checked.findings.push(Finding::of(MANIFEST, &error.problem)),
    }
    checked
}

fn access(path: &Path, endpoint: Option<&str>) -> Result<Plan, SourceError> {
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
            own_version: remote::VERSION,
        },
    )
}

/// Each sidecar, with the file that it belongs to.
fn sidecars(directory: &Path, endpoint: Option<&str>, all: bool, findings: &mut Vec<Finding>) {
    for path in data::files_below(directory) {
        let name = data::relative(directory, &path);
        let Some(file) = name.strip_suffix(".aiperf.json") else { continue };
        if !directory.join(file).is_file() {
            findings.push(Finding::error(
                &name,
                format!("there is no file \"{file}\" beside it"),
                "Name the sidecar after its file, or remove it",
            ));
            continue;
        }
        let path = directory.join(file);
        let above = path.parent().unwrap_or(directory);
        let mut found = Vec::new();
        match access(&path, endpoint) {
            Ok(plan) => data::check_beside(above, &plan, &name, all, &mut found),
            Err(error) => found.push(Finding::of(&name, &error.problem)),
        }
        // Faults of a sidecar in a folder below are named from the top.
        let below = data::relative(directory, above);
        for finding in &mut found {
            if !below.is_empty() && !finding.file.starts_with(&below) {
                finding.file = format!("{below}/{}", finding.file);
            }
        }
        findings.append(&mut found);
    }
}

/// A manifest for the one file of data, or the folder of shards, that lies in a folder.
fn suggestion(directory: &Path) -> Option<Value> {
    let data: Vec<_> = data::files_below(directory)
        .into_iter()
        .filter(|path| !path.file_name().and_then(|name| name.to_str()).is_none_or(is_skipped))
        .collect();
    let first = data.first()?;
    let folder = first.parent()?;
    let shards =
        data.iter().all(|path| path.parent() == Some(folder) && path.to_str().is_some_and(is_parquet));
    let named = match data.as_slice() {
        [one] => one.as_path(),
        _ if shards => folder,
        _ => return None,
    };
    let path = Some(data::relative(directory, named)).filter(|path| !path.is_empty());
    let format = aiperf_dataset::detect(first, &InputColumns::default()).ok().map(|found| found.format);
    let mut manifest = Map::new();
    manifest.insert("path".into(), path.unwrap_or_else(|| ".".into()).into());
    manifest.insert("format".into(), format.map_or("<format>", FileFormat::name).into());
    if let Some(size) = format.and_then(|format| aiperf_dataset::format(format).block_size) {
        manifest.insert("block_size".into(), size.into());
    }
    if named == first
        && let Some(sha256) = data::sha256(first)
    {
        manifest.insert("sha256".into(), sha256.into());
    }
    Some(Value::Object(manifest))
}

impl Finding {
    /// A fault of the rules that a run goes by, in the words of a run.
    fn of(file: &str, problem: &Problem) -> Finding {
        let place = match problem {
            Problem::BadManifest { manifest, .. } => manifest.clone(),
            _ => file.to_owned(),
        };
        // A manifest for another version is right where it is read by that one.
        let level = if matches!(problem, Problem::NeedsVersion { .. }) { Level::Note } else { Level::Error };
        Finding::new(level, &place, problem.to_string(), problem.fix())
    }
}
