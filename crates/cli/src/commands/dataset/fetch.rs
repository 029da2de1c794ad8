//! `aiperf dataset fetch REF…`: fill the cache, so that the same references run offline.

use aiperf_config::FileFormat;
use aiperf_source::{Ask, Presence, Reference, SourceError, Sources};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;

use super::reference::{json, scheduled_by_format};
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::{print, remote};

pub(super) fn command() -> Command {
    Command::new("fetch")
        .about("Download what references stand for into the cache; afterwards they run offline")
        .arg(
            Arg::new("references")
                .value_name("REF")
                .required(true)
                .num_args(1..)
                .help("hf://ORG/REPO[@REVISION][/PATH], s3://BUCKET/KEY[?versionId=ID] or https://HOST/FILE"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("One JSON array"))
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let as_json = matches.get_flag("json");
    let environment = Environment::of_process();
    let (sources, _signals) = match remote::sources(&environment) {
        Ok(sources) => sources,
        Err(problem) => {
            print::err(&format!("error: {problem}. {}.\n", problem.fix()));
            return ExitStatus::Usage;
        }
    };
    let mut status = ExitStatus::Success;
    let mut objects = Vec::new();
    for text in matches.get_many::<String>("references").into_iter().flatten() {
        match fetch(&sources, text) {
            Ok((object, lines)) => {
                objects.push(object);
                if !as_json {
                    print::out(&format!("{}\n", lines.join("\n")));
                }
            }
            Err(error) => {
                // The others are fetched all the same.
                print::err(&format!("error: {error}\n"));
                status = status.or((&error).into());
            }
        }
    }
    if as_json {
        print::out(&format!("{:#}\n", Value::Array(objects)));
    }
    status
}

fn fetch(sources: &Sources, text: &str) -> Result<(Value, Vec<String>), SourceError> {
    let reference = Reference::of_argument(text)?;
    let plan = sources.access(
        &reference,
        &Ask {
            format: None,
            endpoint_type: None,
            has_stop: true,
            max_context_length: None,
            formats: &remote::Table,
            own_version: remote::VERSION,
        },
    )?;
    let fetched = remote::fetch(sources, &plan)?;
    let format = FileFormat::ALL.iter().copied().find(|known| Some(known.name()) == plan.format);
    if let Some(format) = format {
        let block_size = plan.block_size.and_then(|size| u32::try_from(size).ok());
        remote::check_first_record(&plan, fetched.view.path(), format, block_size)?;
    }
    let here: Vec<Presence> = plan.files().map(|_| Presence { cached: true, sha256: None }).collect();
    let object = json(&plan, &here, Some(&fetched.provenance), scheduled_by_format(plan.format));
    Ok((object, fetched.provenance.lines()))
}
