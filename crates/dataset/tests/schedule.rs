//! Recorded times: windows, caps, first turns, counts of turns.

mod common;

use std::time::Duration;

use aiperf_config::{DatasetSource, FileDataset, FileFormat};
use aiperf_dataset::{DatasetError, Note, open};
use aiperf_tokenize::Tokenizer;
use common::*;

#[test]
fn times_keep_their_fractions_and_file_order() {
    let dataset = schedule(data("single_turn_schedule.jsonl"), FileFormat::SingleTurn).unwrap();
    let first: Vec<_> = times(&*dataset).iter().map(|(_, turns)| turns[0].0).collect();
    assert_eq!(first, [Some(300.0), Some(0.0), Some(120.5), Some(450.0)]);
    assert_eq!(dataset.total_turns(), Some(4));
}

#[test]
fn the_window_keeps_both_ends_and_rows_without_a_time() {
    let trace = r#"{"text_input": "a", "timestamp": 99}
{"text_input": "b", "timestamp": 100, "session_id": "s"}
{"text_input": "c", "delay": 5, "session_id": "s"}
{"text_input": "d", "timestamp": 200}
{"text_input": "e", "timestamp": 200.5}"#;
    let (_folder, path) = written("d.jsonl", trace);
    let window = (Some(100.0), Some(200.0));
    let dataset = schedule_within(&path, FileFormat::MooncakeTrace, window).unwrap();
    let all = build_all(&*dataset);
    let texts: Vec<Vec<&str>> = all.iter().map(|c| c.turns.iter().map(text).collect()).collect();
    assert_eq!(texts, [vec!["b", "c"], vec!["d"]]);
    assert_eq!(dataset.total_turns(), Some(3), "the default request count of a schedule");
    assert_eq!(dataset.notes(), [Note::OutsideWindow { rows: 2 }]);
}

#[test]
fn a_session_whose_start_the_window_removed_is_left_out_unless_it_has_a_time() {
    let trace = r#"{"text_input": "a", "timestamp": 0, "session_id": "cut"}
{"text_input": "b", "delay": 5, "session_id": "cut"}
{"text_input": "c", "timestamp": 0, "session_id": "goes on"}
{"text_input": "d", "timestamp": 150, "session_id": "goes on"}
{"text_input": "e", "timestamp": 120}"#;
    let (_folder, path) = written("d.jsonl", trace);
    let dataset = schedule_within(&path, FileFormat::MooncakeTrace, (Some(100.0), None)).unwrap();
    let ids: Vec<_> = build_all(&*dataset).iter().map(|c| c.id.to_string()).collect();
    assert_eq!(ids, ["goes on", "session_000000"]);
    assert_eq!(dataset.total_turns(), Some(2));
    assert_eq!(dataset.notes(), [Note::OutsideWindow { rows: 2 }, Note::SessionsCutByWindow { sessions: 1 }]);
}

#[test]
fn the_window_is_only_for_schedules() {
    let source = FileDataset {
        window: (Some(100.0), Some(150.0)),
        ..file(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace)
    };
    let dataset = open(&config(DatasetSource::File(source)), &context(&Tokenizer::builtin())).unwrap();
    assert_eq!(dataset.len().known(), 5);
}

#[test]
fn a_window_that_keeps_nothing_is_an_error_with_counts() {
    let window = (Some(1e6), None);
    let error =
        schedule_within(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace, window).err().unwrap();
    assert!(matches!(error, DatasetError::Empty(_)), "{error}");
    assert!(error.to_string().contains("of 5 record(s) 5 turn(s) are outside the window"), "{error}");
}

#[test]
fn a_first_turn_without_a_time_is_an_error_with_its_line() {
    for (text, line) in [
        ("{\"text\": \"a\", \"timestamp\": 1}\n\n{\"text\": \"b\"}", 3),
        ("{\"text\": \"a\", \"delay\": 5}", 1),
        ("{\"text\": \"a\", \"timestamp\": 1}\n{\"text\": \"b\", \"session_id\": \"s\", \"delay\": 1}", 2),
    ] {
        let (_folder, path) = written("d.jsonl", text);
        let message = schedule(&path, FileFormat::SingleTurn).err().unwrap().to_string();
        for part in [&*format!("d.jsonl:{line}: "), "field `timestamp`", "--no-fixed-schedule"] {
            assert!(message.contains(part), "{message}");
        }
    }
    let message = schedule(data("multi_turn.jsonl"), FileFormat::MultiTurn).err().unwrap().to_string();
    assert!(message.contains("session `garden`") && message.contains("timestamp"), "{message}");
}

#[test]
fn delays_are_capped_where_turns_wait() {
    let tokenizer = Tokenizer::builtin();
    for (name, format) in [
        ("multi_turn.jsonl", FileFormat::MultiTurn),
        ("mooncake_sessions.jsonl", FileFormat::MooncakeTrace),
        ("single_turn.jsonl", FileFormat::SingleTurn),
    ] {
        let mut config = config(DatasetSource::File(file(data(name), format)));
        config.inter_turn_delay_cap = Some(Duration::from_millis(35));
        let dataset = open(&config, &context(&tokenizer)).unwrap();
        let all = times(&*dataset);
        let delays: Vec<f64> = all.iter().flat_map(|(_, turns)| turns).filter_map(|turn| turn.1).collect();
        assert!(!delays.is_empty() && delays.iter().all(|delay| *delay <= 35.0), "{name}: {delays:?}");
        assert!(delays.contains(&35.0), "{name}: {delays:?}");
    }
}

#[test]
fn long_uncapped_delays_are_noted() {
    let (_folder, path) =
        written("d.jsonl", r#"{"turns": [{"text": "a", "delay": 99000}, {"text": "b", "delay": 61000}]}"#);
    let dataset = load(&path, FileFormat::MultiTurn).unwrap();
    // The delay of a first turn is never waited for.
    assert_eq!(dataset.notes(), [Note::LongDelay { longest_ms: 61_000.0 }]);
}

#[test]
fn trace_times_can_be_dropped() {
    let source = FileDataset {
        ignore_trace_delays: true,
        ..file(data("mooncake_sessions.jsonl"), FileFormat::MooncakeTrace)
    };
    let dataset = open(&config(DatasetSource::File(source)), &context(&Tokenizer::builtin())).unwrap();
    assert!(times(&*dataset).iter().flat_map(|(_, turns)| turns).all(|turn| *turn == (None, None)));
}

#[test]
fn a_negative_delay_is_refused_where_it_is_read_with_its_line_and_field() {
    for (format, record) in [
        (FileFormat::SingleTurn, r#"{"text": "a", "delay": -1}"#),
        (FileFormat::MultiTurn, r#"{"turns": [{"text": "a"}, {"text": "b", "delay": -1}]}"#),
        (FileFormat::MooncakeTrace, r#"{"input_length": 5, "delay": -1}"#),
        (
            FileFormat::DagJsonl,
            r#"{"session_id": "s", "turns": [{"messages": [{"role": "user", "content": "a"}], "delay": -1}]}"#,
        ),
    ] {
        let (_folder, path) = written("d.jsonl", record);
        let refused = load(&path, format).err().unwrap().to_string();
        assert!(refused.contains("d.jsonl:1: ") && refused.contains("delay"), "{}: {refused}", format.name());
        assert!(refused.contains("0 or more"), "{}: {refused}", format.name());
    }
}

#[test]
fn a_delay_that_is_not_finite_is_left_out_with_a_note() {
    let (_folder, path) = written("d.jsonl", r#"{"turns": [{"text": "a"}, {"text": "b", "delay": 1e999}]}"#);
    let dataset = load(&path, FileFormat::MultiTurn).unwrap();
    assert_eq!(times(&*dataset)[0].1, [(None, None), (None, None)]);
    assert_eq!(dataset.notes(), [Note::DelayNotFinite { turns: 1 }]);
}
