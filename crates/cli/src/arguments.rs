//! The commands and their arguments, as clap sees them.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::commands::{analyze_trace, anonymize, dataset, datasets, plugins, synthesize, validate};
use crate::flags::{self, Flag, Kind};
use crate::{help, mock_flags, similar};

/// The whole command line. Flags that are not there yet are known to it, so that they can be refused by name.
pub fn command() -> Command {
    build(flags::all().map(argument))
}

/// The command line as completions offer it: what can be used, and nothing else.
pub(crate) fn offered() -> Command {
    build(flags::all().filter(|flag| flag.acts()).map(|flag| {
        let values: Vec<&str> = flag.values().collect();
        if values.is_empty() { argument(flag) } else { argument(flag).value_parser(values) }
    }))
}

/// Takes apart what follows `aiperf`. Errors are those of clap, but for what it would not lay to a flag.
pub(crate) fn parse(arguments: &[OsString]) -> Result<ArgMatches, Error> {
    if let Some(what) = not_text(arguments) {
        return Err(asked(arguments).error(ErrorKind::InvalidUtf8, what));
    }
    command().try_get_matches_from(std::iter::once("aiperf".into()).chain(bound(arguments)))
}

/// The command that the first arguments name, whose usage is shown with what is wrong.
fn asked(arguments: &[OsString]) -> Command {
    let mut command = command();
    command.build();
    let mut names = arguments.iter();
    while let Some(named) = names.next().and_then(|name| command.find_subcommand(name)).cloned() {
        command = named;
    }
    command
}

/// What is said of the first argument that is no text.
fn not_text(arguments: &[OsString]) -> Option<String> {
    let at = arguments.iter().position(|argument| argument.to_str().is_none())?;
    let what = "is not valid UTF-8; give one that is";
    Some(
        flag_of(arguments, at).map_or_else(
            || format!("argument {} {what}", at + 1),
            |flag| format!("the value of {flag} {what}"),
        ),
    )
}

/// The flag whose value an argument is. Only what is known is a name: any other text may be a part of a value.
fn flag_of(arguments: &[OsString], at: usize) -> Option<String> {
    let mut command = command();
    let names = arguments[..at].iter().map_while(|argument| argument.to_str());
    for name in names {
        match command.find_subcommand(name) {
            Some(inner) => command = inner.clone(),
            None => break,
        }
    }
    let takes_value = |arg: &&Arg| arg.get_action().takes_values();
    let long = |name: &str| {
        let name = name.strip_prefix("--")?;
        let is_it =
            |arg: &&Arg| arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name));
        command.get_arguments().filter(takes_value).find(is_it)
    };
    let short = |letter: char| {
        let is_it = |arg: &&Arg| arg.get_short() == Some(letter);
        command.get_arguments().filter(takes_value).find(is_it)
    };
    let shown = arguments[at].to_string_lossy();
    if shown.starts_with("--") {
        let (name, _) = shown.split_once('=')?;
        return long(name).map(|_| name.to_owned());
    }
    if let Some(letter) = shown.strip_prefix('-').and_then(|rest| rest.chars().next()) {
        return short(letter).map(|_| format!("-{letter}"));
    }
    let before = arguments[at.checked_sub(1)?].to_str()?;
    let letters = before.strip_prefix('-').filter(|rest| rest.chars().count() == 1);
    let flag = long(before).or_else(|| short(letters?.chars().next()?))?;
    (!flag.is_require_equals_set()).then(|| before.to_owned())
}

/// The arguments, with a value that begins with a dash and is no flag bound to the flag before it, where that takes
/// what is no number but may begin like one.
fn bound(arguments: &[OsString]) -> Vec<OsString> {
    let takes = |flag: Option<&OsString>| {
        flag.and_then(|flag| flag.to_str()).is_some_and(|name| {
            flags::find(name).is_some_and(|flag| flag.begins_like_number) || mock_flags::takes_times(name)
        })
    };
    let is_value = |text: &OsStr| {
        let mut signs = text.as_encoded_bytes().iter();
        signs.next() == Some(&b'-')
            && signs.next().is_some_and(|sign| *sign != b'-' && !sign.is_ascii_alphabetic())
    };
    let mut out: Vec<OsString> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        if is_value(argument)
            && takes(out.last())
            && let Some(flag) = out.last_mut()
        {
            flag.push("=");
            flag.push(argument);
        } else {
            out.push(argument.clone());
        }
    }
    out
}

fn build(flags: impl Iterator<Item = Arg>) -> Command {
    Command::new("aiperf")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Benchmark client for generative-AI inference servers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("profile")
                .about("Send load to a server, measure the answers, report")
                .override_usage("aiperf profile --model NAME [FLAGS]")
                .override_help(help::profile(help::Detail::Supported))
                .arg(
                    Arg::new(help::ALL)
                        .long(help::ALL)
                        .action(ArgAction::SetTrue)
                        .help("Show this help with the flags that are not supported yet"),
                )
                .args(flags),
        )
        .subcommand(mock_flags::command())
        .subcommand(dataset::command())
        .subcommand(datasets::command("datasets"))
        .subcommand(plugins::command())
        .subcommand(synthesize::command())
        .subcommand(analyze_trace::command())
        .subcommand(validate::command())
        .subcommand(anonymize::command())
        .subcommand(
            Command::new("completions").about("Print a completion script for a shell").arg(
                Arg::new("shell")
                    .value_name("SHELL")
                    .value_parser(clap::value_parser!(clap_complete::Shell))
                    .required(true),
            ),
        )
}

fn argument(flag: &'static Flag) -> Arg {
    let mut longs = flag.longs();
    let mut argument = Arg::new(flag.shown).hide(!flag.acts()).help(flag.help);
    if let Some(long) = longs.next() {
        argument = argument.long(long).visible_aliases(longs);
    }
    if let Some(short) = flag.short() {
        argument = argument.short(short);
    }
    argument = if flag.value.is_empty() { argument } else { argument.value_name(flag.value) };
    if !flag.acts() {
        // Refused whatever its values are, so anything parses.
        argument = match flag.kind {
            Kind::Switch => argument.num_args(0..=1).require_equals(true),
            _ => argument.num_args(0..),
        };
        return argument.action(ArgAction::Append).allow_negative_numbers(true).default_missing_value("");
    }
    match flag.kind {
        Kind::Switch => argument
            .action(ArgAction::Append)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true)
            .value_parser(clap::value_parser!(String)),
        // A number below 0 is a value, so that what is wrong with it can be said.
        Kind::Texts => argument.action(ArgAction::Append).num_args(1..).allow_negative_numbers(true),
        Kind::Path => argument.value_hint(clap::ValueHint::AnyPath),
        Kind::Choice
        | Kind::Text
        | Kind::Count { .. }
        | Kind::Number(_)
        | Kind::Seconds(_)
        | Kind::SecondsOrForever => argument.allow_negative_numbers(true),
    }
}

/// What clap says, with a tip about a mistyped flag that holds: one near enough to have been meant, and one that can be
/// used. Clap names the most alike, however far that is.
pub(crate) fn with_tip(mut error: Error, arguments: &[String]) -> Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument || !typed.starts_with("--") {
        return error;
    }
    let suggested = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    };
    let meant = if arguments.first().is_some_and(|command| command == "profile") {
        let names = flags::all().filter(|flag| flag.acts()).flat_map(|flag| flag.names.iter().copied());
        let known = names.filter(|name| name.starts_with("--")).chain(["--help", "--help-all"]);
        similar::closest(typed, known.map(|name| (name, name.to_owned())))
    } else {
        similar::closest(typed, suggested.into_iter().map(|name| (name, name.to_owned())))
    };
    let meant = meant.map(str::to_owned);
    error.remove(ContextKind::SuggestedArg);
    if let Some(name) = meant {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(name));
    }
    error
}
