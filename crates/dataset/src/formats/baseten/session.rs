//! Which rows belong together: two columns may say so, and the one whose values repeat more is believed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use aiperf_config::SessionColumn;

use super::row::NO_SESSION;
use crate::names::Names;

/// Values of one column, numbered in the order in which they come.
#[derive(Debug, Default)]
pub(super) struct Values {
    numbers: HashMap<Arc<str>, u32>,
    ids: Vec<Arc<str>>,
    /// Rows of each value.
    rows: Vec<u32>,
}

impl Values {
    /// The number of `value`; one more row has it.
    pub(super) fn add(&mut self, value: &str) -> u32 {
        if let Some(&number) = self.numbers.get(value) {
            self.rows[number as usize] += 1;
            return number;
        }
        let number = self.ids.len() as u32;
        let id: Arc<str> = value.into();
        if let Entry::Vacant(place) = self.numbers.entry(Arc::clone(&id)) {
            place.insert(number);
        }
        self.ids.push(id);
        self.rows.push(1);
        number
    }

    /// How strongly the column says that rows belong together.
    pub(super) fn signal(&self) -> Signal {
        let repeated = || self.rows.iter().filter(|rows| **rows >= 2);
        Signal { rows: repeated().map(|rows| u64::from(*rows)).sum(), sessions: repeated().count() as u64 }
    }

    /// The values, by number.
    pub(super) fn into_ids(self) -> Vec<Arc<str>> {
        self.ids
    }
}

/// How strongly a column says that rows belong together: compared by rows, then by sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Signal {
    /// Rows in sessions of two or more.
    rows: u64,
    /// Such sessions.
    sessions: u64,
}

/// The column with the stronger signal, `provided_session_id` on a tie; none when nothing repeats.
pub(super) fn stronger(provided: Signal, poor_man: Signal) -> Option<SessionColumn> {
    if provided.max(poor_man) == Signal::default() {
        None
    } else if poor_man > provided {
        Some(SessionColumn::PoorMan)
    } else {
        Some(SessionColumn::Provided)
    }
}

/// Gives every row without a session one of its own: ids are numbered in file order, and none is a recorded one.
pub(super) fn name_the_rest<'a>(
    sessions: impl Iterator<Item = &'a mut u32>,
    ids: &mut Vec<Arc<str>>,
    names: &Names,
) {
    let recorded: std::collections::HashSet<Arc<str>> = ids.iter().cloned().collect();
    let mut generated = 0;
    for session in sessions.filter(|session| **session == NO_SESSION) {
        let id = loop {
            let id = names.generate(generated);
            generated += 1;
            if !recorded.contains(&id) {
                break id;
            }
        };
        *session = ids.len() as u32;
        ids.push(id);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(of: &[&str]) -> Values {
        let mut values = Values::default();
        for value in of {
            values.add(value);
        }
        values
    }

    fn choice(provided: &[&str], poor_man: &[&str]) -> Option<SessionColumn> {
        stronger(values(provided).signal(), values(poor_man).signal())
    }

    #[test]
    fn the_column_whose_values_repeat_more_is_chosen() {
        let provided = ["p1", "p2", "p1", "p3", "p4", "p5"];
        assert_eq!(values(&provided).signal(), Signal { rows: 2, sessions: 1 });
        let poor_man = ["7", "8", "7", "8", "7", "9"];
        assert_eq!(values(&poor_man).signal(), Signal { rows: 5, sessions: 2 });
        assert_eq!(choice(&provided, &poor_man), Some(SessionColumn::PoorMan));
        assert_eq!(choice(&poor_man, &provided), Some(SessionColumn::Provided));
        // As many rows, in more sessions.
        assert_eq!(choice(&["a", "a", "a", "a"], &["1", "1", "2", "2"]), Some(SessionColumn::PoorMan));
    }

    #[test]
    fn a_tie_prefers_the_provided_id() {
        assert_eq!(choice(&["a", "a", "b", "c"], &["1", "2", "2", "3"]), Some(SessionColumn::Provided));
    }

    #[test]
    fn without_repetition_there_is_no_column() {
        assert_eq!(choice(&["a", "b", "c"], &["1", "2", "3"]), None);
        assert_eq!(choice(&[], &[]), None);
        assert_eq!(choice(&[], &["1", "1"]), Some(SessionColumn::PoorMan));
    }

    #[test]
    fn generated_ids_are_counted_and_never_recorded_ones() {
        let mut ids: Vec<Arc<str>> = vec!["session_000001".into()];
        let mut sessions = [NO_SESSION, 0, NO_SESSION];
        name_the_rest(sessions.iter_mut(), &mut ids, &Names::new(1, true));
        assert_eq!(sessions, [1, 0, 2]);
        assert_eq!(
            ids.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            ["session_000001", "session_000000", "session_000002"]
        );
    }

    proptest! {
        #[test]
        fn the_signal_counts_rows_of_values_that_repeat(of in prop::collection::vec(0u8..20, 0..60)) {
            let texts: Vec<String> = of.iter().map(ToString::to_string).collect();
            let signal = values(&texts.iter().map(String::as_str).collect::<Vec<_>>()).signal();
            let repeats = |value: &&u8| of.iter().filter(|other| other == value).nth(1).is_some();
            prop_assert_eq!(signal.rows, of.iter().filter(repeats).count() as u64);
            let distinct: std::collections::BTreeSet<&u8> = of.iter().filter(repeats).collect();
            prop_assert_eq!(signal.sessions, distinct.len() as u64);
        }
    }
}
