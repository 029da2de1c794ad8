//! `aiperf validate TYPE INPUT`: would it load?

use std::fmt::Write as _;

use aiperf_analyze::{Validation, validate};
use aiperf_config::{FileFormat, InputColumns, redact_text};
use aiperf_dataset::{DatasetError, Survey};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use super::input;
use super::interrupt::EndsAtOnce;
use super::whole::whole_u32;
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::print;
use crate::remote::Named;

const DETECT: &str = "auto";
/// The next step where none is shown.
const ABOVE_0: &str = "--max-errors above 0 shows them";

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
        .arg(Arg::new("place").value_name("INPUT").help("File, folder or reference (hf://, s3://, https://)"))
        .arg(Arg::new("input").long("input").value_name("INPUT").conflicts_with("place").help("The same as a flag"))
        .arg(
            Arg::new("max-errors")
                .long("max-errors")
                .value_name("N")
                .default_value("10")
                .value_parser(whole_u32(0))
                .help("Errors to show; all are counted"),
        )
        .arg(input::block_size_argument())
        .arg(input::columns_argument())
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
    let as_json = text("format") == Some("json");
    let columns = match input::columns(matches) {
        Ok(columns) => columns,
        Err(message) => return usage(&message),
    };
    let asked = Asked { block_size, columns, most, as_json };
    let named = match Named::bring(path, declared, &Environment::of_process()) {
        Ok(named) => named,
        Err(error) => {
            let (status, message) = (ExitStatus::from(&error), as_argument(&error.to_string()));
            return asked.cannot_read(&Validation::unread(declared, &message), &message, None, status);
        }
    };
    let _ends = EndsAtOnce::new(named.leftover());
    asked.check(&named)
}

/// What was asked for.
struct Asked {
    block_size: Option<u32>,
    columns: InputColumns,
    /// Findings to show.
    most: usize,
    as_json: bool,
}

impl Asked {
    fn check(&self, named: &Named) -> ExitStatus {
        let path = named.path();
        let block_size = self.block_size.or(named.block_size);
        let mut found = named.format;
        let checked = input::file(path, named.format, block_size, &self.columns).and_then(|file| {
            input::tell_columns(&self.columns, &file);
            let survey = Survey::new(self.most);
            let format = file.format;
            found = Some(format);
            let _reading = print::waiting("reading");
            let opened = input::survey(file, &survey);
            validate(opened.as_deref(), &survey, format, self.most, path.is_dir())
        });
        let provenance = named.provenance(found);
        match checked {
            Ok(validation) => {
                let validation = validation.reworded(|text| named.told(&as_argument(text)));
                if self.as_json {
                    json(&validation, provenance);
                } else {
                    print::out(&shown(&validation));
                }
                if validation.is_valid() { ExitStatus::Success } else { ExitStatus::Failure }
            }
            Err(error) => {
                let reworded = |text: &str| named.told(&as_argument(text));
                let message = reworded(&error.to_string());
                let unread = match &error {
                    DatasetError::Missing { .. } => Validation::unread(found, &message),
                    _ => Validation::unopened(found, &error).reworded(reworded),
                };
                self.cannot_read(&unread, &message, provenance, ExitStatus::Failure)
            }
        }
    }

    /// Says why nothing could be checked.
    fn cannot_read(
        &self,
        validation: &Validation,
        message: &str,
        provenance: Option<Value>,
        status: ExitStatus,
    ) -> ExitStatus {
        if self.as_json {
            json(validation, provenance);
        }
        print::err(&format!("Validation failed: {}\n", redact_text(message)));
        status
    }
}

fn json(validation: &Validation, provenance: Option<Value>) {
    let mut report = validation.json();
    if let Some(provenance) = provenance {
        report["dataset"] = provenance;
    }
    print::json(&report, false);
}

/// Advice in the words of this command: the type is an argument here.
fn as_argument(text: &str) -> String {
    // Only where nobody named one is it asked for.
    let text = text
        .replace("name the type with --custom-dataset-type", "put the type in the place of `auto`")
        .replace("`auto`, and columns of", "`auto`, and name columns of");
    input::own_flags(&text).replace("--custom-dataset-type", "TYPE")
}

fn shown(validation: &Validation) -> String {
    let mut out = String::new();
    if validation.is_valid() {
        let what = match validation.format {
            Some(FileFormat::MooncakeTrace) | None => "rows are Mooncake-compatible".to_owned(),
            Some(format) => format!("records load as {}", format.name()),
        };
        let _ = writeln!(out, "Validation passed: {} {what}.", validation.rows);
    } else if validation.errors.is_empty() {
        let _ = writeln!(out, "Validation failed with {} error(s); {ABOVE_0}", validation.count);
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
    if more > 0 && validation.warnings.is_empty() {
        let _ = writeln!(out, "  {more} warning(s); {ABOVE_0}");
    } else if more > 0 {
        let _ = writeln!(out, "  and {more} more warning(s); --max-errors shows them");
    }
    out
}
