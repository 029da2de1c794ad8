//! What two places of a command line say differently, and which of them counts: each is said.

use aiperf_config::{DatasetSource, EndpointKind, RunConfig, Target};
use serde_json::Value;

use super::{Note, idle, lengths, pairs};
use crate::typed::Typed;

const EXTRA: &str = "--extra-inputs";
const HEADER: &str = "--header";

pub(super) fn notes(typed: &Typed, config: &RunConfig) -> Vec<Note> {
    let mut notes = Vec::new();
    credentials(typed, config, &mut notes);
    headers(typed, config, &mut notes);
    repeated_headers(typed, &mut notes);
    if matches!(&config.dataset.source, DatasetSource::File(file) if idle::sent_as_it_is(file)) {
        return notes;
    }
    limits(typed, config, &mut notes);
    keys(typed, config, &mut notes);
    prompts(typed, config, &mut notes);
    extras(typed, &mut notes);
    notes
}

fn has_header(config: &RunConfig, name: &str) -> bool {
    config.endpoint.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
}

/// One `Authorization` goes out: that of the key, else that of a header, else that of the URL.
fn credentials(typed: &Typed, config: &RunConfig, notes: &mut Vec<Note>) {
    let in_header = format!("{} Authorization", typed.name(HEADER));
    let in_url = match &config.endpoint.target {
        Target::Server(url) => aiperf_config::basic_credential(url.expose()).is_some(),
        Target::Mock(_) => false,
    };
    let mut given = Vec::new();
    if config.endpoint.api_key.is_some() {
        given.push(typed.name("--api-key").to_owned());
    }
    if has_header(config, "Authorization") {
        given.push(in_header);
    }
    if in_url {
        given.push(format!("the user name and password in {}", typed.name("--url")));
    }
    if let [counts, others @ ..] = &given[..]
        && !others.is_empty()
    {
        notes.push(Note::warning(format!(
            "credentials are given in more than one place: those of {counts} are sent, those of {} are not; keep one of \
             them",
            others.join(" and ")
        )));
    }
}

/// Some headers are written for each request, whatever the user gave.
fn headers(typed: &Typed, config: &RunConfig, notes: &mut Vec<Note>) {
    let written = ["Accept", "Content-Type"].iter().chain(&config.tuning.affinity_headers);
    for name in written.filter(|name| has_header(config, name)) {
        let why = match *name {
            "Accept" | "Content-Type" => {
                "it says what requests and answers are, which the run knows".to_owned()
            }
            _ => format!(
                "it carries the correlation id; AIPERF_HTTP_{}_FROM_CORRELATION_ID=0 lets yours through",
                name.to_ascii_uppercase().replace('-', "_")
            ),
        };
        notes.push(Note::warning(format!("{} {name} changes nothing: {why}", typed.name(HEADER))));
    }
}

/// The limit of an answer, as lengths ask for it and as extra inputs do.
fn limits(typed: &Typed, config: &RunConfig, notes: &mut Vec<Note>) {
    const NAMES: [&str; 2] = ["max_completion_tokens", "max_tokens"];
    let asked = ["--osl", "--seq-dist", "--random-range-ratio"];
    let asks = match asked.into_iter().find(|flag| typed.has(flag)) {
        Some("--osl") if config.dataset.osl.is_none() && !lengths::has_outputs(typed) => return,
        Some(flag) => typed.name(flag),
        None => return,
    };
    let own = match config.endpoint.kind {
        EndpointKind::Chat if !config.endpoint.use_legacy_max_tokens => NAMES[0],
        EndpointKind::Chat | EndpointKind::Completions => NAMES[1],
        _ => return,
    };
    let extra = typed.name(EXTRA);
    for name in NAMES.into_iter().filter(|name| config.endpoint.extra_inputs.contains_key(*name)) {
        notes.push(Note::warning(if name == own {
            format!("requests carry the {name} of {extra}, and not the lengths of {asks}; keep one of them")
        } else {
            format!(
                "requests carry {own} of {asks} and {name} of {extra}: which of them limits an answer is up to the \
                 server; keep one of them"
            )
        }));
    }
}

/// Keys of a body that a flag sets, too.
fn keys(typed: &Typed, config: &RunConfig, notes: &mut Vec<Note>) {
    let model = Value::from(config.models.first().map_or("", String::as_str));
    for (key, flag, value) in
        [("model", "--model", model), ("stream", "--streaming", Value::Bool(config.endpoint.streaming))]
    {
        if config.endpoint.extra_inputs.get(key).is_some_and(|extra| *extra != value) {
            notes.push(Note::warning(format!(
                "requests carry the {key} of {}, and not that of {}; results are recorded under the latter",
                typed.name(EXTRA),
                typed.name(flag)
            )));
        }
    }
}

/// Keys of a body that are what is asked.
fn prompts(typed: &Typed, config: &RunConfig, notes: &mut Vec<Note>) {
    let names = aiperf_endpoint::prompt_keys(config.endpoint.kind);
    for name in names.iter().filter(|name| config.endpoint.extra_inputs.contains_key(**name)) {
        notes.push(Note::warning(format!(
            "every request carries the {name} of {} in place of its own: nothing of the data is asked",
            typed.name(EXTRA)
        )));
    }
}

/// What is given twice, and what looks like two things and is one.
fn extras(typed: &Typed, notes: &mut Vec<Note>) {
    let name = typed.name(EXTRA);
    // They were read before.
    let given = pairs::extra_inputs(name, typed.texts(EXTRA)).unwrap_or_default();
    for key in repeated(&given, |one, other| one == other) {
        notes.push(Note::warning(format!("{name} gives {key} more than once: the last one is sent")));
    }
    for (key, next) in pairs::pairs_in_values(typed.texts(EXTRA)) {
        notes.push(Note::warning(format!(
            "{name} {key}: {next}, and what follows it, is sent as a part of this value; separate pairs by commas, or leave \
             out the quotes around them"
        )));
    }
}

fn repeated_headers(typed: &Typed, notes: &mut Vec<Note>) {
    let name = typed.name(HEADER);
    let read = typed.texts(HEADER).filter_map(|argument| pairs::headers(name, argument).ok());
    let given: Vec<(String, String)> = read.flatten().collect();
    for header in repeated(&given, str::eq_ignore_ascii_case) {
        notes.push(Note::warning(format!("{name} gives {header} more than once: the last one is sent")));
    }
}

/// The names that are given again with another value, each once.
fn repeated<V: PartialEq>(given: &[(String, V)], is_same: impl Fn(&str, &str) -> bool) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (at, (name, value)) in given.iter().enumerate() {
        let is_other = |(earlier, old): &(String, V)| is_same(earlier, name) && old != value;
        if given[..at].iter().any(is_other) && !names.iter().any(|known| is_same(known, name)) {
            names.push(name);
        }
    }
    names
}
