//! `aiperf dataset fetch REF…`: fill the cache, so that the same references run offline.

use std::sync::Arc;

use aiperf_config::{FileFormat, InputColumns, PublicDataset, redact_reference, redact_text};
use aiperf_dataset::public::{self, Place, Setting};
use aiperf_run::ready_process;
use aiperf_source::{Ask, Presence, Reference, SourceError, Sources};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;

use super::super::datasets::unknown;
use super::super::whole::whole;
use super::reference::{json, scheduled_by_format};
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::settle::{filters, repository};
use crate::{print, remote};

pub(super) fn command() -> Command {
    Command::new("fetch")
        .about("Download what references stand for into the cache; afterwards they run offline")
        .arg(
            Arg::new("references")
                .value_name("REF")
                .required_unless_present_any(["public-dataset", "hf-weka-dataset"])
                .conflicts_with_all(["public-dataset", "hf-weka-dataset"])
                .num_args(1..)
                .help("hf://ORG/REPO[@REVISION][/PATH], s3://BUCKET/KEY[?versionId=ID] or https://HOST/FILE"),
        )
        .arg(
            Arg::new("public-dataset")
                .long("public-dataset")
                .value_name("NAME")
                .help("Download what a run with this public data set reads; without a bound all of it"),
        )
        .arg(
            Arg::new("hf-weka-dataset")
                .long("hf-weka-dataset")
                .value_name("OWNER/NAME")
                .conflicts_with("public-dataset")
                .help("The same for a repository of weka traces"),
        )
        .arg(of_set("hf-subset", "NAME", "Its subset"))
        .arg(
            of_set("dataset-filter", "KEY=VALUE", "Only the sessions that a run with this option keeps")
                .action(ArgAction::Append),
        )
        .arg(
            of_set("num-dataset-entries", "N", "Only as much as a run with this option reads")
                .value_parser(whole(1)),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("One JSON array"))
}

/// An option that goes with a public data set.
fn of_set(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).conflicts_with("references").help(help)
}

/// Fetches a public data set.
fn fetch_set(matches: &ArgMatches, name: &str, environment: &Environment) -> ExitStatus {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    let Some(set) = public::find(name) else {
        let names = public::sets().iter().map(|set| set.name);
        print::err(&format!("error: {}\n", unknown("public data set", name, &plain, names)));
        return ExitStatus::Usage;
    };
    let repo = match matches.get_one::<String>("hf-weka-dataset").map(|name| repository(name)) {
        Some(Err(error)) => {
            print::err(&error.report());
            return ExitStatus::Usage;
        }
        Some(Ok(repo)) => Some(repo),
        None if set.place == Place::Named => {
            print::err(&format!(
                "error: {} needs a repository; give --hf-weka-dataset OWNER/NAME\n",
                set.name
            ));
            return ExitStatus::Usage;
        }
        None => None,
    };
    let subset = matches.get_one::<String>("hf-subset").cloned();
    if subset.is_some() && !set.follows(Setting::Subset) {
        print::err(&format!("error: --hf-subset has no meaning for {}: it has no subsets\n", set.name));
        return ExitStatus::Usage;
    }
    let given = matches.get_many::<String>("dataset-filter").into_iter().flatten();
    let filters = match filters(set, given.map(String::as_str)) {
        Ok(filters) => filters,
        Err(error) => {
            print::err(&error.report());
            return ExitStatus::Usage;
        }
    };
    let entries = matches.get_one::<u64>("num-dataset-entries").copied();
    let wanted = PublicDataset {
        name: set.name,
        repo,
        subset,
        filters,
        entries,
        bound: entries,
        context_limit: None,
        request_tokens: Arc::default(),
        origin: String::new(),
    };
    match remote::public::fetch(environment, &wanted) {
        Ok(fetched) if matches.get_flag("json") => {
            print::json(&Value::Array(vec![Value::Object(fetched.facts)]), true);
            ExitStatus::Success
        }
        Ok(fetched) => {
            print::out(&format!("{}\n", fetched.line));
            ExitStatus::Success
        }
        Err(failure) => {
            print::err(&format!("error: {}\n", redact_text(&failure.text)));
            failure.status
        }
    }
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    // Small pages: memory is what is in use.
    ready_process();
    let as_json = matches.get_flag("json");
    let environment = Environment::of_process();
    let named = matches.contains_id("hf-weka-dataset").then_some("weka_hf");
    if let Some(name) = matches.get_one::<String>("public-dataset").map(String::as_str).or(named) {
        return fetch_set(matches, name, &environment);
    }
    let references: Vec<&String> = matches.get_many("references").into_iter().flatten().collect();
    let (sources, _signals) = match remote::comparing_sources(&environment) {
        Ok(sources) => sources,
        Err(problem) => {
            // It is the fault of all of them.
            let first = references.first().map(|text| redact_reference(text)).unwrap_or_default();
            let error = problem.about(first);
            print::err(&format!("error: {error}\n"));
            return (&error).into();
        }
    };
    let mut status = ExitStatus::Success;
    let mut objects = Vec::new();
    for text in references {
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
        print::json(&Value::Array(objects), true);
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
    let mut fetched = remote::fetch(sources, &plan)?;
    let format = FileFormat::ALL.iter().copied().find(|known| Some(known.name()) == plan.format);
    if let Some(format) = format {
        let block_size = plan.block_size.and_then(|size| u32::try_from(size).ok());
        remote::check_first_record(&plan, fetched.view.path(), format, block_size, &InputColumns::default())?;
    } else if let Err(fault) = remote::detect(&plan, &mut fetched) {
        print::err(&format!("warning: {}\n", redact_text(&fault)));
    }
    let here: Vec<Presence> = plan.files().map(|_| Presence { cached: true, sha256: None }).collect();
    let object = json(&plan, &here, None, Some(&fetched.provenance), scheduled_by_format(plan.format));
    let lines = match &reference {
        Reference::Local(_) => vec![format!(
            "{} is on this disk, nothing to fetch: {} file(s), {} bytes, sha256 {}",
            reference.redacted(),
            fetched.provenance.files.len(),
            fetched.provenance.bytes(),
            &fetched.provenance.sha256()[..12],
        )],
        _ => fetched.provenance.lines(),
    };
    Ok((object, lines))
}
