//! `aiperf dataset resolve REF`: what would run.

use aiperf_config::FileFormat;
use aiperf_dataset::public;
use aiperf_source::{Ask, Problem, Reference};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::endpoint_type;
use super::reference::{json, scheduled_by_format, text};
use crate::environment::Environment;
use crate::exit::{ExitStatus, Failure};
use crate::remote::FirstRecord;
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
        Ok(()) => ExitStatus::Success,
        Err(failure) => failure.tell(),
    }
}

fn resolve(matches: &ArgMatches) -> Result<(), Failure> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    // Invariant: clap requires it.
    let reference = Reference::of_argument(given("reference").unwrap_or_default())?;
    if let Reference::Local(path) = &reference
        && !path.exists()
        && let Some(set) = path.to_str().and_then(public::find)
    {
        let name = set.name;
        return Err(Failure::usage(format!(
            "{name} is a public data set and no path; see `aiperf datasets {name}`, or fetch it with `aiperf dataset \
             fetch --public-dataset {name}`"
        )));
    }
    if let Some(unknown) = given("endpoint").and_then(|name| endpoint_type(name).err()) {
        return Err(Failure::usage(format!("--endpoint-type: {unknown}")));
    }
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
    let looks = matches.get_flag("first-record");
    let first = if looks { remote::first_record(&sources, &plan)? } else { FirstRecord::default() };
    let scheduled = if matches.get_flag("fixed-schedule") {
        Some(true)
    } else if matches.get_flag("no-fixed-schedule") {
        Some(false)
    } else {
        first.promotes.or_else(|| scheduled_by_format(plan.format))
    };
    let found = first.format.map(FileFormat::name);
    let present = sources.present(&plan)?;
    if matches.get_flag("json") {
        print::json(&json(&plan, &present, found, None, scheduled), true);
    } else {
        print::out(&text(&plan, &present, looks.then_some(&first), scheduled));
    }
    Ok(())
}
