//! Rows become conversations.

use std::sync::Arc;

use super::row::Row;

/// Conversations: which rows are whose.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Grouped {
    /// Rows, conversation by conversation, each in the order of its times.
    pub(super) rows: Vec<Row>,
    /// Where each conversation starts, and the end.
    pub(super) starts: Vec<u32>,
}

impl Grouped {
    /// Number of conversations.
    pub(super) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The rows of a conversation.
    pub(super) fn range(&self, conversation: usize) -> std::ops::Range<usize> {
        self.starts[conversation] as usize..self.starts[conversation + 1] as usize
    }

    /// Keeps the first conversations.
    pub(super) fn truncate(&mut self, most: u64) {
        if (self.len() as u64) > most {
            self.starts.truncate(most as usize + 1);
            self.rows.truncate(self.starts[most as usize] as usize);
        }
    }

    /// Makes a conversation of every row.
    pub(super) fn split(&mut self) {
        self.starts = (0..=self.rows.len() as u32).collect();
    }
}

/// Groups rows by session. Inside a session they are in the order of their times, equal ones in file order; sessions
/// are in the order of their first time, then id. Rows come in file order.
pub(super) fn group(mut rows: Vec<Row>, ids: &[Arc<str>]) -> Grouped {
    let mut first = vec![f64::INFINITY; ids.len()];
    for row in &rows {
        let time = &mut first[row.session[0] as usize];
        *time = time.min(row.time);
    }
    rows.sort_by(|a, b| {
        let (one, other) = (a.session[0] as usize, b.session[0] as usize);
        first[one]
            .total_cmp(&first[other])
            .then_with(|| if one == other { std::cmp::Ordering::Equal } else { ids[one].cmp(&ids[other]) })
            .then(a.time.total_cmp(&b.time))
            .then(a.number.cmp(&b.number))
    });
    let mut starts = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if at == 0 || rows[at - 1].session[0] != row.session[0] {
            starts.push(at as u32);
        }
    }
    starts.push(rows.len() as u32);
    Grouped { rows, starts }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::row::testing::row;
    use super::*;

    fn ids(of: &[&str]) -> Vec<Arc<str>> {
        of.iter().map(|id| Arc::from(*id)).collect()
    }

    fn numbers(grouped: &Grouped) -> Vec<Vec<u32>> {
        (0..grouped.len())
            .map(|at| grouped.rows[grouped.range(at)].iter().map(|row| row.number).collect())
            .collect()
    }

    #[test]
    fn sessions_come_by_first_time_then_id_and_their_rows_by_time_then_place() {
        let rows = vec![
            row(0, 5.0, 0),
            row(1, 3.0, 1),
            row(2, 3.0, 2),
            row(3, 4.0, 0),
            row(4, 4.0, 0),
            row(5, 9.0, 1),
        ];
        let grouped = group(rows, &ids(&["late", "b", "a"]));
        assert_eq!(numbers(&grouped), [vec![2], vec![1, 5], vec![3, 4, 0]]);
    }

    #[test]
    fn strict_makes_a_conversation_of_every_row() {
        let mut grouped = group(vec![row(0, 1.0, 0), row(1, 0.0, 0), row(2, 2.0, 1)], &ids(&["a", "b"]));
        grouped.split();
        assert_eq!(numbers(&grouped), [[1], [0], [2]]);
    }

    #[test]
    fn the_first_conversations_are_kept() {
        let mut grouped = group(vec![row(0, 1.0, 0), row(1, 2.0, 0), row(2, 3.0, 1)], &ids(&["a", "b"]));
        grouped.truncate(1);
        assert_eq!(numbers(&grouped), [[0, 1]]);
    }

    proptest! {
        #[test]
        fn no_row_is_lost_and_every_session_is_one_conversation(
            of in prop::collection::vec((0u32..5, 0u16..50), 0..40),
        ) {
            let rows: Vec<Row> = of
                .iter()
                .zip(0..)
                .map(|((session, time), number)| row(number, f64::from(*time), *session))
                .collect();
            let mut grouped = group(rows, &ids(&["e", "d", "c", "b", "a"]));
            let all: BTreeSet<u32> = numbers(&grouped).concat().into_iter().collect();
            prop_assert_eq!(all.len(), of.len());
            let sessions: BTreeSet<u32> = of.iter().map(|(session, _)| *session).collect();
            prop_assert_eq!(grouped.len(), sessions.len());
            for at in 0..grouped.len() {
                let rows = &grouped.rows[grouped.range(at)];
                prop_assert!(rows.windows(2).all(|pair| pair[0].session == pair[1].session
                    && (pair[0].time, pair[0].number) < (pair[1].time, pair[1].number)));
            }
            grouped.split();
            prop_assert_eq!(grouped.len(), of.len());
        }
    }
}
