//! From the rows of a file to conversations with times. The order of the steps is part of the format: sessions are
//! told over the whole file, filters see recorded times, gaps are closed on the clock of the replay.

use std::sync::Arc;

use aiperf_config::SessionColumn;
use aiperf_tokenize::seed::Stream;

use super::group::{Grouped, group};
use super::limits::limit;
use super::row::{NO_SESSION, Row};
use super::session::{Values, name_the_rest, stronger};
use super::{sample, timing};
use crate::names::Names;
use crate::synthesis::Outputs;

/// The rows of a file, in its order.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) rows: Vec<Row>,
    /// Values of `provided_session_id` and `poor_man_session_id`.
    pub(super) sessions: [Values; 2],
    /// Earliest start, ms.
    pub(super) first: f64,
}

/// What is asked of a replay.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) session_column: Option<SessionColumn>,
    pub(super) sample_ratio: Option<f64>,
    /// Rows with start ≤ t ≤ end are kept, recorded ms since the first event.
    pub(super) window: (Option<f64>, Option<f64>),
    /// Longest prompt, recorded tokens.
    pub(super) most_input: Option<u64>,
    pub(super) outputs: Outputs,
    pub(super) speedup: f64,
    pub(super) open_loop: bool,
    pub(super) strict: bool,
    /// Longest gap, ms of the replay.
    pub(super) idle_gap_cap: Option<f64>,
    /// Longest think time, ms of the replay.
    pub(super) delay_cap: Option<f64>,
    /// Neither times nor delays are kept.
    pub(super) drop_times: bool,
    /// Conversations that are kept, the first ones.
    pub(super) most_conversations: u64,
}

/// A replay: conversations and their ids.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) conversations: Grouped,
    /// By the session number of a row.
    pub(super) ids: Vec<Arc<str>>,
    pub(super) left_out: LeftOut,
    /// Rows whose recorded output length was 0.
    pub(super) raised: u64,
}

/// Rows that are not played, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Of sessions that were not drawn.
    pub(super) sampled: u64,
    /// Outside the window of the schedule.
    pub(super) window: u64,
    /// With a longer prompt than is wanted.
    pub(super) input: u64,
}

/// Plans a replay.
pub(super) fn plan(recorded: Recorded, options: &Options, names: &Names, draws: &mut Stream) -> Plan {
    let Recorded { mut rows, sessions: [provided, poor_man], first } = recorded;
    let column = options.session_column.or_else(|| stronger(provided.signal(), poor_man.signal()));
    let mut ids = match column {
        Some(SessionColumn::Provided) => provided.into_ids(),
        Some(SessionColumn::PoorMan) => poor_man.into_ids(),
        None => Vec::new(),
    };
    for row in &mut rows {
        row.session[0] = match column {
            Some(SessionColumn::Provided) => row.session[0],
            Some(SessionColumn::PoorMan) => row.session[1],
            None => NO_SESSION,
        };
    }
    let with_session = ids.len();
    name_the_rest(rows.iter_mut().map(|row| &mut row.session[0]), &mut ids, names);

    let mut left_out = LeftOut::default();
    let counted = |rows: &mut Vec<Row>, filter: &mut dyn FnMut(&mut Vec<Row>)| {
        let before = rows.len();
        filter(rows);
        (before - rows.len()) as u64
    };
    left_out.sampled = counted(&mut rows, &mut |rows| {
        if let Some(ratio) = options.sample_ratio {
            sample::sample(rows, &ids, with_session, ratio, draws);
        }
    });
    timing::since_first(&mut rows, first);
    let (start, end) = options.window;
    left_out.window = counted(&mut rows, &mut |rows| {
        rows.retain(|row| {
            start.is_none_or(|start| row.time >= start) && end.is_none_or(|end| row.time <= end)
        });
    });
    left_out.input = counted(&mut rows, &mut |rows| {
        rows.retain(|row| options.most_input.is_none_or(|most| u64::from(row.input_tokens) <= most));
    });
    timing::speed_up(&mut rows, options.speedup);

    let mut conversations = group(rows, &ids);
    if options.strict {
        conversations.split();
    }
    conversations.truncate(options.most_conversations);
    let raised = limit(&mut conversations.rows, options.outputs);
    for at in 0..conversations.len() {
        let range = conversations.range(at);
        let session = &mut conversations.rows[range];
        if options.open_loop {
            for row in session {
                row.wait = f64::NAN;
            }
        } else {
            timing::think(session, options.delay_cap);
        }
    }
    if let Some(cap) = options.idle_gap_cap {
        timing::collapse(&mut conversations.rows, cap);
    }
    if options.drop_times {
        for row in &mut conversations.rows {
            (row.time, row.wait) = (f64::NAN, f64::NAN);
        }
    }
    Plan { conversations, ids, left_out, raised }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use aiperf_tokenize::seed::stream;
    use proptest::prelude::*;

    use super::super::row::testing::row;
    use super::*;

    fn as_recorded() -> Options {
        Options {
            session_column: None,
            sample_ratio: None,
            window: (None, None),
            most_input: None,
            outputs: Outputs::new(&aiperf_config::Synthesis::default()),
            speedup: 1.0,
            open_loop: true,
            strict: false,
            idle_gap_cap: None,
            delay_cap: None,
            drop_times: false,
            most_conversations: u64::MAX,
        }
    }

    /// (start, provided session, poor man's session, duration)
    type Line = (u32, Option<u8>, Option<u8>, Option<u32>);

    fn recorded(lines: &[Line]) -> Recorded {
        let mut sessions = [Values::default(), Values::default()];
        let mut rows = Vec::new();
        for ((start, provided, poor_man, took), number) in lines.iter().zip(0..) {
            let mut row = row(number, f64::from(*start) + 1.7e12, 0);
            row.session = [provided, poor_man].map(|_| NO_SESSION);
            for (slot, (values, value)) in
                row.session.iter_mut().zip(sessions.iter_mut().zip([provided, poor_man]))
            {
                if let Some(value) = value {
                    *slot = values.add(&value.to_string());
                }
            }
            row.wait = took.map_or(f64::NAN, f64::from);
            rows.push(row);
        }
        let first = rows.iter().map(|row| row.time).fold(f64::INFINITY, f64::min);
        Recorded { rows, sessions, first }
    }

    /// What the sample file records.
    const SAMPLE: [Line; 7] = [
        (100, Some(1), Some(7), Some(50)),
        (0, Some(2), Some(8), Some(30)),
        (300, Some(1), Some(7), Some(60)),
        (260, Some(3), Some(8), Some(20)),
        (700, Some(4), Some(7), Some(40)),
        (420, None, None, Some(15)),
        (3900, Some(5), Some(9), Some(10)),
    ];

    fn planned(lines: &[Line], options: &Options) -> Plan {
        plan(recorded(lines), options, &Names::new(1, true), &mut stream(1, "sample"))
    }

    /// Number, start and wait of a row.
    type Shown = (u32, Option<f64>, Option<f64>);

    /// Sessions with their rows.
    fn shown(plan: &Plan) -> Vec<(String, Vec<Shown>)> {
        let all = &plan.conversations;
        let line = |row: &Row| (row.number, row.timestamp(), row.delay());
        (0..all.len())
            .map(|at| {
                let rows = &all.rows[all.range(at)];
                (plan.ids[rows[0].session[0] as usize].to_string(), rows.iter().map(line).collect())
            })
            .collect()
    }

    fn at(number: u32, time: f64) -> Shown {
        (number, Some(time), None)
    }

    #[test]
    fn rows_are_sessions_of_the_stronger_column_on_times_since_the_first_event() {
        let expected = [
            ("8".to_owned(), vec![at(1, 0.0), at(3, 260.0)]),
            ("7".to_owned(), vec![at(0, 100.0), at(2, 300.0), at(4, 700.0)]),
            ("session_000000".to_owned(), vec![at(5, 420.0)]),
            ("9".to_owned(), vec![at(6, 3900.0)]),
        ];
        assert_eq!(shown(&planned(&SAMPLE, &as_recorded())), expected);
    }

    #[test]
    fn a_named_column_is_taken_as_it_is() {
        let options = Options { session_column: Some(SessionColumn::Provided), ..as_recorded() };
        let ids: Vec<String> = shown(&planned(&SAMPLE, &options)).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["2", "1", "3", "session_000000", "4", "5"]);
    }

    #[test]
    fn a_closed_loop_keeps_first_times_and_thinks_in_between() {
        let options = Options { open_loop: false, ..as_recorded() };
        let expected = [
            ("8".to_owned(), vec![at(1, 0.0), (3, None, Some(230.0))]),
            ("7".to_owned(), vec![at(0, 100.0), (2, None, Some(150.0)), (4, None, Some(340.0))]),
            ("session_000000".to_owned(), vec![at(5, 420.0)]),
            ("9".to_owned(), vec![at(6, 3900.0)]),
        ];
        assert_eq!(shown(&planned(&SAMPLE, &options)), expected);
    }

    #[test]
    fn the_idle_cap_closes_gaps_between_first_turns_of_a_closed_loop_after_think_times_are_known() {
        let cap = Some(100.0);
        let options = Options { open_loop: false, speedup: 10.0, idle_gap_cap: cap, ..as_recorded() };
        let plan = planned(&SAMPLE, &options);
        let starts: Vec<f64> = plan.conversations.rows.iter().filter_map(Row::timestamp).collect();
        assert_eq!(starts, [0.0, 10.0, 42.0, 142.0]);
        let waits: Vec<f64> = plan.conversations.rows.iter().filter_map(Row::delay).collect();
        assert_eq!(waits, [23.0, 15.0, 34.0]);
    }

    #[test]
    fn the_window_sees_recorded_times() {
        let options = Options { window: (Some(100.0), Some(420.0)), speedup: 2.0, ..as_recorded() };
        let plan = planned(&SAMPLE, &options);
        let mut starts: Vec<f64> = plan.conversations.rows.iter().filter_map(Row::timestamp).collect();
        starts.sort_by(f64::total_cmp);
        assert_eq!(starts, [50.0, 130.0, 150.0, 210.0]);
        assert_eq!(plan.left_out, LeftOut { window: 3, ..LeftOut::default() });
    }

    #[test]
    fn rows_left_out_make_no_gap_longer_than_the_cap() {
        let options = Options { most_conversations: 1, idle_gap_cap: Some(50.0), ..as_recorded() };
        let plan = planned(&SAMPLE, &options);
        assert_eq!(shown(&plan), [("8".to_owned(), vec![at(1, 0.0), at(3, 50.0)])]);
    }

    #[test]
    fn rows_with_longer_prompts_than_wanted_are_left_out_by_their_recorded_length() {
        let mut recorded = recorded(&SAMPLE);
        recorded.rows[2].input_tokens = 15;
        let options = Options { most_input: Some(14), ..as_recorded() };
        let plan = plan(recorded, &options, &Names::new(1, true), &mut stream(1, "sample"));
        assert_eq!(plan.left_out, LeftOut { input: 1, ..LeftOut::default() });
        assert!(plan.conversations.rows.iter().all(|row| row.number != 2));
    }

    #[test]
    fn dropped_times_leave_the_order() {
        let options = Options { drop_times: true, open_loop: false, ..as_recorded() };
        let plan = planned(&SAMPLE, &options);
        assert!(plan.conversations.rows.iter().all(|row| row.timestamp().is_none() && row.delay().is_none()));
        assert_eq!(
            plan.conversations.rows.iter().map(|row| row.number).collect::<Vec<_>>(),
            [1, 3, 0, 2, 4, 5, 6]
        );
    }

    fn lines() -> impl Strategy<Value = Vec<Line>> {
        let session = || prop::option::of(0u8..6);
        prop::collection::vec((0u32..100_000, session(), session(), prop::option::of(0u32..5000)), 1..50)
    }

    proptest! {
        #[test]
        fn strict_sends_as_many_requests_as_rows_each_at_its_time(lines in lines(), speedup in 0.1f64..100.0) {
            let plan = planned(&lines, &Options { strict: true, speedup, ..as_recorded() });
            prop_assert_eq!(plan.conversations.len(), lines.len());
            let first = lines.iter().map(|line| line.0).min().unwrap_or_default();
            for row in &plan.conversations.rows {
                let recorded = f64::from(lines[row.number as usize].0 - first) / speedup;
                prop_assert!((row.time - recorded).abs() <= recorded * 1e-9);
            }
        }

        #[test]
        fn the_cap_bounds_every_gap_between_sends_of_an_open_loop(
            lines in lines(),
            speedup in 0.1f64..100.0,
            cap in 1.0f64..10_000.0,
            ratio in 0.05f64..1.0,
        ) {
            let options = Options {
                speedup,
                idle_gap_cap: Some(cap),
                sample_ratio: Some(ratio),
                window: (Some(1000.0), Some(90_000.0)),
                ..as_recorded()
            };
            let mut starts: Vec<f64> =
                planned(&lines, &options).conversations.rows.iter().filter_map(Row::timestamp).collect();
            starts.sort_by(f64::total_cmp);
            prop_assert!(starts.windows(2).all(|pair| pair[1] - pair[0] <= cap + 1e-6));
        }

        #[test]
        fn sampling_keeps_whole_sessions_and_repeats(lines in lines(), ratio in 0.05f64..1.0) {
            let all = planned(&lines, &as_recorded());
            let options = Options { sample_ratio: Some(ratio), ..as_recorded() };
            let some = planned(&lines, &options);
            prop_assert!(!some.conversations.rows.is_empty());
            prop_assert_eq!(shown(&some), shown(&planned(&lines, &options)));
            let whole: BTreeMap<String, BTreeSet<u32>> = shown(&all)
                .into_iter()
                .map(|(id, rows)| (id, rows.iter().map(|row| row.0).collect()))
                .collect();
            for (id, rows) in shown(&some) {
                prop_assert_eq!(&whole[&id], &rows.iter().map(|row| row.0).collect::<BTreeSet<u32>>());
            }
        }
    }
}
