//! Generated queries and passages.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::path::Path;
use std::sync::Arc;

use aiperf_config::{DatasetSource, EndpointKind, FileFormat, Normal, SyntheticDataset, SyntheticRankings};
use aiperf_dataset::{Dataset, DatasetError, OpenContext, open};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, Turn};
use common::*;

fn generate(entries: u64, rankings: SyntheticRankings) -> Vec<Turn> {
    let tokenizer = Tokenizer::builtin();
    let shape = SyntheticDataset { rankings: Some(rankings), ..synthetic(entries, constant(550.0)) };
    let context = OpenContext { endpoint: EndpointKind::NimRankings, ..context(&tokenizer) };
    let dataset = open(&config(DatasetSource::Synthetic(shape)), &context).unwrap();
    build_all(&*dataset).into_iter().map(|mut conversation| conversation.turns.remove(0)).collect()
}

/// The query and the passages of a turn.
fn ranked(turn: &Turn) -> (String, Vec<String>) {
    let Content::Parts { texts, media } = &turn.content else { panic!() };
    assert!(media.is_empty());
    let [query, passages] = &texts[..] else { panic!("{texts:?}") };
    assert_eq!((query.name.as_deref(), passages.name.as_deref()), (Some("query"), Some("passages")));
    assert_eq!(query.contents.len(), 1);
    (query.contents[0].to_string(), passages.contents.iter().map(ToString::to_string).collect())
}

#[test]
fn each_entry_has_a_query_and_passages_of_the_lengths_asked_for() {
    let tokenizer = Tokenizer::builtin();
    let all = generate(
        20,
        SyntheticRankings {
            passages: constant(4.0),
            passage_tokens: constant(30.0),
            query_tokens: constant(9.0),
        },
    );
    for turn in &all {
        let (query, passages) = ranked(turn);
        assert_eq!(tokenizer.count(&query), 9);
        assert_eq!(passages.iter().map(|text| tokenizer.count(text)).collect::<Vec<_>>(), [30; 4]);
        assert_eq!(turn.text_tokens, Some(9 + 4 * 30));
    }
    let distinct: std::collections::HashSet<_> = all.iter().map(ranked).collect();
    assert_eq!(distinct.len(), 20);
}

#[test]
fn each_length_follows_its_distribution_and_none_is_below_one() {
    let tokenizer = Tokenizer::builtin();
    let all = generate(
        1000,
        SyntheticRankings {
            passages: Normal { mean: 4.0, stddev: 1.0 },
            passage_tokens: Normal { mean: 12.0, stddev: 3.0 },
            query_tokens: Normal { mean: 9.0, stddev: 3.0 },
        },
    );
    let mean = |numbers: Vec<u64>| numbers.iter().sum::<u64>() as f64 / numbers.len() as f64;
    let all: Vec<_> = all.iter().map(ranked).collect();
    let passages = mean(all.iter().map(|(_, passages)| passages.len() as u64).collect());
    let query = mean(all.iter().map(|(query, _)| tokenizer.count(query)).collect());
    let tokens =
        mean(all.iter().flat_map(|(_, passages)| passages).map(|text| tokenizer.count(text)).collect());
    for (found, wanted) in [(passages, 4.0), (query, 9.0), (tokens, 12.0)] {
        assert!((found / wanted - 1.0).abs() < 0.03, "{found} instead of {wanted}");
    }
    assert!(all.iter().all(|(query, passages)| !query.is_empty() && !passages.is_empty()));
}

/// Every concern has numbers of its own.
#[test]
fn more_passages_leave_the_query_and_the_first_passages_unchanged() {
    let with = |passages: f64, query: f64| {
        generate(
            5,
            SyntheticRankings {
                passages: constant(passages),
                passage_tokens: constant(8.0),
                query_tokens: constant(query),
            },
        )
    };
    let few: Vec<_> = with(2.0, 6.0).iter().map(ranked).collect();
    let many: Vec<_> = with(5.0, 6.0).iter().map(ranked).collect();
    let longer: Vec<_> = with(2.0, 16.0).iter().map(ranked).collect();
    for ((few, many), longer) in few.iter().zip(&many).zip(&longer) {
        assert_eq!((&few.0, &few.1[..]), (&many.0, &many.1[..2]));
        assert_eq!(few.1, longer.1);
    }
}

fn read(path: &Path, format: FileFormat) -> Result<Arc<dyn Dataset>, DatasetError> {
    let tokenizer = Tokenizer::builtin();
    let context = OpenContext { endpoint: EndpointKind::CohereRankings, ..context(&tokenizer) };
    open(&config(DatasetSource::File(file(path, format))), &context)
}

const ROW: &str = r#"{"texts":[{"name":"query","contents":["q"]},{"name":"passages","contents":["a","b"]}]}"#;

#[test]
fn rows_with_a_query_and_passages_are_read_and_others_are_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, ROW).unwrap();
    let turn = read(&path, FileFormat::SingleTurn).unwrap().build(0).unwrap().turns.remove(0);
    assert_eq!(ranked(&turn), ("q".to_owned(), vec!["a".to_owned(), "b".to_owned()]));
    for (row, what) in [
        (r#"{"text":"q"}"#, "has texts without a name"),
        (r#"{"texts":[{"name":"other","contents":["q"]}]}"#, "has texts named `other`"),
        (r#"{"texts":[{"name":"passages","contents":["a"]}]}"#, "has no `query`"),
        (
            r#"{"texts":[{"name":"query","contents":["a"]},{"name":"passages","contents":[""]}]}"#,
            "has no `passages`",
        ),
    ] {
        std::fs::write(&path, format!("{ROW}\n{row}\n")).unwrap();
        let message = read(&path, FileFormat::SingleTurn).err().unwrap().to_string();
        assert!(message.contains("rows.jsonl:2") && message.contains(what), "{message}");
    }
    std::fs::write(&path, r#"{"input_length":5}"#).unwrap();
    let message = read(&path, FileFormat::MooncakeTrace).err().unwrap().to_string();
    assert!(message.contains("mooncake_trace has no query and passages"), "{message}");
}

#[test]
fn pools_are_queries_and_passages_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("queries.jsonl", "{\"text\":\"q1\"}\n{\"text\":\"q2\"}\n");
    write("passages.jsonl", "{\"texts\":[\"a\",\"b\"]}\n{\"text\":\"c\"}\n");
    let dataset = read(folder.path(), FileFormat::RandomPool).unwrap();
    for conversation in build_all(&*dataset) {
        let Content::Parts { texts, .. } = &conversation.turns[0].content else { panic!() };
        let names: Vec<_> = texts.iter().map(|group| group.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["passages", "queries"]);
    }
    write("queries.jsonl", "{\"texts\":[\"\"],\"image\":\"data:image/png;base64,AA==\"}\n");
    assert!(read(folder.path(), FileFormat::RandomPool).is_err());
    std::fs::remove_file(folder.path().join("queries.jsonl")).unwrap();
    let message = read(folder.path(), FileFormat::RandomPool).err().unwrap().to_string();
    assert!(message.contains("not always a query"), "{message}");
}
