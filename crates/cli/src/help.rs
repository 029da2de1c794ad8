//! The help of `aiperf profile`, written from the table of flags for 80 columns.

use std::fmt::Write;

use crate::environment::VARIABLES;
use crate::exit::ExitStatus;
use crate::flags::{self, Flag, Group, Kind, Later, Status};

/// The flag that shows everything.
pub(crate) const ALL: &str = "help-all";

const WIDTH: usize = 80;
const COLUMN: usize = 30;

/// How much the help says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What can be used.
    Supported,
    /// And what is known and not there yet, and environment variables.
    All,
}

/// The text.
pub fn profile(detail: Detail) -> String {
    let mut out = String::from(
        "Send load to a server, measure the answers, report\n\
         \n\
         Usage: aiperf profile --model NAME [FLAGS]\n\
         \n\
         Without a server at hand:\n\
         \x20 aiperf profile --model demo --url mock:// --streaming --concurrency 16 \\\n\
         \x20     --request-count 500\n\
         A trace, on its own schedule:\n\
         \x20 aiperf synthesize trace --output trace.jsonl --num-requests 50 --rate 10\n\
         \x20 aiperf profile --model demo --url mock:// --streaming \\\n\
         \x20     --input-file trace.jsonl --custom-dataset-type mooncake_trace\n",
    );
    let mut group: Option<Group> = None;
    for flag in flags::all().filter(|flag| flag.acts()) {
        if group != Some(flag.group) {
            group = Some(flag.group);
            _ = write!(out, "\n{}:\n", flag.group.title());
        }
        row(&mut out, &head(flag), &body(flag));
    }
    out.push_str("\nHelp:\n");
    row(&mut out, "-h, --help", "Show this help");
    row(&mut out, "    --help-all", "Also show what is not supported yet, and the environment variables");
    out.push_str("\nExit codes:\n");
    let mut statuses = ExitStatus::ALL;
    statuses.sort_by_key(|status| status.code());
    for status in statuses {
        row(&mut out, &format!("    {}", status.code()), status.meaning());
    }
    if detail == Detail::All {
        later(&mut out);
        out.push_str("\nEnvironment variables:\n");
        for variable in VARIABLES {
            row(&mut out, variable.name, &format!("{} [default: {}]", variable.help, variable.default));
        }
    }
    out
}

fn head(flag: &Flag) -> String {
    let mut head = flag.short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    head.push_str(flag.shown);
    if !flag.value.is_empty() {
        head.push(' ');
        head.push_str(flag.value);
    }
    if flag.kind == Kind::Texts {
        head.push('…');
    }
    head
}

fn body(flag: &Flag) -> String {
    let mut body = flag.help.to_owned();
    let mut note = |name: &str, text: &str| _ = write!(body, " [{name}: {text}]");
    let values: Vec<&str> = flag.values().collect();
    if !values.is_empty() {
        note("values", &values.join(", "));
    }
    let default =
        flag.shown_default.or(flag.default.filter(|default| *default != "False" && *default != "[]"));
    if let Some(default) = default {
        note("default", default);
    }
    let also: Vec<&str> =
        flag.names.iter().copied().filter(|name| *name != flag.shown && name.starts_with("--")).collect();
    if !also.is_empty() {
        note("also", &also.join(", "));
    }
    body
}

/// What is known and not there yet, by what it comes with.
fn later(out: &mut String) {
    out.push_str("\nNot supported yet:\n");
    let mut features: Vec<Later> = Vec::new();
    for flag in flags::all() {
        let value_feature = flag.later.filter(|(_, values)| !values.is_empty()).map(|(feature, _)| feature);
        let flag_feature = match flag.status {
            Status::NotYet(feature) => Some(feature),
            _ => None,
        };
        for feature in flag_feature.into_iter().chain(value_feature) {
            if !features.contains(&feature) {
                features.push(feature);
            }
        }
    }
    for feature in features {
        let phrase = feature.phrase();
        let (first, rest) = phrase.split_at(1);
        _ = writeln!(out, "  {}{rest}:", first.to_ascii_uppercase());
        let mut names: Vec<String> = Vec::new();
        for flag in flags::all() {
            if flag.status == Status::NotYet(feature) {
                names.push(flag.shown.to_owned());
            }
            if let Some((other, values)) = flag.later
                && other == feature
            {
                names.push(format!("{} {}", flag.shown, values.join("|")));
            }
        }
        wrap(out, &names.join(", "), 4, 4);
    }
    for flag in flags::all() {
        if let Status::NoMeaning(reason) = flag.status {
            wrap(out, &format!("{} has no meaning here: {reason}", flag.shown), 2, 4);
        }
    }
}

/// A name in the left column, its text wrapped in the right one.
fn row(out: &mut String, head: &str, body: &str) {
    out.push_str("  ");
    out.push_str(head);
    let width = head.chars().count() + 2;
    if width + 2 > COLUMN {
        out.push('\n');
        wrap(out, body, COLUMN, COLUMN);
    } else {
        out.extend(std::iter::repeat_n(' ', COLUMN - width));
        wrap(out, body, 0, COLUMN);
    }
}

/// `text` in lines of at most [`WIDTH`]; the first starts after `first` spaces (after a full column when that is 0),
/// the others after `indent`.
fn wrap(out: &mut String, text: &str, first: usize, indent: usize) {
    out.extend(std::iter::repeat_n(' ', first));
    let mut column = if first == 0 { indent } else { first };
    let mut at_start = true;
    for mut word in text.split_whitespace().flat_map(|word| word.split_inclusive('|')) {
        let glued = !at_start && out.ends_with('|');
        loop {
            let width = word.chars().count();
            let space = usize::from(!at_start && !glued);
            if column + space + width <= WIDTH {
                out.extend(std::iter::repeat_n(' ', space));
                out.push_str(word);
                column += space + width;
                break;
            }
            if at_start {
                // Longer than a line: cut it.
                let cut = word.char_indices().nth(WIDTH - indent).map_or(word.len(), |(at, _)| at);
                out.push_str(&word[..cut]);
                word = &word[cut..];
                if word.is_empty() {
                    break;
                }
            }
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
            at_start = true;
        }
        at_start = false;
    }
    out.push('\n');
}
