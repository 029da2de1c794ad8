//! The table of settings: one row per name, read by the parser, by flags and by help.

use super::SettingsError;
use crate::fault;

/// Where a setting may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// In a `mock://` URL and as a flag of `aiperf mock-server`.
    Url,
    /// As a flag only.
    Command,
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name, without dashes in front.
    pub name: &'static str,
    /// What it takes, for refusals.
    pub form: &'static str,
    /// What stands for the value in help, such as `TIME`.
    pub value_name: &'static str,
    /// The value when it is not given; none when the feature is off then.
    pub default: Option<&'static str>,
    /// What it does.
    pub meaning: &'static str,
    /// Where it may be given.
    pub source: NameSource,
}

const TIME: &str = "a time (`20ms`, `1.5s`, `300us`, a bare number of milliseconds; 30 days at most) or `uniform:A:B` (A not \
     above B), `normal:MEAN:SD`, `lognormal:MEDIAN:SIGMA` (SIGMA 10 at most), `exp:MEAN` of times";
const FIXED_TIME: &str = "a time (`20ms`, `1.5s`, `300us`, a bare number of milliseconds; 30 days at most)";
const COUNT: &str = "a whole number from 1 to 1000000000000, or `uniform:A:B` (A not above B), `normal:MEAN:SD`, \
     `lognormal:MEDIAN:SIGMA` (SIGMA 10 at most), `exp:MEAN` of numbers";
const INTEGER: &str = "a whole number from 0 to 1000000000000";

const fn row(
    name: &'static str,
    value_name: &'static str,
    form: &'static str,
    default: Option<&'static str>,
    meaning: &'static str,
) -> Name {
    Name { name, form, value_name, default, meaning, source: NameSource::Url }
}

const fn command_only(name: Name) -> Name {
    Name { source: NameSource::Command, ..name }
}

pub(super) const NAMES: &[Name] = &[
    row("ttft", "TIME", TIME, Some("20ms"), "From the end of the request body to the first token"),
    row("itl", "TIME", TIME, Some("5ms"), "Between tokens"),
    row("tokens", "COUNT", COUNT, Some("64"), "Tokens of an answer without a limit"),
    row(
        "reasoning",
        "PERCENT",
        "a whole number from 0 to 100",
        Some("0"),
        "Percent of answers whose first half is reasoning",
    ),
    row("cached-tokens", "N", INTEGER, None, "Reported as cached prompt tokens"),
    row(
        "spec-decode",
        "BOOL",
        "`true` or `false`",
        Some("false"),
        "Report speculative decoding on the last chunk",
    ),
    row(
        "usage",
        "MODE",
        "`exact`, `estimate` or `off`",
        Some("exact"),
        "Prompt tokens: counted with o200k_base, a quarter of the bytes, or no usage at all",
    ),
    row(
        "embedding-dim",
        "N",
        "a whole number from 1 to 1048576",
        Some("1024"),
        "Length of embedding vectors",
    ),
    row(
        "models",
        "NAMES",
        "model names joined by `:` or by `,`",
        None,
        "Models that are served, joined by `:` or, where a name has one, by `,`: `llama3:8b,phi3:mini`, and `llama3:8b,` \
         for a single one; any other gets 404. Without it any model is served",
    ),
    row(
        "plan",
        "FAULTS",
        "faults joined by `:`, each with `*COUNT` (1 to 1000000000) if wanted",
        Some("ok"),
        "Faults by request number, repeated, joined by `:`; `ok*9:http500` fails every tenth request",
    ),
    row("stall", "TIME", FIXED_TIME, Some("10s"), "Length of the faults `stall` and `slow_headers`"),
    row("idle-timeout", "TIME", FIXED_TIME, None, "Close connections that are idle this long"),
    row("threads", "N", "a whole number from 1 to 256", Some("1"), "Network threads"),
    row("seed", "N", "a whole number from 0 to 18446744073709551615", Some("0"), "Seed of all draws"),
    command_only(row(
        "log",
        "FILE",
        "a path",
        None,
        "Write one JSON line of server-side times per request, in nanoseconds of CLOCK_MONOTONIC as `start_perf_ns` of \
         raw records; the other times of records are wall time, with which only differences compare",
    )),
    command_only(row("tls-cert", "PEM", "a path", None, "Certificate chain: serve https")),
    command_only(row("tls-key", "PEM", "a path", None, "Private key of the certificate")),
];

/// The setting of this name, which may be given in `source`.
pub(super) fn find(name: &str, source: NameSource) -> Result<&'static Name, SettingsError> {
    let known = NAMES.iter().find(|known| known.name == name).ok_or_else(|| unknown(name, source))?;
    match (source, known.source) {
        (NameSource::Url, NameSource::Command) => Err(SettingsError::CommandOnly { name: known.name }),
        _ => Ok(known),
    }
}

/// Says which settings `source` may have.
pub(super) fn unknown(name: &str, source: NameSource) -> SettingsError {
    let may = NAMES.iter().filter(|known| source == NameSource::Command || known.source == NameSource::Url);
    let known: Vec<&str> = may.map(|known| known.name).collect();
    SettingsError::UnknownName { name: name.to_owned(), known: known.join(", ") }
}

/// The faults a plan may name, joined by commas.
pub(super) fn faults() -> String {
    let names =
        fault::faults().map(|(name, _)| if name == fault::HTTP { "httpNNN (300 to 599)" } else { name });
    names.collect::<Vec<_>>().join(", ")
}
