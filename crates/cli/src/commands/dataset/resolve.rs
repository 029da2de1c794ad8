//! `aiperf dataset resolve REF`: what would run.

use aiperf_source::{Ask, Problem, Reference, SourceError};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::reference::{json, scheduled_by_format, text};
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::{print, remote};

pub(super) fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("resolve")
        .about("Show what a reference stands for: version, files, format; downloads no data")
        .arg(
            Arg::new("reference")
                .value_name("REF")
                .required(true)
                .help("hf://ORG/REPO[@REVISION][/PATH], s3://BUCKET/KEY[?versionId=ID], https://HOST/FILE, or a local path"),
        )
        .arg(
            Arg::new("format")
                .long("custom-dataset-type")
                .value_name("TYPE")
                .help("The format, as a run would be told"),
        )
        .arg(
            Arg::new("endpoint")
                .long("endpoint-type")
                .value_name("TYPE")
                .help("Check that the data are meant for this endpoint"),
        )
        .arg(switch("fixed-schedule", "As a run would be told").conflicts_with("no-fixed-schedule"))
        .arg(switch("no-fixed-schedule", "As a run would be told"))
        .arg(switch("first-record", "Read the first bytes of the data, to see whether they carry times"))
        .arg(switch("json", "One JSON object"))
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    match resolve(matches) {
        Ok(out) => {
            print::out(&out);
            ExitStatus::Success
        }
        Err(error) => {
            print::err(&format!("error: {error}\n"));
            (&error).into()
        }
    }
}

fn resolve(matches: &ArgMatches) -> Result<String, SourceError> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    // Invariant: clap requires it.
    let reference = Reference::of_argument(given("reference").unwrap_or_default())?;
    let about = |problem: Problem| problem.about(reference.redacted());
    let environment = Environment::of_process();
    let (sources, _signals) = remote::sources(&environment).map_err(about)?;
    let plan = sources.access(
        &reference,
        &Ask {
            format: given("format"),
            endpoint_type: given("endpoint"),
            has_stop: true,
            max_context_length: None,
            formats: &remote::Table,
            own_version: remote::VERSION,
        },
    )?;
    let scheduled = if matches.get_flag("fixed-schedule") {
        Some(true)
    } else if matches.get_flag("no-fixed-schedule") {
        Some(false)
    } else if matches.get_flag("first-record") {
        remote::promotes(&sources, &plan)?.or_else(|| scheduled_by_format(plan.format))
    } else {
        scheduled_by_format(plan.format)
    };
    let present = sources.present(&plan)?;
    Ok(if matches.get_flag("json") {
        format!("{:#}\n", json(&plan, &present, None, scheduled))
    } else {
        text(&plan, &present, scheduled)
    })
}
