//! Failures that are alike, counted together.

use aiperf_types::RequestError;
use indexmap::{Equivalent, IndexMap};

use crate::summary::ErrorGroup;

/// Distinct failures that are told apart. A server that puts an id into every message would otherwise fill
/// the memory with texts nobody reads; what comes later is counted by code and class.
const MOST_GROUPS: usize = 10_000;

/// The message of failures beyond [`MOST_GROUPS`].
const OTHER_MESSAGES: &str = "(other messages)";

/// Failures by code, class and message.
#[derive(Debug, Default)]
pub(crate) struct ErrorGroups {
    groups: IndexMap<Key, Group>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    code: Option<i64>,
    kind: String,
    message: String,
}

#[derive(Hash)]
struct KeyRef<'a> {
    code: Option<i64>,
    kind: &'a str,
    message: &'a str,
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.code == key.code && self.kind == key.kind && self.message == key.message
    }
}

#[derive(Debug)]
struct Group {
    error: RequestError,
    count: u64,
    /// Phase and number of the first request that failed so.
    first: (u16, u64),
}

impl ErrorGroups {
    /// Counts the failure of request `number` (of its phase).
    pub(crate) fn count(&mut self, error: &RequestError, number: (u16, u64)) {
        self.add(error, 1, number);
    }

    /// Adds another thread's failures.
    pub(crate) fn merge(&mut self, other: ErrorGroups) {
        for group in other.groups.into_values() {
            self.add(&group.error, group.count, group.first);
        }
    }

    /// The groups, by the request that failed so first.
    pub(crate) fn in_order(&self) -> Vec<ErrorGroup> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| group.first);
        groups.iter().map(|group| ErrorGroup { error: group.error.clone(), count: group.count }).collect()
    }

    fn add(&mut self, error: &RequestError, count: u64, first: (u16, u64)) {
        let key = KeyRef { code: error.code, kind: &error.kind, message: &error.message };
        if let Some(group) = self.groups.get_mut(&key) {
            group.count += count;
            if first < group.first {
                group.first = first;
                group.error = error.clone();
            }
            return;
        }
        if self.groups.len() >= MOST_GROUPS && error.message != OTHER_MESSAGES {
            let error = RequestError::new(error.code, error.kind.clone(), OTHER_MESSAGES);
            return self.add(&error, count, first);
        }
        let key = Key { code: error.code, kind: error.kind.clone(), message: error.message.clone() };
        self.groups.insert(key, Group { error: error.clone(), count, first });
    }
}
