//! What was typed: flags and their values, read by kind and not yet judged.

use std::ffi::OsString;

use aiperf_config::redact_text;
use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::flags::{self, Flag, Kind, Status};
use crate::usage::UsageError;
use crate::{arguments, quote};

/// One value, as the kind of its flag reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A switch.
    Switch(bool),
    /// A text, a path or a choice (in the spelling of the table).
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number, or a time in seconds.
    Number(f64),
    /// `inf`.
    Forever,
}

/// A flag that was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// Which.
    pub flag: &'static Flag,
    /// The name that was used.
    pub name: String,
    /// Its values, in order.
    pub values: Vec<Value>,
    /// The last of them as it was typed, secrets redacted.
    pub last: String,
}

/// A command line of `aiperf profile`, read.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    given: Vec<Given>,
    arguments: Vec<String>,
}

impl Typed {
    /// Reads the arguments that follow `aiperf`, of which the first is `profile`.
    pub fn parse<I, A>(arguments: I) -> Result<Typed, UsageError>
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString>,
    {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let texts: Vec<String> = arguments.iter().map(|text| text.to_string_lossy().into_owned()).collect();
        let matches = arguments::parse(&arguments).map_err(|error| {
            let error = arguments::with_tip(error, &texts);
            UsageError::Arguments(quote::hidden(&error.to_string(), &texts))
        })?;
        match matches.subcommand() {
            Some(("profile", matches)) => Typed::read(matches, texts),
            _ => Err(UsageError::Arguments("error: not a profile command line\n".into())),
        }
    }

    /// Reads what clap found. A flag or value that is not there yet, or means nothing here, is refused first:
    /// whatever else is wrong matters less.
    pub(crate) fn read(matches: &ArgMatches, arguments: Vec<String>) -> Result<Typed, UsageError> {
        let found = || {
            flags::all().filter_map(|flag| {
                let id = flag.shown;
                (matches.value_source(id) == Some(ValueSource::CommandLine)).then(|| {
                    let texts: Vec<&str> =
                        matches.get_many::<String>(id).unwrap_or_default().map(String::as_str).collect();
                    (flag, name_used(flag, &arguments), texts)
                })
            })
        };
        for (flag, name, _) in found() {
            match flag.status {
                Status::NotYet(feature) => return Err(UsageError::FlagNotYet { flag: name, feature }),
                Status::NoMeaning(reason) => return Err(UsageError::NoMeaning { flag: name, reason }),
                Status::Supported | Status::Ours => {}
            }
        }
        let mut given = Vec::new();
        for (flag, name, texts) in found() {
            let values = texts
                .iter()
                .map(|text| read_value(flag, &name, text))
                .collect::<Result<Vec<_>, UsageError>>()?;
            let last = texts.last().map(|text| redact_text(text)).unwrap_or_default();
            given.push(Given { flag, name, values, last });
        }
        Ok(Typed { given, arguments })
    }

    /// The flag, if it was given. `shown` is the name of its row.
    pub fn get(&self, shown: &str) -> Option<&Given> {
        debug_assert!(flags::all().any(|flag| flag.shown == shown), "no row is called {shown}");
        self.given.iter().find(|given| given.flag.shown == shown)
    }

    /// Every flag that was given, in the order of the table.
    pub fn all(&self) -> &[Given] {
        &self.given
    }

    /// Whether the flag was given.
    pub fn has(&self, shown: &str) -> bool {
        self.get(shown).is_some()
    }

    /// The name that was used for a flag, else the one of its row.
    pub fn name<'a>(&'a self, shown: &'a str) -> &'a str {
        self.get(shown).map_or(shown, |given| given.name.as_str())
    }

    /// A switch: `None` when it was not given. Its name with `no-` in front is the opposite.
    pub fn switch(&self, shown: &str) -> Option<bool> {
        let given = self.get(shown)?;
        let on = match given.values.last() {
            Some(Value::Switch(on)) => *on,
            _ => true,
        };
        let opposite =
            given.name.strip_prefix("--no-").is_some_and(|rest| shown.strip_prefix("--") == Some(rest));
        Some(on != opposite)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, shown: &str) -> bool {
        self.switch(shown) == Some(true)
    }

    /// A text, a path or a choice.
    pub fn text(&self, shown: &str) -> Option<&str> {
        match self.get(shown)?.values.last() {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// All texts of a flag.
    pub fn texts(&self, shown: &str) -> impl Iterator<Item = &str> {
        self.get(shown).into_iter().flat_map(|given| &given.values).filter_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// A whole number.
    pub fn count(&self, shown: &str) -> Option<u64> {
        match self.get(shown)?.values.last() {
            Some(Value::Count(count)) => Some(*count),
            _ => None,
        }
    }

    /// A number or a time in seconds; `inf` is infinite.
    pub fn number(&self, shown: &str) -> Option<f64> {
        match self.get(shown)?.values.last() {
            Some(Value::Number(number)) => Some(*number),
            Some(Value::Forever) => Some(f64::INFINITY),
            _ => None,
        }
    }

    /// A message about the command line, secrets redacted.
    pub(crate) fn hidden(&self, message: &str) -> String {
        quote::hidden(message, &self.arguments)
    }

    /// The command line as results record it, secrets redacted.
    pub fn command_line(&self) -> String {
        quote::command_line(&self.arguments)
    }
}

/// The name of a flag that occurs in the arguments, the last one.
fn name_used(flag: &Flag, arguments: &[String]) -> String {
    arguments
        .iter()
        .rev()
        .find_map(|argument| {
            let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
            flag.names.contains(&name).then(|| name.to_owned())
        })
        .unwrap_or_else(|| flag.shown.to_owned())
}

fn read_value(flag: &'static Flag, name: &str, text: &str) -> Result<Value, UsageError> {
    let refuse = |rule: &str| {
        Err(UsageError::Value {
            flag: name.to_owned(),
            value: redact_text(text),
            rule: rule.to_owned(),
            similar: None,
        })
    };
    let is_sweep = || SWEPT.contains(&flag.shown) && is_list(text);
    match flag.kind {
        Kind::Switch => match text {
            "true" => Ok(Value::Switch(true)),
            "false" => Ok(Value::Switch(false)),
            _ => refuse("true or false"),
        },
        Kind::Text | Kind::Path if text.is_empty() => refuse("a value that is not empty"),
        Kind::Text if !flag.one_of.is_empty() => read_choice(flag, name, text),
        Kind::Choice => read_choice(flag, name, text),
        Kind::Text | Kind::Texts | Kind::Path => Ok(Value::Text(text.to_owned())),
        Kind::Count { min } => match whole(text, min, flag.most) {
            Ok(count) => Ok(Value::Count(count)),
            Err(_) if is_sweep() => Err(sweep(name, text)),
            Err(rule) => refuse(&rule),
        },
        Kind::Number(bounds) | Kind::Seconds(bounds) => match read_number(text) {
            Some(number)
                if number <= bounds.max
                    && (number > bounds.min || (!bounds.above && number.total_cmp(&bounds.min).is_eq())) =>
            {
                Ok(Value::Number(number))
            }
            None if is_sweep() => Err(sweep(name, text)),
            // A comma for the point.
            None if read_number(&text.replacen(',', ".", 1)).is_some() => Err(UsageError::Value {
                flag: name.to_owned(),
                value: text.to_owned(),
                rule: bounds.rule.to_owned(),
                similar: Some(text.replacen(',', ".", 1)),
            }),
            _ => refuse(bounds.rule),
        },
        Kind::SecondsOrForever => match read_number(text) {
            Some(number) if number >= 0.0 => Ok(Value::Number(number)),
            _ if ["inf", "infinity", "+inf"].contains(&text.to_ascii_lowercase().as_str()) => {
                Ok(Value::Forever)
            }
            _ => refuse("seconds, 0 or more, or inf"),
        },
    }
}

/// 2^53: beyond it a float no longer says which whole number was meant.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A finite number; negative zero is zero.
fn read_number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(number + 0.0)
}

/// A whole number, also written as `1e3` or `20.0`.
fn read_count(text: &str) -> Option<u64> {
    if let Ok(count) = text.parse() {
        return Some(count);
    }
    let number = read_number(text)?;
    (number >= 0.0 && number.fract() == 0.0 && number <= EXACT).then_some(number as u64)
}

/// A whole number from `least` to `most`; the rule that `text` breaks, in words that follow "expected", where it is none.
pub(crate) fn whole(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let rule = format!("a whole number, {least} or more");
    match read_count(text) {
        Some(count) if (least..=most).contains(&count) => Ok(count),
        Some(count) if count > most => Err(format!("{rule} and at most {most}")),
        // More digits than any number here has.
        None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("{rule} and at most {most}"))
        }
        None if read_number(text).is_some_and(|number| number > EXACT) => {
            Err(format!("{rule}, in digits where it is above {EXACT:.0}"))
        }
        _ => Err(rule),
    }
}

/// Flags of which the reference takes several values, for a run with each.
const SWEPT: [&str; 12] = [
    "--benchmark-duration",
    "--concurrency",
    "--prefill-concurrency",
    "--request-rate",
    "--request-count",
    "--num-users",
    "--num-conversations",
    "--conversation-turn-mean",
    "--isl",
    "--isl-stddev",
    "--osl",
    "--osl-stddev",
];

fn is_list(text: &str) -> bool {
    let mut parts = text.trim_matches(['[', ']']).split(',');
    text.contains(',') && parts.all(|part| read_number(part.trim()).is_some())
}

fn sweep(name: &str, text: &str) -> UsageError {
    UsageError::ValueNotYet {
        flag: name.into(),
        value: text.into(),
        what: flags::Later::Sweeps.phrase().into(),
    }
}

/// A choice in any letter case, with `_` or `-`.
fn read_choice(flag: &'static Flag, name: &str, text: &str) -> Result<Value, UsageError> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', '/'], "-");
    let wanted = plain(text);
    let known = flag.choices.iter().chain(flag.one_of).find(|choice| plain(choice) == wanted);
    if let Some((feature, values)) = flag.later
        && values.iter().any(|value| plain(value) == wanted)
    {
        return Err(UsageError::ValueNotYet {
            flag: name.into(),
            value: text.into(),
            what: feature.phrase().into(),
        });
    }
    if let Some(choice) = known {
        return Ok(Value::Text((*choice).to_owned()));
    }
    let values: Vec<&str> = flag.values().collect();
    let similar = crate::similar::closest(&wanted, flag.values().map(|value| (value, plain(value))));
    Err(UsageError::Value {
        flag: name.into(),
        value: text.into(),
        rule: format!("one of {}", values.join(", ")),
        similar: similar.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(arguments: &[&str]) -> Result<Typed, UsageError> {
        Typed::parse(std::iter::once("profile").chain(arguments.iter().copied()))
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let typed =
            typed(&["--concurrency=16", "--request-count", "1e3", "--request-rate", "2.5", "--isl", "20.0"]);
        let typed = typed.unwrap();
        assert_eq!(typed.count("--concurrency"), Some(16));
        assert_eq!(typed.count("--request-count"), Some(1000));
        assert_eq!(typed.number("--request-rate"), Some(2.5));
        assert_eq!(typed.number("--isl"), Some(20.0));
    }

    #[test]
    fn the_opposite_name_of_a_switch_turns_it_off_and_the_last_one_counts() {
        let open_loop = |arguments: &[&str]| typed(arguments).unwrap().switch("--open-loop-replay");
        assert_eq!(open_loop(&[]), None);
        assert_eq!(open_loop(&["--open-loop-replay"]), Some(true));
        assert_eq!(open_loop(&["--no-open-loop-replay"]), Some(false));
        assert_eq!(open_loop(&["--open-loop-replay=false"]), Some(false));
        assert_eq!(open_loop(&["--no-open-loop-replay=false"]), Some(true));
        assert_eq!(open_loop(&["--open-loop-replay", "--no-open-loop-replay"]), Some(false));
        assert_eq!(open_loop(&["--no-open-loop-replay", "--open-loop-replay"]), Some(true));
    }

    #[test]
    fn the_message_uses_the_name_that_was_typed() {
        for (arguments, message) in [
            (&["--num-requests", "x"][..], "--num-requests: expected a whole number, 1 or more, got 'x'"),
            (&["--request-count", "1.5"], "--request-count: expected a whole number, 1 or more, got '1.5'"),
            (
                &["--request-count", "1e18"],
                "--request-count: expected a whole number, 1 or more, in digits where it is above 9007199254740992, got \
                 '1e18'",
            ),
            (
                &["--random-seed", "18446744073709551616"],
                "--random-seed: expected a whole number, 0 or more and at most 18446744073709551615, got '18446744073709551616'",
            ),
            (
                &["--concurrency", "99999999999999999999"],
                "--concurrency: expected a whole number, 1 or more and at most 4294967295, got '99999999999999999999'",
            ),
            (
                &["--warmup-concurrency", "4294967296"],
                "--warmup-concurrency: expected a whole number, 1 or more and at most 4294967295, got '4294967296'",
            ),
            (&["--request-count", ""], "--request-count: expected a whole number, 1 or more, got ''"),
            (&["--request-count", "0"], "--request-count: expected a whole number, 1 or more, got '0'"),
            (&["--isl", "-5"], "--isl: expected a number of tokens, 0 to 20000000, got '-5'"),
            (
                &["--request-rate", "0"],
                "--request-rate: expected a number above 0 and up to 1000000, got '0'",
            ),
            (
                &["--request-rate", "inf"],
                "--request-rate: expected a number above 0 and up to 1000000, got 'inf'",
            ),
            (
                &["--request-rate", "nan"],
                "--request-rate: expected a number above 0 and up to 1000000, got 'nan'",
            ),
            (
                &["--benchmark-grace-period", "-1"],
                "--benchmark-grace-period: expected seconds, 0 or more, or inf, got '-1'",
            ),
            (
                &["--synthesis-speedup-ratio", "inf"],
                "--synthesis-speedup-ratio: expected a finite number above 0, got 'inf'",
            ),
            (
                &["--synthesis-output-len-multiplier", "nan"],
                "--synthesis-output-len-multiplier: expected a finite number, 0 or more, got 'nan'",
            ),
            (&["--random-seed", "-1"], "--random-seed: expected a whole number, 0 or more, got '-1'"),
            (&["--streaming=yes"], "--streaming: expected true or false, got 'yes'"),
            (
                &["--failed-request-threshold", "2"],
                "--failed-request-threshold: expected a share from 0 to 1, got '2'",
            ),
            (
                &["--request-cancellation-rate", "0"],
                "--request-cancellation-rate: expected a percentage above 0 and up to 100, got '0'",
            ),
            (
                &["--export-level", "record"],
                "--export-level: expected one of summary, records, raw, got 'record'",
            ),
            (&["--system-prompt", ""], "--system-prompt: expected a value that is not empty, got ''"),
        ] {
            assert_eq!(typed(arguments).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_near_miss_of_a_value_is_named() {
        let error = typed(&["--export-level", "record"]).unwrap_err();
        assert_eq!(error.tip().as_deref(), Some("did you mean 'records'?"));
    }

    #[test]
    fn the_largest_seed_keeps_every_digit() {
        let typed = typed(&["--random-seed", "18446744073709551615"]).unwrap();
        assert_eq!(typed.count("--random-seed"), Some(u64::MAX));
    }

    #[test]
    fn several_values_of_a_number_are_a_sweep_and_not_there_yet() {
        for text in ["1,2,4", "[1, 2]"] {
            let error = typed(&["--concurrency", text]).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("--concurrency {text} is not supported yet: it comes with parameter sweeps")
            );
        }
    }

    #[test]
    fn a_comma_in_a_number_that_is_no_sweep_breaks_the_rule_of_its_flag() {
        for (arguments, message, tip) in [
            (
                ["--request-timeout-seconds", "1,5"],
                "--request-timeout-seconds: expected a finite number, 0 or more, got '1,5'",
                Some("did you mean '1.5'?"),
            ),
            (["--random-seed", "1,5"], "--random-seed: expected a whole number, 0 or more, got '1,5'", None),
        ] {
            let error = typed(&arguments).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_eq!(error.tip().as_deref(), tip);
        }
        assert!(SWEPT.iter().all(|shown| flags::find(shown).is_some_and(|flag| flag.shown == *shown)));
    }

    #[test]
    fn switches_may_be_given_as_true_or_false() {
        assert_eq!(typed(&["--streaming"]).unwrap().switch("--streaming"), Some(true));
        assert_eq!(typed(&["--streaming=true"]).unwrap().switch("--streaming"), Some(true));
        assert_eq!(typed(&["--streaming=false"]).unwrap().switch("--streaming"), Some(false));
        assert_eq!(typed(&[]).unwrap().switch("--streaming"), None);
    }

    #[test]
    fn choices_match_in_any_case_with_either_dash() {
        let typed = typed(&["--endpoint-type", "CHAT", "--custom-dataset-type", "Single-Turn"]).unwrap();
        assert_eq!(typed.text("--endpoint-type"), Some("chat"));
        assert_eq!(typed.text("--custom-dataset-type"), Some("single_turn"));
    }

    #[test]
    fn lists_take_several_values_at_once_and_repeats() {
        let typed = typed(&["--header", "A:1", "B:2", "-H", "C:3"]).unwrap();
        assert_eq!(typed.texts("--header").collect::<Vec<_>>(), ["A:1", "B:2", "C:3"]);
    }

    #[test]
    fn a_single_value_given_twice_is_refused() {
        let error = typed(&["--concurrency", "1", "--concurrency", "2"]).unwrap_err().to_string();
        assert!(
            error.contains("--concurrency") && error.contains("cannot be used multiple times"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_there_yet_is_refused_before_anything_else() {
        let error = typed(&["--request-count", "x", "--goodput", "a:1", "b:2"]).unwrap_err().to_string();
        assert_eq!(error, "--goodput is not supported yet: it comes with goodput and time slices");
    }
}
