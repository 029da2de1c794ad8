//! `aiperf plugins [CATEGORY] [NAME]`: what there is to choose from, by category. The names are those that the flags
//! and the loaders know.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::datasets::{columns, public, unknown};
use crate::exit::ExitStatus;
use crate::{flags, print};

/// One kind of thing to choose from.
struct Category {
    name: &'static str,
    about: &'static str,
    entries: fn() -> Vec<Entry>,
}

/// One of them.
struct Entry {
    name: &'static str,
    line: String,
    details: Vec<String>,
}

const CATEGORIES: [Category; 9] = [
    Category {
        name: "custom-dataset-loader",
        about: "Formats of --input-file (--custom-dataset-type)",
        entries: || {
            aiperf_dataset::formats()
                .iter()
                .map(|format| Entry {
                    name: format.name(),
                    line: format!("One record is {}", format.record),
                    details: vec![
                        format!("options: {}", format.options.join(" ")),
                        format!("more: aiperf datasets {}", format.name()),
                    ],
                })
                .collect()
        },
    },
    Category {
        name: "public-dataset-loader",
        about: "Published data sets (--public-dataset)",
        entries: || {
            aiperf_dataset::public::sets()
                .iter()
                .map(|set| Entry {
                    name: set.name,
                    line: set.about.to_owned(),
                    details: public::lines(set)
                        .into_iter()
                        .skip(2)
                        .map(|[key, value]| format!("{key}: {value}"))
                        .collect(),
                })
                .collect()
        },
    },
    Category {
        name: "endpoint",
        about: "Dialects that servers speak (--endpoint-type)",
        entries: || of_flag("--endpoint-type", ENDPOINTS),
    },
    Category {
        name: "dataset-sampler",
        about: "Orders in which conversations are drawn (--dataset-sampling-strategy)",
        entries: || of_flag("--dataset-sampling-strategy", SAMPLERS),
    },
    Category {
        name: "arrival-pattern",
        about: "How requests at a rate are spaced (--arrival-pattern)",
        entries: || of_flag("--arrival-pattern", ARRIVALS),
    },
    Category {
        name: "ramp",
        about: "How a rate or a limit grows (--request-rate-ramp-duration, --concurrency-ramp-duration)",
        entries: || {
            let line = "Evenly over the duration of the ramp".to_owned();
            vec![Entry { name: "linear", line, details: Vec::new() }]
        },
    },
    Category {
        name: "data-exporter",
        about: "Files that a run writes when it is over",
        entries: || {
            let entry = |(name, about): (&'static str, &str)| Entry {
                name,
                line: about.to_owned(),
                details: Vec::new(),
            };
            aiperf_report::exports().map(entry).collect()
        },
    },
    Category {
        name: "transport",
        about: "How requests travel (--transport)",
        entries: || of_flag("--transport", TRANSPORTS),
    },
    Category {
        name: "ui",
        about: "What a run shows while it lasts (--ui)",
        entries: || of_flag("--ui", VIEWS),
    },
];

const ENDPOINTS: &[(&str, &str)] = &[
    ("chat", "POST /v1/chat/completions"),
    ("completions", "POST /v1/completions"),
    ("embeddings", "POST /v1/embeddings"),
    ("cohere-rankings", "POST /v2/rerank"),
    ("hf-tei-rankings", "POST /rerank"),
    ("nim-rankings", "POST /v1/ranking"),
];

const SAMPLERS: &[(&str, &str)] = &[
    ("sequential", "In the order of the data, and again from the start"),
    ("random", "Each draw uniform over all, with replacement"),
    ("shuffle", "In a random order, shuffled again after each pass"),
];

const ARRIVALS: &[(&str, &str)] = &[
    ("concurrency-burst", "As fast as the limit on concurrency allows"),
    ("constant", "Evenly spaced"),
    ("gamma", "Gaps of a gamma distribution (--arrival-smoothness)"),
    ("poisson", "Gaps of an exponential distribution"),
];

const TRANSPORTS: &[(&str, &str)] = &[("http", "HTTP/1.1, plain or with TLS")];

const VIEWS: &[(&str, &str)] =
    &[("dashboard", "Shown as simple"), ("none", "Nothing but the report"), ("simple", "A line of progress")];

/// The values of a flag that can be given now.
fn of_flag(flag: &str, lines: &[(&str, &str)]) -> Vec<Entry> {
    let Some(flag) = flags::find(flag) else { return Vec::new() };
    let line = |name: &str| lines.iter().find(|(of, _)| *of == name).map(|(_, line)| (*line).to_owned());
    flag.values()
        .map(|name| Entry {
            name,
            line: line(name).unwrap_or_else(|| format!("{} {name}", flag.shown)),
            details: vec![format!("chosen by {} {name}", flag.shown)],
        })
        .collect()
}

pub(crate) fn command() -> Command {
    Command::new("plugins")
        .about("List what there is to choose from, by category")
        .arg(Arg::new("category").value_name("CATEGORY").help("One category, such as endpoint"))
        .arg(Arg::new("name").value_name("NAME").help("One of its names"))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("List every name of every category"))
}

fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    match answer(text("category"), text("name"), matches.get_flag("all")) {
        Ok(text) => {
            print::out(&text);
            ExitStatus::Success
        }
        Err(message) => {
            print::err(&message);
            ExitStatus::Usage
        }
    }
}

fn answer(category: Option<&str>, name: Option<&str>, all: bool) -> Result<String, String> {
    let Some(asked) = category else {
        return Ok(if all {
            CATEGORIES.iter().map(listed).collect::<Vec<_>>().join("\n")
        } else {
            overview()
        });
    };
    let wanted = plain(asked);
    let Some(category) = CATEGORIES.iter().find(|category| category.name == wanted) else {
        let names: Vec<&str> = CATEGORIES.iter().map(|category| category.name).collect();
        return Err(format!("error: there is no category '{asked}' here; there are {}\n", names.join(", ")));
    };
    let Some(asked) = name else { return Ok(listed(category)) };
    let wanted = plain(asked);
    let entries = (category.entries)();
    let Some(entry) = entries.iter().find(|entry| plain(entry.name) == wanted) else {
        let names = entries.iter().map(|entry| entry.name);
        return Err(format!("error: {}\n", unknown(category.name, asked, &wanted, names)));
    };
    let mut text = format!("{} ({})\n{}\n", entry.name, category.name, entry.line);
    for line in &entry.details {
        _ = writeln!(text, "{line}");
    }
    Ok(text)
}

fn overview() -> String {
    let row = |category: &Category| {
        [category.name.to_owned(), (category.entries)().len().to_string(), category.about.to_owned()]
    };
    let mut text = columns(&CATEGORIES.iter().map(row).collect::<Vec<_>>());
    text.push_str("\naiperf plugins CATEGORY lists the names of one, aiperf plugins --all those of all\n");
    text
}

fn listed(category: &Category) -> String {
    let rows: Vec<[String; 2]> =
        (category.entries)().into_iter().map(|entry| [format!("  {}", entry.name), entry.line]).collect();
    format!("{}: {}\n{}", category.name, category.about, columns(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_flag_has_its_line() {
        for category in &CATEGORIES {
            for entry in (category.entries)() {
                let is_bare = entry.line.starts_with("--") && category.name != "endpoint";
                assert!(!is_bare, "{} {}: a line is missing", category.name, entry.name);
            }
        }
    }

    #[test]
    fn names_may_be_spelt_either_way() {
        assert!(
            answer(Some("custom_dataset_loader"), Some("Mooncake-Trace"), false)
                .unwrap()
                .contains("options: ")
        );
        assert!(answer(Some("ramp"), None, false).unwrap().contains("linear"));
        let overview = answer(None, None, false).unwrap();
        assert!(CATEGORIES.iter().all(|category| overview.contains(category.name)));
        assert!(answer(None, None, true).unwrap().contains("poisson"));
    }

    #[test]
    fn categories_that_are_not_here_are_an_error_that_lists_those_that_are() {
        let message = answer(Some("service"), None, false).unwrap_err();
        assert!(message.contains("'service'") && message.contains("custom-dataset-loader"), "{message}");
        let message = answer(Some("dataset-sampler"), Some("shufle"), false).unwrap_err();
        assert!(message.contains("near names: shuffle"), "{message}");
    }
}
