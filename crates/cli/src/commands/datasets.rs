//! `aiperf datasets [NAME]`: what the data of a run may be.

pub(super) mod public;

use std::fmt::Write as _;

use aiperf_config::Corpus;
use aiperf_dataset::{Files, Format, formats};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use crate::exit::ExitStatus;
use crate::{print, similar};

pub(crate) fn command(name: &'static str) -> Command {
    Command::new(name)
        .about("List the formats of data files and the public data sets, or say all about one")
        .long_about(
            "List the formats of data files and the public data sets, or say all about one. Of a format: how files are \
             written, what a record is, and which options act; its name goes with --custom-dataset-type. Of a public \
             data set: where it lies and what is read of it; its name goes with --public-dataset. Needs no network.",
        )
        .arg(Arg::new("name").value_name("NAME").help("One format or public data set, such as mooncake-trace"))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .default_value("text")
                .value_parser(PossibleValuesParser::new(["text", "json"]))
                .help("Text or JSON"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let as_json = text("format") == Some("json");
    let Some(asked) = text("name") else {
        if as_json {
            let formats: Vec<Value> = formats().iter().map(facts).collect();
            print::json(&json!({"formats": formats, "public_datasets": public::all_facts()}), true);
        } else {
            print::out(&(list() + &public::list() + "\naiperf datasets NAME says all about one\n"));
        }
        return ExitStatus::Success;
    };
    let plain = asked.to_ascii_lowercase().replace('-', "_");
    let Some(format) = formats().iter().find(|format| format.name() == plain) else {
        return public::details(asked, &plain, as_json);
    };
    if as_json {
        print::json(&facts(format), true);
    } else {
        print::out(&details(format));
    }
    ExitStatus::Success
}

/// The answer to a name that nothing has.
pub(in crate::commands) fn unknown<'a>(
    what: &str,
    asked: &str,
    plain: &str,
    names: impl Iterator<Item = &'a str>,
) -> String {
    /// More are no answer but a wall.
    const MOST: usize = 60;
    let names: Vec<&str> = names.collect();
    let near = similar::nearest(plain, names.iter().copied());
    let tip = match (near.is_empty(), names.len()) {
        (false, _) => format!("; near names: {}", near.join(", ")),
        (true, 0..=MOST) => format!("; there are {}", names.join(", ")),
        (true, _) => "; `aiperf datasets` lists them".to_owned(),
    };
    format!("there is no {what} '{asked}'{tip}")
}

/// How files of a format are written, in a few words.
fn files(format: &Format) -> String {
    let one = match format.files {
        Files::Jsonl => "JSONL",
        Files::Json => "JSON",
        Files::Csv => "CSV",
        Files::Parquet => "Parquet, Arrow",
    };
    let mut all = one.to_owned();
    if format.parquet && format.files != Files::Parquet {
        all.push_str(", Parquet");
    }
    if format.reads_folders() {
        all.push_str(", folder");
    }
    all
}

fn corpus(format: &Format) -> Option<&'static str> {
    format.corpus.map(|corpus| match corpus {
        Corpus::Sonnet => "sonnet",
        Corpus::Coding => "coding",
        Corpus::Random => "random",
    })
}

fn facts(format: &Format) -> Value {
    json!({
        "name": format.name(),
        "files": files(format),
        "record": format.record,
        "block_size": format.block_size,
        "corpus": corpus(format),
        "trace": format.trace,
        "parquet": format.parquet || format.files == Files::Parquet,
        "options": format.options,
        "fields": format.fields,
    })
}

const HEADINGS: [&str; 6] = ["name", "files", "one record is", "block", "corpus", "trace"];

fn list() -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(formats().iter().map(|format| {
        [
            format.name().to_owned(),
            files(format),
            format.record.to_owned(),
            format.block_size.map_or_else(|| "-".into(), |size| size.to_string()),
            corpus(format).unwrap_or("-").to_owned(),
            if format.trace { "yes" } else { "no" }.to_owned(),
        ]
    }));
    columns(&rows)
}

/// Rows with their cells below each other.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> =
        (0..N).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn details(format: &Format) -> String {
    let mut rows = vec![
        ["name".to_owned(), format.name().to_owned()],
        ["files".to_owned(), files(format)],
        ["one record is".to_owned(), format.record.to_owned()],
    ];
    if let Some(size) = format.block_size {
        rows.push(["tokens of a block".to_owned(), size.to_string()]);
    }
    if let Some(corpus) = corpus(format) {
        rows.push(["prompts are cut from".to_owned(), corpus.to_owned()]);
    }
    let trace = match (format.trace, format.promotes) {
        (true, true) => "yes; recorded times make a fixed schedule",
        (true, false) => "yes",
        (false, _) if format.timed => "no; --fixed-schedule plays recorded times",
        (false, _) => "no",
    };
    rows.push(["trace".to_owned(), trace.to_owned()]);
    let mut text = columns(&rows);
    text.push_str("options that act on it besides those that act on every file:\n");
    for option in format.options {
        _ = writeln!(text, "  {option}");
    }
    if !format.fields.is_empty() {
        text.push_str("fields that --input-columns finds under other names:\n");
        for field in format.fields {
            _ = writeln!(text, "  {field}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_format_that_can_be_read() {
        let text = list();
        for format in formats() {
            assert!(text.lines().any(|line| line.split(' ').next() == Some(format.name())));
        }
        let json = facts(aiperf_dataset::format(aiperf_config::FileFormat::BailianTrace));
        assert_eq!(json["block_size"], 16);
        assert_eq!(json["files"], "JSONL, Parquet");
    }

    #[test]
    fn fields_are_listed_where_they_can_be_found_under_other_names() {
        for format in formats() {
            assert_eq!(format.takes("--input-columns"), !format.fields.is_empty(), "{}", format.name());
            let text = details(format);
            assert!(format.fields.iter().all(|field| text.contains(&format!("\n  {field}\n"))), "{text}");
        }
    }

    #[test]
    fn an_option_of_a_format_is_a_flag() {
        for option in formats().iter().flat_map(|format| format.options) {
            assert!(crate::flags::find(option).is_some(), "{option}");
        }
    }

    #[test]
    fn unknown_names_get_up_to_five_near_ones() {
        let message = unknown("data set format", "mooncake", "mooncake", formats().iter().map(Format::name));
        assert!(message.contains("near names: mooncake_trace"), "{message}");
        let message =
            unknown("data set format", "speed_bench", "speed_bench", formats().iter().map(Format::name));
        assert_eq!(message.matches("speed_bench_").count(), 5, "{message}");
        let message = unknown(
            "data set format",
            "qqqqqqqqqqqqqqqq",
            "qqqqqqqqqqqqqqqq",
            formats().iter().map(Format::name),
        );
        // Where none is near, all are told.
        assert!(!message.contains("near"), "{message}");
        assert!(formats().iter().all(|format| message.contains(format.name())), "{message}");
        let message = unknown("data set", "qqqqqqqqqqqqqqqq", "qqqqqqqqqqqqqqqq", ["a"; 61].into_iter());
        assert!(message.ends_with("'; `aiperf datasets` lists them"), "{message}");
    }
}
