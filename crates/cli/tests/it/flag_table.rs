//! The table of flags against the reference's.

use std::collections::BTreeSet;

use aiperf_cli::flags::{self, Status};
use serde_json::Value;

use crate::support::path;

fn reference() -> Vec<Value> {
    serde_json::from_str(&std::fs::read_to_string(path("tests/data/reference-flags.json")).unwrap()).unwrap()
}

#[test]
fn every_flag_of_the_reference_is_here_with_its_names_group_default_and_choices() {
    let reference = reference();
    assert_eq!(reference.len(), 264);
    let ours: Vec<_> = flags::all().filter(|flag| flag.status != Status::Ours).collect();
    assert_eq!(ours.len(), reference.len());
    for (ours, theirs) in ours.iter().zip(&reference) {
        let theirs_names: Vec<&str> =
            theirs["flags"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        assert_eq!(ours.names, theirs_names);
        assert_eq!(ours.group.title(), theirs["group"], "{theirs_names:?}");
        assert_eq!(ours.default, theirs["default"].as_str(), "{theirs_names:?}");
        let choices: Vec<&str> = theirs["choices"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|choice| choice.as_str().unwrap())
            .collect();
        assert_eq!(ours.choices, choices, "{theirs_names:?}");
    }
}

/// Three lists: what is not there yet may only shrink, what means nothing here is fixed, and our own are few.
#[test]
fn the_list_of_flags_that_are_not_there_yet_does_not_grow() {
    let first = std::fs::read_to_string(path("tests/data/not-yet-at-first.txt")).unwrap();
    let first: BTreeSet<&str> = first.lines().collect();
    let now: BTreeSet<&str> = flags::all()
        .filter(|flag| matches!(flag.status, Status::NotYet(_)))
        .map(|flag| flag.names[0])
        .collect();
    let grown: Vec<_> = now.difference(&first).collect();
    assert!(grown.is_empty(), "these were supported once: {grown:?}");
}

#[test]
fn the_list_of_values_that_are_not_there_yet_does_not_grow() {
    let first = std::fs::read_to_string(path("tests/data/values-not-yet-at-first.txt")).unwrap();
    let first: BTreeSet<String> = first.lines().map(str::to_owned).collect();
    let now: BTreeSet<String> = flags::all()
        .filter_map(|flag| flag.later.map(|(_, values)| (flag.names[0], values)))
        .flat_map(|(name, values)| values.iter().map(move |value| format!("{name} {value}")))
        .collect();
    let grown: Vec<_> = now.difference(&first).collect();
    assert!(grown.is_empty(), "these were supported once: {grown:?}");
}

#[test]
fn what_has_no_meaning_here_is_a_fixed_list() {
    let list: Vec<_> = flags::all()
        .filter(|flag| matches!(flag.status, Status::NoMeaning(_)))
        .map(|flag| flag.shown)
        .collect();
    assert_eq!(list, ["--zmq-host", "--zmq-ipc-path", "--zmq-dual-bind"]);
}

#[test]
fn our_own_flags_are_a_third_list() {
    let list: Vec<_> =
        flags::all().filter(|flag| flag.status == Status::Ours).map(|flag| flag.shown).collect();
    assert_eq!(list, ["--strict-load", "--bind-address", "--input-columns"]);
}

#[test]
fn no_name_is_used_twice_and_each_row_is_complete() {
    let mut seen = BTreeSet::new();
    for flag in flags::all() {
        for name in flag.names {
            assert!(seen.insert(name), "{name}");
        }
        assert!(flag.names.contains(&flag.shown), "{}", flag.shown);
        assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{}: {}", flag.shown, flag.help);
        for value in flag.later.iter().flat_map(|(_, values)| *values) {
            assert!(flag.choices.contains(value) || flag.one_of.contains(value), "{} {value}", flag.shown);
        }
    }
}
