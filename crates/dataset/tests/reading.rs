//! Reading large files: the first request does not wait for the last record.

mod common;

use std::fmt::Write as _;
use std::io::Write as _;

use aiperf_config::{DatasetSource, FileDataset, FileFormat, Sampling};
use aiperf_dataset::{Dataset, DatasetError, Len, open};
use aiperf_tokenize::Tokenizer;
use common::*;

fn rows(count: usize, row: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = writeln!(text, "{}", row(number));
    }
    text
}

fn ended(dataset: &dyn Dataset) -> Len {
    dataset.wait_for(u64::MAX)
}

#[test]
fn a_long_file_is_usable_while_it_is_read_and_whole_in_the_end() {
    for (format, turns) in [(FileFormat::SingleTurn, 1), (FileFormat::MultiTurn, 3)] {
        let text = rows(20_000, |number| match turns {
            1 => format!("{{\"text\": \"row {number}\"}}"),
            _ => format!(
                "{{\"turns\": [{{\"text\": \"row {number}\"}}, {{\"text\": \"b\"}}, {{\"text\": \"c\", \"delay\": {number}}}]}}"
            ),
        });
        let (_folder, path) = written("d.jsonl", text);
        let dataset = load(&path, format).unwrap();
        assert!(
            dataset.len().known() >= 1000 || turns == 3 && dataset.len().known() > 300,
            "{:?}",
            dataset.len()
        );
        assert_eq!(common::text(&dataset.build(17).unwrap().turns[0]), "row 17");
        assert!(dataset.wait_for(1500).known() > 1500);
        assert_eq!(common::text(&dataset.build(1500).unwrap().turns[0]), "row 1500");
        assert_eq!(ended(&*dataset), Len::Exact(20_000));
        assert_eq!(dataset.total_turns(), Some(20_000 * turns));
        assert_eq!(dataset.fault(), None);
        for index in [0, 1023, 1024, 9_999, 19_999] {
            let conversation = dataset.build(index).unwrap();
            assert_eq!(conversation.turns.len(), turns as usize);
            assert_eq!(dataset.outline(index).turns(), turns as u32);
            assert_eq!(common::text(&conversation.turns[0]), format!("row {index}"));
            if turns == 3 {
                assert_eq!(conversation.turns[2].delay_ms, Some(index as f64));
            }
            assert_eq!(&*conversation.id, format!("session_{index:06}"));
        }
    }
}

#[test]
fn a_bad_record_far_into_the_file_is_a_fault_and_what_came_before_stays() {
    let text = rows(20_000, |number| match number {
        15_000 => "{\"text\": 5}".into(),
        _ => format!("{{\"text\": \"row {number}\"}}"),
    });
    let (_folder, path) = written("d.jsonl", text);
    // It is a race whether it is met before `open` returns; either way it is named.
    let fault = match load(&path, FileFormat::SingleTurn) {
        Ok(dataset) => {
            assert_eq!(ended(&*dataset), Len::Exact(15_000));
            assert_eq!(common::text(&dataset.build(14_999).unwrap().turns[0]), "row 14999");
            dataset.fault().unwrap()
        }
        Err(fault) => fault,
    };
    assert!(fault.to_string().contains("d.jsonl:15001: field `text`"), "{fault}");
}

#[test]
fn a_bad_record_among_the_first_thousand_is_an_error() {
    let text = rows(5000, |number| if number == 900 { "{}".into() } else { "{\"text\": \"a\"}".into() });
    let (_folder, path) = written("d.jsonl", text);
    assert!(load(&path, FileFormat::SingleTurn).err().unwrap().to_string().contains("d.jsonl:901: "));
}

#[test]
fn sessions_anywhere_in_the_file_are_whole_before_the_first_request() {
    let text = rows(6000, |number| match number {
        1 | 5990 => format!("{{\"text\": \"row {number}\", \"session_id\": \"s\"}}"),
        _ => format!("{{\"text\": \"row {number}\"}}"),
    });
    let (_folder, path) = written("d.jsonl", &text);
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    assert_eq!(dataset.len(), Len::Exact(5999));
    assert_eq!(dataset.build(1).unwrap().turns.len(), 2);
    // The first session key of the file comes after the first thousand records.
    let text = text.replacen(", \"session_id\": \"s\"", "", 1);
    let (_folder, path) = written("d.jsonl", &text);
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    assert_eq!(dataset.len(), Len::Exact(6000));
    assert_eq!(&*dataset.build(5990).unwrap().id, "s");
}

#[test]
fn other_orders_wait_for_the_whole_file() {
    let (_folder, path) = written("d.jsonl", rows(5000, |_| "{\"text\": \"a\"}".into()));
    for sampling in [Sampling::Random, Sampling::Shuffle] {
        let mut config = config(DatasetSource::File(file(&path, FileFormat::SingleTurn)));
        config.sampling = sampling;
        let dataset = open(&config, &context(&Tokenizer::builtin())).unwrap();
        assert_eq!(dataset.len(), Len::Exact(5000));
    }
}

#[test]
fn a_limit_ends_reading_early_where_nothing_later_matters() {
    let text = rows(5000, |number| if number == 4000 { "broken".into() } else { "{\"text\": \"a\"}".into() });
    let (_folder, path) = written("d.jsonl", text);
    let source = FileDataset { entries: Some(2500), ..file(&path, FileFormat::SingleTurn) };
    let dataset = open(&config(DatasetSource::File(source)), &context(&Tokenizer::builtin())).unwrap();
    assert_eq!(ended(&*dataset), Len::Exact(2500));
    assert_eq!((dataset.fault(), dataset.total_turns()), (None, Some(2500)));
}

#[test]
fn gzip_gives_the_same_conversations_by_whatever_name() {
    let text = rows(30_000, |number| format!("{{\"text\": \"row {number} {}\"}}", "word ".repeat(250)));
    assert!(text.len() > 32 << 20, "large enough to leave memory");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let (_folder, path) = written("d.dat", encoder.finish().unwrap());
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    assert_eq!(ended(&*dataset), Len::Exact(30_000));
    for index in [0, 25_000, 29_999] {
        let conversation = dataset.build(index).unwrap();
        assert!(common::text(&conversation.turns[0]).starts_with(&format!("row {index} word")));
    }
}

#[test]
fn a_file_that_changes_during_the_run_is_told_apart_from_a_bad_one() {
    let (_folder, path) = written("d.jsonl", "{\"text\": \"aaaa\"}\n{\"text\": \"bbbb\"}\n");
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    std::fs::write(&path, "{\"text\": \"aaaa\"}\n{\"text\": 123456}\n").unwrap();
    let message = dataset.build(1).unwrap_err().to_string();
    assert!(message.contains("d.jsonl:2: field `text`") && message.contains("changed"), "{message}");
    std::fs::write(&path, "{}").unwrap();
    let error = dataset.build(1).unwrap_err();
    assert!(matches!(&error, DatasetError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("shorter"), "{error}");
}

#[test]
fn long_lines_and_carriage_returns_are_read() {
    let long = "x".repeat(3 << 20);
    let text = format!("{{\"text\": \"{long}\"}}\r\n\r\n  {{\"text\": \"b\"}}\r\n{{\"text\": \"last\"}}");
    let (_folder, path) = written("d.jsonl", text);
    let all = build_all(&*load(&path, FileFormat::SingleTurn).unwrap());
    assert_eq!(all.iter().map(|c| common::text(&c.turns[0]).len()).collect::<Vec<_>>(), [3 << 20, 1, 4]);
}

#[test]
fn dropping_a_dataset_ends_its_reading() {
    let (_folder, path) = written("d.jsonl", rows(200_000, |_| "{\"text\": \"a\"}".into()));
    for _ in 0..5 {
        drop(load(&path, FileFormat::SingleTurn).unwrap());
    }
}
