//! Generated queries and passages.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use aiperf_config::{DatasetSource, EndpointKind, Normal, SyntheticDataset, SyntheticRankings};
use aiperf_dataset::{OpenContext, open};
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
