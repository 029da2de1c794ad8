//! Lengths of generated turns that come in pairs or ranges, and random prompts that are those of other benchmarks.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::{Arc, LazyLock};

use aiperf_config::{
    Corpus, DatasetConfig, DatasetSource, EndpointKind, LengthPairs, LengthRange, Lengths, RandomStyle,
    SyntheticDataset,
};
use aiperf_dataset::{Dataset, DatasetError, Note, OpenContext, open};
use aiperf_tokenize::{OpenOptions, Tokenizer};
use aiperf_types::Conversation;
use common::*;
use serde_json::Value;

/// One for all tests: its pools of tokens are made once.
static BUILTIN: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::builtin);

fn with(entries: u64, lengths: Lengths) -> SyntheticDataset {
    SyntheticDataset { lengths, ..synthetic(entries, constant(1.0)) }
}

fn random(shape: SyntheticDataset) -> DatasetConfig {
    DatasetConfig { corpus: Some(Corpus::Random), ..config(DatasetSource::Synthetic(shape)) }
}

fn opened(config: &DatasetConfig, seed: u64) -> Arc<dyn Dataset> {
    open(config, &OpenContext { seed, ..context(&BUILTIN) }).unwrap()
}

/// Tokens of each turn by counting them, and its limit.
fn lengths_of(conversations: &[Conversation]) -> Vec<(u64, Option<u64>)> {
    let turns = conversations.iter().flat_map(|conversation| &conversation.turns);
    turns
        .map(|turn| {
            let count = BUILTIN.count(text(turn));
            assert_eq!(turn.text_tokens, Some(count));
            (count, turn.max_tokens)
        })
        .collect()
}

#[test]
fn both_lengths_of_a_turn_come_from_one_pair_as_often_as_its_share_says() {
    let pairs = LengthPairs::parse("8,4:40;16,9:50;30,2:0;3,1:10").unwrap();
    let shape = SyntheticDataset { turns: constant(4.0), ..with(1000, Lengths::Pairs(pairs)) };
    let all = lengths_of(&build_all(&*opened(&config(DatasetSource::Synthetic(shape)), 3)));
    assert_eq!(all.len(), 4000);
    for (pair, share) in [((8, Some(4)), 40.0), ((16, Some(9)), 50.0), ((3, Some(1)), 10.0)] {
        let found = all.iter().filter(|turn| **turn == pair).count() as f64 / 40.0;
        assert!((found - share).abs() < 3.0, "{pair:?}: {found} %");
    }
    assert!(all.iter().all(|turn| [(8, Some(4)), (16, Some(9)), (3, Some(1))].contains(turn)));
}

#[test]
fn lengths_of_a_pair_spread_by_their_deviations() {
    let pairs = LengthPairs::parse("40|8,20:100").unwrap();
    let all = lengths_of(&build_all(&*opened(
        &config(DatasetSource::Synthetic(with(2000, Lengths::Pairs(pairs)))),
        3,
    )));
    let mean = all.iter().map(|turn| turn.0 as f64).sum::<f64>() / 2000.0;
    let deviation = (all.iter().map(|turn| (turn.0 as f64 - mean).powi(2)).sum::<f64>() / 1999.0).sqrt();
    assert!((mean / 40.0 - 1.0).abs() < 0.02 && (deviation / 8.0 - 1.0).abs() < 0.05, "{mean} {deviation}");
    assert!(all.iter().all(|turn| turn.1 == Some(20)));
}

#[test]
fn a_range_is_uniform_and_reaches_both_of_its_ends() {
    for (style, inputs, outputs) in
        [(RandomStyle::Vllm, 12..=20, 3..=9), (RandomStyle::Sglang, 4..=16, 3..=6)]
    {
        let range = LengthRange { input: 16, output: 6, input_ratio: 0.25, output_ratio: 0.5 };
        for (corpus, turns) in [(Corpus::Sonnet, 1.0), (Corpus::Random, 1.0), (Corpus::Random, 2.0)] {
            let shape = SyntheticDataset {
                random_style: style,
                turns: constant(turns),
                ..with(600, Lengths::Range(range))
            };
            let dataset = opened(&DatasetConfig { corpus: Some(corpus), ..random(shape) }, 5);
            let all = lengths_of(&build_all(&*dataset));
            let mut seen = [[0usize; 24]; 2];
            for (input, output) in &all {
                seen[0][*input as usize] += 1;
                seen[1][output.unwrap() as usize] += 1;
            }
            for (counts, range) in seen.iter().zip([&inputs, &outputs]) {
                let even = all.len() as f64 / range.clone().count() as f64;
                for (length, &count) in counts.iter().enumerate() {
                    if range.contains(&length) {
                        assert!(
                            (0.4 * even..1.8 * even).contains(&(count as f64)),
                            "{style:?} {length}: {count}"
                        );
                    } else {
                        assert_eq!(count, 0, "{style:?} {length}");
                    }
                }
            }
        }
    }
}

fn ratios(case: &Value) -> (f64, f64) {
    let text = case["ratio"].as_str().unwrap();
    match serde_json::from_str(text).unwrap() {
        Value::Number(ratio) => (ratio.as_f64().unwrap(), ratio.as_f64().unwrap()),
        both => (both["input"].as_f64().unwrap(), both["output"].as_f64().unwrap()),
    }
}

/// Each recorded request of the two serving benchmarks: the tokens of its prompt, and its limit.
#[test]
fn random_prompts_are_those_of_the_benchmark_that_is_imitated() {
    let cases: Value =
        serde_json::from_slice(&std::fs::read(data("random_corpus_vectors.json")).unwrap()).unwrap();
    for case in cases["cases"].as_array().unwrap() {
        let count = |key: &str, default| case[key].as_u64().unwrap_or(default);
        let (input_ratio, output_ratio) = ratios(case);
        let style = match case["style"].as_str().unwrap() {
            "vllm" => RandomStyle::Vllm,
            _ => RandomStyle::Sglang,
        };
        let range = LengthRange { input: count("isl", 16), output: 8, input_ratio, output_ratio };
        let prefix_pool = case["prefix_pool"]
            .as_u64()
            .map(|prefixes| (prefixes as u32, case["prefix_length"].as_u64().unwrap() as u32));
        let shape = SyntheticDataset { random_style: style, prefix_pool, ..with(4, Lengths::Range(range)) };
        let dataset = opened(&random(shape), case["seed"].as_u64().unwrap());
        // Made in another order the second time.
        for index in [3usize, 0, 2, 1, 3, 2] {
            let turn = &dataset.build(index as u64).unwrap().turns[0];
            let mut tokens = Vec::new();
            BUILTIN.encode(text(turn), &mut tokens);
            let wanted = &case["prompts"][index];
            assert_eq!(serde_json::to_value(&tokens).unwrap(), wanted["ids"], "{case} {index}");
            assert_eq!(turn.max_tokens, wanted["max_tokens"].as_u64());
            assert_eq!(turn.text_tokens, Some(tokens.len() as u64));
        }
    }
}

/// The benchmark has a request for each conversation: so many turns have them, conversation by conversation, and those
/// behind them have lengths within the same ranges.
#[test]
fn several_turns_use_up_the_prompts_of_the_benchmark_before_others_are_drawn() {
    let range = LengthRange { input: 16, output: 8, input_ratio: 0.25, output_ratio: 0.25 };
    for prefix_pool in [None, Some((1, 6))] {
        let shape = SyntheticDataset { prefix_pool, ..with(5, Lengths::Range(range)) };
        let single = opened(&random(shape.clone()), 42);
        let several = SyntheticDataset { turns: constant(2.0), turn_delay: constant(7.0), ..shape };
        let several = opened(&random(several), 42);
        let of = |dataset: &dyn Dataset, index: u64, turn: usize| {
            let turn = dataset.build(index).unwrap().turns.remove(turn);
            (text(&turn).to_owned(), turn.max_tokens, turn.delay_ms)
        };
        for (number, (index, turn)) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)].into_iter().enumerate() {
            let (wanted, limit, _) = of(&*single, number as u64, 0);
            let (found, found_limit, delay) = of(&*several, index, turn);
            assert_eq!((found_limit, delay), (limit, (turn == 1).then_some(7.0)), "{number}");
            // Only the first turn of a conversation has a prefix; a text behind one may be cut at another place.
            if prefix_pool.is_none() {
                assert_eq!(found, wanted, "{number}");
            } else {
                let tokens = |text: &str| BUILTIN.count(text);
                assert_eq!(tokens(&found) + if turn == 1 { 6 } else { 0 }, tokens(&wanted), "{number}");
            }
        }
        for (index, turn) in [(2, 1), (3, 0), (3, 1), (4, 1)] {
            let (found, limit, _) = of(&*several, index, turn);
            let prefix = if turn == 0 { prefix_pool.map_or(0, |(_, length)| u64::from(length)) } else { 0 };
            assert!((12 + prefix..=20 + prefix).contains(&BUILTIN.count(&found)), "{found}");
            assert!((6..=10).contains(&limit.unwrap()));
        }
        if prefix_pool.is_some() {
            let mut tokens = Vec::new();
            BUILTIN.encode(&of(&*single, 0, 0).0, &mut tokens);
            let prefix = BUILTIN.decode(&tokens[..6]);
            for index in 0..5 {
                assert!(of(&*several, index, 0).0.starts_with(&prefix), "{index}");
                assert!(!of(&*several, index, 1).0.starts_with(&prefix), "{index}");
            }
        }
    }
}

/// Each turn has its lengths, each text its place in the pool, as in the reference.
#[test]
fn several_texts_of_a_turn_have_one_length_and_use_up_the_prompts_of_the_benchmark() {
    let range = LengthRange { input: 16, output: 8, input_ratio: 0.25, output_ratio: 0.25 };
    let shape = with(4, Lengths::Range(range));
    let single = opened(&random(shape.clone()), 42);
    let config = random(SyntheticDataset { batch_size: 2, ..shape });
    let context = OpenContext { endpoint: EndpointKind::Completions, seed: 42, ..context(&BUILTIN) };
    let pairs = open(&config, &context).unwrap();
    assert_eq!(pairs.notes(), [Note::ImitatedUpTo { benchmark: "vllm", texts: 4 }]);
    for (index, (input, output)) in [(12, 8), (18, 10), (17, 6), (15, 9)].into_iter().enumerate() {
        let turn = &pairs.build(index as u64).unwrap().turns[0];
        assert_eq!(turn.max_tokens, Some(output));
        for (place, text) in texts(turn).iter().enumerate() {
            assert_eq!(BUILTIN.count(text), input, "{text}");
            let alone = single.build((index * 2 + place) as u64 % 4).unwrap();
            let alone = self::text(&alone.turns[0]);
            let begins = text.starts_with(alone) || alone.starts_with(*text);
            assert_eq!(begins, index < 2, "{index} {place}: {text:?} {alone:?}");
        }
    }
}

#[test]
fn imitated_prompts_do_not_depend_on_threads_or_order() {
    let range = LengthRange { input: 60, output: 8, input_ratio: 0.5, output_ratio: 0.5 };
    for style in [RandomStyle::Vllm, RandomStyle::Sglang] {
        let shape = SyntheticDataset {
            random_style: style,
            prefix_pool: Some((3, 10)),
            ..with(120, Lengths::Range(range))
        };
        let prompts = |dataset: &dyn Dataset, indexes: &[u64]| -> Vec<(u64, String)> {
            indexes.iter().map(|&i| (i, text(&dataset.build(i).unwrap().turns[0]).to_owned())).collect()
        };
        let all: Vec<u64> = (0..120).collect();
        let one = prompts(&*opened(&random(shape.clone()), 9), &all);
        let dataset = opened(&random(shape), 9);
        let mut other: Vec<(u64, String)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (dataset, prompts) = (&dataset, &prompts);
                    let mine: Vec<u64> = all.iter().rev().copied().filter(|i| i % 4 == thread).collect();
                    scope.spawn(move || prompts(&**dataset, &mine))
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        other.sort();
        assert_eq!(one, other);
        let distinct: std::collections::HashSet<&String> = one.iter().map(|(_, text)| text).collect();
        assert_eq!(distinct.len(), 120);
    }
}

#[test]
fn what_is_not_imitated_and_a_seed_that_is_too_large_are_told() {
    let range = LengthRange { input: 16, output: 8, input_ratio: 0.25, output_ratio: 0.25 };
    let shape = with(4, Lengths::Range(range));
    let given = opened(&random(shape.clone()), 42);
    assert_eq!(given.notes(), []);
    // A seed that was drawn makes what the same seed makes when it is given.
    let drawn = OpenContext { seed_given: false, ..context(&BUILTIN) };
    let drawn = open(&random(shape.clone()), &drawn).unwrap();
    assert_eq!(text(&given.build(0).unwrap().turns[0]), text(&drawn.build(0).unwrap().turns[0]));

    let several = SyntheticDataset { turns: constant(2.0), ..shape.clone() };
    assert_eq!(opened(&random(several), 42).notes(), [Note::ImitatedUpTo { benchmark: "vllm", texts: 4 }]);
    let sglang = SyntheticDataset { random_style: RandomStyle::Sglang, ..shape };
    let (low, high) = (opened(&random(sglang.clone()), 43), opened(&random(sglang), 42 + (1 << 32)));
    assert_eq!(high.notes(), [Note::SeedFolded { seed: 42 + (1 << 32), folded: 43 }]);
    assert_eq!(text(&low.build(3).unwrap().turns[0]), text(&high.build(3).unwrap().turns[0]));
}

#[test]
fn a_range_that_reaches_nothing_is_refused_and_says_what_helps() {
    let range = LengthRange { input: 1, output: 8, input_ratio: 0.5, output_ratio: 0.0 };
    let shape = with(4, Lengths::Range(range));
    let error = open(&random(shape.clone()), &context(&BUILTIN)).err().unwrap();
    assert!(matches!(error, DatasetError::Unsuitable(_)));
    let message = error.to_string();
    for part in ["--random-range-ratio 0.5", "--isl 1", "at least 1", "--prefix-prompt-length"] {
        assert!(message.contains(part), "{message}");
    }
    let prefixed = SyntheticDataset { prefix_pool: Some((1, 5)), ..shape };
    let all = lengths_of(&build_all(&*opened(&random(prefixed), 42)));
    assert!(all.iter().all(|(input, _)| (5..=7).contains(input)), "{all:?}");
}

/// What a server adds is part of the length that was asked for.
#[test]
fn ranges_and_pairs_are_less_what_the_server_adds() {
    let folder = data("../../../tokenize/tests/data/sentencepiece-bpe");
    let tokenizer = Tokenizer::open(folder.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let special = tokenizer.num_special_tokens_to_add();
    assert!(special > 0);
    let range = LengthRange { input: 20, output: 8, input_ratio: 0.0, output_ratio: 0.0 };
    let pairs = LengthPairs::parse("20,8:100").unwrap();
    for lengths in [Lengths::Range(range), Lengths::Pairs(pairs), Lengths::Normal(constant(20.0))] {
        let dataset =
            open(&config(DatasetSource::Synthetic(with(5, lengths))), &context(&tokenizer)).unwrap();
        for conversation in build_all(&*dataset) {
            assert_eq!(tokenizer.count(text(&conversation.turns[0])), 20 - special);
        }
    }
}
