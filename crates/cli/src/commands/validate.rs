//! `aiperf validate TYPE INPUT`: would it load?

use std::fmt::Write as _;
use std::path::Path;

use aiperf_analyze::{Validation, validate};
use aiperf_config::{FileFormat, redact_text};
use aiperf_dataset::Survey;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, value_parser};

use super::input;
use crate::exit::ExitStatus;
use crate::print;

const DETECT: &str = "auto";

pub(crate) fn command() -> Command {
    Command::new("validate")
        .about("Check a whole data set with the checks of the loader")
        .long_about(
            "Check a whole data set with the checks of the loader: what passes loads, and what a run refuses fails \
             here with the same text. Nothing is sent. Exit code 0 when it is valid, 1 when it is not.",
        )
        .arg(
            Arg::new("type")
                .value_name("TYPE")
                .required(true)
                .help("Dataset type, such as mooncake-trace, or auto to find it out"),
        )
        .arg(Arg::new("place").value_name("INPUT").help("File or folder"))
        .arg(Arg::new("input").long("input").value_name("INPUT").conflicts_with("place").help("The same as a flag"))
        .arg(
            Arg::new("max-errors")
                .long("max-errors")
                .value_name("N")
                .default_value("10")
                .value_parser(value_parser!(u32))
                .help("Errors to show; all are counted"),
        )
        .arg(
            Arg::new("block-size")
                .long("block-size")
                .value_name("TOKENS")
                .value_parser(value_parser!(u32).range(1..))
                .help("Tokens of a hash block [default: that of the type]"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .default_value("console")
                .value_parser(PossibleValuesParser::new(["console", "json"]))
                .help("Text or JSON"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let usage = |message: &str| {
        print::err(&format!("error: {message}\n"));
        ExitStatus::Usage
    };
    let Some(path) = text("place").or_else(|| text("input")) else {
        return usage("no input; name a file or folder: aiperf validate TYPE INPUT");
    };
    let declared = match text("type") {
        None | Some(DETECT) => None,
        Some(name) => match input::format_named(name) {
            Ok(format) => Some(format),
            Err(message) => return usage(&format!("{message}; aiperf validate auto INPUT finds it out")),
        },
    };
    // Invariant: it has a default.
    let most = matches.get_one::<u32>("max-errors").map_or(10, |most| *most as usize);
    let block_size = matches.get_one::<u32>("block-size").copied();
    let path = Path::new(path);
    let checked = input::file(path, declared, block_size).and_then(|file| {
        let survey = Survey::new(most);
        let format = file.format;
        let opened = input::survey(file, &survey);
        validate(opened.as_deref(), &survey, format, most, path.is_dir())
    });
    match checked {
        Ok(validation) if text("format") == Some("json") => {
            print::out(&format!("{}\n", validation.json()));
            status(&validation)
        }
        Ok(validation) => {
            print::out(&shown(&validation));
            status(&validation)
        }
        Err(error) => {
            // The type is an argument here.
            let message = input::message(&error).replace("--custom-dataset-type", "TYPE");
            print::err(&format!("Validation failed: {}\n", redact_text(&message)));
            ExitStatus::Failure
        }
    }
}

fn status(validation: &Validation) -> ExitStatus {
    if validation.is_valid() { ExitStatus::Success } else { ExitStatus::Failure }
}

fn shown(validation: &Validation) -> String {
    let mut out = String::new();
    if validation.is_valid() {
        let what = match validation.format {
            FileFormat::MooncakeTrace => "rows are Mooncake-compatible".to_owned(),
            format => format!("records load as {}", format.name()),
        };
        let _ = writeln!(out, "Validation passed: {} {what}.", validation.rows);
    } else {
        let _ = writeln!(out, "Validation failed with {} error(s):", validation.count);
        for error in &validation.errors {
            let _ = writeln!(out, "  {}", error.text(""));
        }
        let more = validation.count - validation.errors.len() as u64;
        if more > 0 {
            let _ = writeln!(out, "  and {more} more; --max-errors shows them");
        }
    }
    for warning in &validation.warnings {
        let _ = writeln!(out, "  {}", warning.text("warning: "));
    }
    let more = validation.warning_count - validation.warnings.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "  and {more} more warning(s); --max-errors shows them");
    }
    out
}
