//! `aiperf dataset from-run DIR`: a finished run as a trace that replays it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aiperf_dataset::{Converted, DatasetError, PhaseChoice, from_run};
use aiperf_report::AtomicFile;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use super::super::interrupt::{Interrupt, Unfinished};
use super::super::output;
use crate::exit::ExitStatus;
use crate::exit::Failure;
use crate::{print, quote};

const RAW: &str = "profile_export_raw.jsonl";
const RAW_ENDING: &str = "_raw.jsonl";
const SUMMARY: &str = "profile_export_aiperf.json";
/// What stands in results where a credential was.
const HIDDEN: &str = "<redacted>";

pub(super) fn command() -> Command {
    Command::new("from-run")
        .about("Turn the raw records of a run into a trace that sends the same requests again")
        .long_about(
            "Turn the raw records of a run (--export-level raw) into a mooncake_trace: one row per request in the \
             order of sending, with its time, its session and the body as it was sent. Prints the command that \
             replays it. Headers of single requests are not kept.",
        )
        .arg(Arg::new("dir").value_name("DIR").required(true).help("Folder with the results of the run"))
        .args(output::arguments("The trace to write [default: DIR/replay.jsonl]", false))
        .arg(
            Arg::new("phase")
                .long("phase")
                .value_name("PHASE")
                .default_value(PhaseChoice::Profiling.name())
                .value_parser(PossibleValuesParser::new(PhaseChoice::ALL.map(PhaseChoice::name)))
                .help("Requests of which phases"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    // Invariant: clap requires the one and gives the other a default.
    let folder = Path::new(text("dir").unwrap_or("."));
    let phase = PhaseChoice::ALL.into_iter().find(|phase| Some(phase.name()) == text("phase"));
    let output = text("output").map_or_else(|| folder.join("replay.jsonl"), PathBuf::from);
    let converted = is_file(&output)
        .and_then(|()| output::may_write(matches, &output))
        .and_then(|()| convert(folder, &output, phase.unwrap_or(PhaseChoice::Profiling)));
    match converted {
        Ok(converted) => {
            tell(&converted, folder, &output);
            ExitStatus::Success
        }
        Err(failure) => failure.tell(),
    }
}

/// Refuses stdout, which takes the command.
fn is_file(output: &Path) -> Result<(), Failure> {
    if output != Path::new(output::STDOUT) {
        return Ok(());
    }
    Err(Failure::usage(
        "--output -: stdout takes the command that replays the trace; name a file with --output",
    ))
}

fn convert(folder: &Path, output: &Path, phase: PhaseChoice) -> Result<Converted, Failure> {
    let raw = raw_records(folder).map_err(Failure::usage)?;
    output::is_not_read("--output", output, std::slice::from_ref(&raw))?;
    let broken = |error: std::io::Error| output::broken(output.display(), &error);
    let interrupt = Interrupt::new(&Unfinished::file(output));
    let mut file = AtomicFile::create(output).map_err(broken)?;
    let converted = from_run(&raw, phase, &mut interrupt.writer(&mut file), output);
    // Given up, the file is gone.
    interrupt.check()?;
    let converted = converted.map_err(|error| match &error {
        DatasetError::Unreadable { path, .. } if path == output => {
            Failure::new(error.to_string(), ExitStatus::Failure)
        }
        _ => Failure::usage(error.to_string()),
    })?;
    file.commit().map_err(broken)?;
    Ok(converted)
}

/// The raw records in a folder of results, whatever prefix its files have.
fn raw_records(folder: &Path) -> Result<PathBuf, String> {
    let usual = folder.join(RAW);
    if usual.is_file() {
        return Ok(usual);
    }
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read the folder {}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(RAW_ENDING)))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(format!(
            "{} has no {RAW}: a run writes it with --export-level raw; record it with that, or name the folder of \
             another run",
            folder.display()
        )),
        (Some(_), false) => Err(format!(
            "{} has several files of raw records; put the one that is meant into a folder of its own",
            folder.display()
        )),
    }
}

/// What the run was asked, from the summary of the run that made the raw records.
fn input_config(folder: &Path) -> Option<Value> {
    let raw = raw_records(folder).ok()?;
    let name = raw.file_name()?.to_str()?;
    let usual = folder.join(SUMMARY);
    // Without a prefix the summary has a longer name; with the prefix `profile_export` the raw records have the usual one.
    let path = if name == RAW && usual.is_file() {
        usual
    } else {
        folder.join(format!("{}.json", name.strip_suffix(RAW_ENDING)?))
    };
    let summary: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    summary.get("input_config").cloned()
}

fn tell(converted: &Converted, folder: &Path, output: &Path) {
    let mut talk = format!(
        "{}: {} requests in {} sessions, with the bodies as they were sent; headers of single requests are not kept\n",
        output.display(),
        converted.requests,
        converted.sessions
    );
    if converted.without_body > 0 {
        let _ = writeln!(
            talk,
            "warning: {} request(s) that failed before they had a body are left out",
            converted.without_body
        );
    }
    let config = input_config(folder);
    if config.is_none() {
        let _ = writeln!(talk, "warning: {SUMMARY} is missing, so the command names no server: complete it");
    }
    let arguments = replay(config.as_ref(), converted, output);
    if arguments.iter().any(|argument| argument.contains(HIDDEN)) {
        let _ = writeln!(
            talk,
            "note: results hold no credentials, so the URL has {HIDDEN} where one was: put it back before the command \
             is run"
        );
    }
    let headers = headers_of_run(config.as_ref());
    if !headers.is_empty() {
        let _ = writeln!(
            talk,
            "note: the run was sent with {}: give the same again with the command, which has none of them",
            headers.join(" and ")
        );
    }
    talk.push_str("The command that replays it:\n");
    print::err(&talk);
    print::out(&format!("{}\n", quote::joined(&arguments)));
}

/// The flags of the run that put headers into every request, without the values: results hide those that are secret.
fn headers_of_run(config: Option<&Value>) -> Vec<String> {
    let Some(endpoint) = config.and_then(|config| config.get("endpoint")) else { return Vec::new() };
    let key = endpoint.get("api_key").map(|_| "--api-key".to_owned());
    let headers = endpoint.get("headers").and_then(Value::as_object).into_iter().flatten();
    key.into_iter().chain(headers.map(|(name, _)| format!("--header {name}"))).collect()
}

/// The arguments that replay a trace against the server of the run.
fn replay(config: Option<&Value>, converted: &Converted, output: &Path) -> Vec<String> {
    let endpoint = |key: &str| config.and_then(|config| config.get("endpoint")?.get(key));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let model = config.and_then(|config| config.get("models")?.get("items")?.get(0)?.get("name"));
    let mut arguments: Vec<String> = vec!["aiperf".into(), "profile".into()];
    let mut push = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            arguments.extend([flag.to_owned(), value]);
        }
    };
    push("--model", text(model).or_else(|| converted.model.clone()).or_else(|| Some("MODEL".into())));
    match endpoint("urls").and_then(Value::as_array) {
        Some(urls) => urls.iter().for_each(|url| push("--url", text(Some(url)))),
        None => push("--url", Some("URL".into())),
    }
    push("--endpoint-type", text(endpoint("type")));
    push("--endpoint", text(endpoint("path")));
    push("--tokenizer", text(config.and_then(|config| config.get("tokenizer")?.get("name"))));
    push("--input-file", Some(output.display().to_string()));
    push("--custom-dataset-type", Some("mooncake_trace".into()));
    if endpoint("streaming").and_then(Value::as_bool) == Some(true) {
        arguments.push("--streaming".into());
    }
    arguments
}
