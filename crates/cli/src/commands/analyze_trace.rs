//! `aiperf analyze-trace INPUT`: what is in it?

use std::path::Path;

use aiperf_analyze::{analyze, render, to_json};
use aiperf_config::{FileDataset, redact_text};
use aiperf_dataset::{DatasetError, Survey, format};
use aiperf_report::{remedy, write_atomic};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};

use super::input;
use super::input::own_flags;
use super::interrupt::EndsAtOnce;
use super::output;
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::exit::Failure;
use crate::print;
use crate::remote::{Named, tokenizers};

/// The flag that names the file of the report.
const OUTPUT: &str = "--output-file";

pub(crate) fn command() -> Command {
    Command::new("analyze-trace")
        .about("Report the lengths, times and shared prefixes of a data set")
        .long_about(
            "Report the lengths, times, sessions and shared prefixes of a trace or another data set. Nothing is sent, \
             and no prompt is made.",
        )
        .arg(Arg::new("place").value_name("INPUT").help("File, folder or reference (hf://, s3://, https://)"))
        .arg(
            Arg::new("input")
                .long("input-file")
                .value_name("INPUT")
                .conflicts_with("place")
                .help("The same as a flag"),
        )
        .arg(
            Arg::new("type")
                .long("custom-dataset-type")
                .value_name("TYPE")
                .help("Dataset type [default: found out]"),
        )
        .arg(input::block_size_argument())
        .arg(input::columns_argument())
        .arg(Arg::new("output").long("output-file").value_name("FILE").help("Write the report as JSON, too"))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .default_value("console")
                .value_parser(PossibleValuesParser::new(["console", "json"]))
                .help("Text or JSON on stdout"),
        )
        .arg(
            Arg::new("tokenizer")
                .long("tokenizer")
                .value_name("NAME")
                .help("Count recorded texts in its tokens instead of characters"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    report(matches).map_or_else(Failure::tell, |()| ExitStatus::Success)
}

fn report(matches: &ArgMatches) -> Result<(), Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let failed = |message: String| Failure::new(message, ExitStatus::Failure);
    let path = text("place").or_else(|| text("input"));
    let path =
        path.ok_or_else(|| Failure::usage("no input; name a file or folder: aiperf analyze-trace INPUT"))?;
    let columns = input::columns(matches).map_err(Failure::usage)?;
    let declared = text("type").map(input::format_named).transpose().map_err(Failure::usage)?;
    let environment = Environment::of_process();
    let tokenizer = text("tokenizer").map(|name| tokenizers::open(&environment, name)).transpose()?;
    let named = Named::bring(path, declared, &environment)?;
    let ends = EndsAtOnce::new(named.leftover());
    let failed_at = |error: &DatasetError| failed(named.told(&own_flags(&error.to_string())));
    let asked = matches.get_one::<u32>("block-size").copied().or(named.block_size);
    let file = input::file(named.path(), named.format, asked, &columns).map_err(|error| failed_at(&error))?;
    input::tell_columns(&columns, &file);
    let found = file.format;
    let output = text("output").map(Path::new);
    if let Some(output) = output {
        output::is_not_read(OUTPUT, output, &format(found).files_read(&file.path))?;
    }
    let refused = if format(found).takes("--isl-block-size") { blocks_fault(file.clone()) } else { None };
    let survey = Survey::figures();
    let reading = print::waiting("reading");
    let dataset = input::survey(file, &survey);
    if let Ok(dataset) = &dataset {
        dataset.wait_for(u64::MAX);
    }
    drop(reading);
    if let (Some(fault), count) = (survey.faults().0.first(), survey.faults().1) {
        let failure = failed_at(fault);
        let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        let text = format!("{}{more}; aiperf validate {} shows every fault", failure.text, found.name());
        return Err(Failure { text, ..failure });
    }
    let dataset = dataset.map_err(|error| failed_at(&error))?;
    if let Some(fault) = dataset.fault() {
        return Err(failed_at(&fault));
    }
    for note in dataset.notes().iter().filter(|note| note.is_of_faults()) {
        print::err(&format!("warning: {}\n", redact_text(&named.told(&note.to_string()))));
    }
    let block_size = asked.or(format(found).block_size);
    let analyzing = print::waiting("analyzing");
    let analysis = analyze(dataset.as_ref(), found, block_size, tokenizer.as_ref())
        .map_err(|error| failed_at(&error))?;
    drop(analyzing);
    let as_json = || {
        let mut report = to_json(&analysis);
        if let Some(provenance) = named.provenance(Some(found)) {
            report["dataset"] = provenance;
        }
        report
    };
    if text("format") == Some("json") {
        print::json(&as_json(), true);
    } else {
        print::out(&render(&analysis));
    }
    drop(ends);
    if let Some(output) = output {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| write_atomic(output, format!("{:#}\n", as_json()).as_bytes()))
            .map_err(|error| {
                let remedy = remedy(&error, OUTPUT);
                failed(format!("cannot write {}: {error}; {remedy}", output.display()))
            })?;
        print::err(&format!("Analysis report saved to {}\n", output.display()));
    }
    match refused {
        None => Ok(()),
        Some(fault) => {
            let failure = failed_at(&fault);
            let text = format!(
                "a run refuses these data, whose figures are above: {}; aiperf validate {} shows every fault",
                failure.text,
                found.name()
            );
            Err(Failure { text, ..failure })
        }
    }
}

/// The first record whose blocks cannot be made: it has figures all the same.
fn blocks_fault(file: FileDataset) -> Option<DatasetError> {
    let survey = Survey::new(1);
    if let Ok(dataset) = input::survey(file, &survey) {
        dataset.wait_for(u64::MAX);
    }
    survey.faults().0.into_iter().next()
}
