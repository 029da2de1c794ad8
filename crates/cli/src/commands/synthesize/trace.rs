//! `aiperf synthesize trace`: a trace with given arrivals, lengths and reuse of prefixes.

use std::io;
use std::path::Path;

use aiperf_report::AtomicFile;
use aiperf_synthesize::LogNormal;
use aiperf_synthesize::trace::{Arrivals, Length, Shape, Totals, TraceError, TraceSynthesis};
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, value_parser};

use super::super::interrupt::{EndsAtOnce, Interrupt, Unfinished};
use super::super::output::{self, STDOUT};
use super::super::whole::{whole, whole_u32};
use crate::exit::ExitStatus;
use crate::exit::Failure;
use crate::print;

const REUSE: &str = "prefix-reuse";

pub(super) fn command() -> Command {
    let argument = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).allow_negative_numbers(true).help(help)
    };
    let count = |name: &'static str, default: &'static str, help: &'static str| {
        argument(name, "N", help).default_value(default).value_parser(whole(0))
    };
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        argument(name, "X", help).default_value(default).value_parser(value_parser!(f64))
    };
    Command::new("trace")
        .about("A trace with given arrivals, lengths and reuse of prefixes")
        .long_about(
            "A mooncake_trace with given arrivals, lengths and reuse of prefixes, for people who may not publish their \
             own. Requests belong to groups; those of one group share leading blocks. A length is a mean (with \
             --isl-stddev, --osl-stddev: normal), or MEAN,MEDIAN of a lognormal distribution",
        )
        .args(output::arguments("The trace to write; - is stdout", true))
        .arg(count("num-requests", "1000", "Rows"))
        .arg(number("rate", "1", "Requests per second"))
        .arg(
            argument("arrival", "PATTERN", "Spacing of arrivals [default: poisson; gamma with --arrival-smoothness]")
                .value_parser(PossibleValuesParser::new(["poisson", "constant", "gamma"])),
        )
        .arg(
            argument("arrival-smoothness", "SHAPE", "Shape of gamma arrivals: below 1 is bursty, above 1 smooth")
                .value_parser(value_parser!(f64)),
        )
        .arg(argument("isl", "N|MEAN,MEDIAN", "Tokens of a prompt").default_value("4096"))
        .arg(argument("isl-stddev", "X", "Their standard deviation [default: 0]").value_parser(value_parser!(f64)))
        .arg(argument("osl", "N|MEAN,MEDIAN", "Tokens of an answer").default_value("256"))
        .arg(argument("osl-stddev", "X", "Their standard deviation [default: 0]").value_parser(value_parser!(f64)))
        .arg(number(REUSE, "0.5", "Share of all blocks that an earlier request had in the same place"))
        .arg(
            count("prefix-groups", "16", "Groups that share a prefix").value_parser(whole_u32(0)),
        )
        .arg(number("zipf-alpha", "1.0", "Group k is chosen with weight k^-X"))
        .arg(count("block-size", "512", "Tokens of a block").value_parser(whole_u32(0)))
        .arg(count("seed", "42", "The same seed gives the same trace"))
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    synthesize(matches).map_or_else(Failure::tell, |()| ExitStatus::Success)
}

fn shape(matches: &ArgMatches) -> Result<Shape, Failure> {
    // Invariant: what is read here by `count` and `number` has a default.
    let count = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let small = |name: &str| matches.get_one::<u32>(name).copied().unwrap_or_default();
    let number = |name: &str| matches.get_one::<f64>(name).copied().unwrap_or_default();
    let smoothness = matches.get_one::<f64>("arrival-smoothness").copied();
    let arrivals = match (matches.get_one::<String>("arrival").map(String::as_str), smoothness) {
        (None | Some("gamma"), Some(smoothness)) => Arrivals::Gamma(smoothness),
        (Some("gamma"), None) => Arrivals::Gamma(1.0),
        (Some(pattern), Some(_)) => {
            return Err(Failure::usage(format!(
                "--arrival-smoothness shapes gamma arrivals, and --arrival is {pattern}; leave one of them out"
            )));
        }
        (Some("constant"), None) => Arrivals::Constant,
        _ => Arrivals::Poisson,
    };
    Ok(Shape {
        requests: count("num-requests"),
        rate: number("rate"),
        arrivals,
        input: length(matches, "isl", "isl-stddev")?,
        output: length(matches, "osl", "osl-stddev")?,
        reuse: number(REUSE),
        groups: small("prefix-groups"),
        zipf_alpha: number("zipf-alpha"),
        block_size: small("block-size"),
        seed: count("seed"),
    })
}

fn length(matches: &ArgMatches, name: &str, deviation: &str) -> Result<Length, Failure> {
    let text = matches.get_one::<String>(name).map_or("", String::as_str);
    let stddev = matches.get_one::<f64>(deviation).copied();
    let numbers: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    match (numbers.as_deref(), stddev) {
        (Some([mean]), stddev) => Ok(Length::Normal { mean: *mean, stddev: stddev.unwrap_or(0.0) }),
        (Some([_, _]), Some(_)) => Err(Failure::usage(format!(
            "--{deviation} belongs to a normal length, and --{name} {text} is lognormal; leave it out, or give a mean \
             alone"
        ))),
        // What is wrong with the two is said by the crate that draws.
        (Some([mean, median]), None) => Ok(Length::LogNormal(LogNormal::new(*mean, *median))),
        _ => Err(Failure::usage(format!("--{name} {text:?} is neither a number nor MEAN,MEDIAN"))),
    }
}

fn synthesize(matches: &ArgMatches) -> Result<(), Failure> {
    let ends = EndsAtOnce::new(None);
    let shape = shape(matches)?;
    let output = matches.get_one::<String>("output").map_or(STDOUT, String::as_str);
    if output != STDOUT {
        output::may_write(matches, Path::new(output))?;
    }
    let requests = shape.requests;
    let mut patience = print::patience();
    let mut progress = |done| patience.tell(done, 0, "draws looked at");
    let wanted = shape.reuse;
    let is_default = matches.value_source(REUSE) == Some(ValueSource::DefaultValue);
    let (synthesis, lowered) = match TraceSynthesis::new(shape.clone(), &mut progress) {
        // Nobody asked for the default.
        Err(TraceError::Reuse { highest, .. }) if is_default => {
            (TraceSynthesis::new(Shape { reuse: highest, ..shape }, &mut progress), Some(highest))
        }
        planned => (planned, None),
    };
    let synthesis = synthesis.map_err(|error| Failure::usage(error.to_string()))?;
    drop(patience);
    if let Some(highest) = lowered {
        print::err(&format!(
            "info: --{REUSE} is {highest} here: {wanted}, the default, cannot be reached with these lengths, groups and \
             requests\n"
        ));
    }
    let broken = |error: &io::Error| output::broken(output, error);
    let mut patience = print::patience();
    let mut progress = |done| patience.tell(done, requests, "rows");
    let written = if output == STDOUT {
        let mut rows = output::stdout();
        match synthesis.write(&mut rows, &mut progress) {
            // Whoever closed the other end has read enough.
            Err(TraceError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written,
        }
    } else {
        // From now on there is something to take away.
        let interrupt = Interrupt::new(&Unfinished::file(Path::new(output)));
        drop(ends);
        let mut file = AtomicFile::create(output).map_err(|error| broken(&error))?;
        let written = synthesis.write(&mut interrupt.writer(&mut file), &mut progress);
        // Given up, the file is gone.
        interrupt.check()?;
        if written.is_ok() {
            file.commit().map_err(|error| broken(&error))?;
        }
        written
    };
    drop(patience);
    let totals = written.map_err(|error| match &error {
        TraceError::Write(error) => broken(error),
        error => Failure::usage(error.to_string()),
    })?;
    print::err(&summary(output, &totals));
    Ok(())
}

fn summary(output: &str, totals: &Totals) -> String {
    let rows = totals.rows as f64;
    let seconds = totals.span_ms / 1000.0;
    // One row has no rate.
    let rate = if totals.rows > 1 && seconds > 0.0 {
        format!(", {:.4} requests/s", (rows - 1.0) / seconds)
    } else {
        String::new()
    };
    format!(
        "{}: {} rows in {seconds:.3} s{rate}, {:.1} tokens in and {:.1} out per request, prefix reuse {:.4}\n",
        output::shown(output),
        totals.rows,
        totals.input_tokens as f64 / rows,
        totals.output_tokens as f64 / rows,
        totals.reuse
    )
}
