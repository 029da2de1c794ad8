//! Generated conversations: lengths, streams that do not touch each other, entries that do not depend on others.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::Arc;

use aiperf_config::{Corpus, DatasetConfig, DatasetSource, EndpointKind, Normal, SyntheticDataset};
use aiperf_dataset::{Dataset, DatasetError, Len, OpenContext, open};
use aiperf_tokenize::{OpenOptions, Tokenizer};
use aiperf_types::{ContextMode, Conversation};
use common::*;

fn generate(shape: SyntheticDataset) -> Arc<dyn Dataset> {
    generate_with(shape, |_| {})
}

fn generate_with(shape: SyntheticDataset, change: impl FnOnce(&mut DatasetConfig)) -> Arc<dyn Dataset> {
    let mut config = config(DatasetSource::Synthetic(shape));
    change(&mut config);
    open(&config, &context(&Tokenizer::builtin())).unwrap()
}

/// Everything that is sent, as text.
fn all_of(conversations: &[Conversation]) -> Vec<String> {
    conversations
        .iter()
        .map(|conversation| {
            let turns: Vec<_> = conversation
                .turns
                .iter()
                .map(|turn| (texts(turn).join("\u{1}"), turn.delay_ms, turn.max_tokens, turn.text_tokens))
                .collect();
            format!(
                "{} {:?} {:?} {turns:?}",
                conversation.id, conversation.system_message, conversation.user_context_message
            )
        })
        .collect()
}

fn rich(entries: u64) -> SyntheticDataset {
    SyntheticDataset {
        turns: Normal { mean: 3.0, stddev: 1.0 },
        turn_delay: Normal { mean: 50.0, stddev: 10.0 },
        prefix_pool: Some((3, 20)),
        ..synthetic(entries, Normal { mean: 60.0, stddev: 15.0 })
    }
}

#[test]
fn prompts_have_exactly_the_length_asked_for() {
    let tokenizer = Tokenizer::builtin();
    for corpus in [Corpus::Sonnet, Corpus::Coding] {
        for length in [1.0, 7.0, 128.0, 1000.0] {
            let dataset =
                generate_with(synthetic(5, constant(length)), |config| config.corpus = Some(corpus));
            for conversation in build_all(&*dataset) {
                let turn = &conversation.turns[0];
                assert_eq!(tokenizer.count(text(turn)), length as u64, "{corpus:?}");
                assert_eq!(turn.text_tokens, Some(length as u64));
                assert_eq!(turn.max_tokens, None);
                assert_eq!(conversation.context_mode, ContextMode::DeltasWithoutResponses);
            }
        }
    }
}

fn opened(name: &str) -> Tokenizer {
    let folder = data("../../../tokenize/tests/data").join(name);
    Tokenizer::open(folder.to_str().unwrap(), &OpenOptions::default()).unwrap()
}

/// Every generated text, tokenised again, whatever the tokenizer: what a server adds is part of the length of a turn.
#[test]
fn all_texts_have_their_length_through_three_tokenizers() {
    for tokenizer in [Tokenizer::builtin(), opened("byte-bpe"), opened("sentencepiece-unigram")] {
        let special = tokenizer.num_special_tokens_to_add();
        for corpus in [Corpus::Sonnet, Corpus::Coding, Corpus::Random] {
            let build = |shape: SyntheticDataset| {
                let config =
                    DatasetConfig { corpus: Some(corpus), ..config(DatasetSource::Synthetic(shape)) };
                build_all(&*open(&config, &context(&tokenizer)).unwrap())
            };
            let named = tokenizer.name().to_owned();
            let shape = || SyntheticDataset { turns: constant(2.0), ..synthetic(4, constant(60.0)) };
            for conversation in build(SyntheticDataset { prefix_pool: Some((2, 30)), ..shape() }) {
                let counts: Vec<u64> =
                    conversation.turns.iter().map(|turn| tokenizer.count(text(turn))).collect();
                assert_eq!(counts, [90 - special, 60 - special], "{named} {corpus:?}");
            }
            let told = SyntheticDataset {
                shared_system_prompt_length: Some(25),
                user_context_prompt_length: Some(15),
                ..shape()
            };
            for conversation in build(told) {
                let count = |message: &Option<Arc<str>>| tokenizer.count(message.as_deref().unwrap());
                assert_eq!(count(&conversation.system_message), 25, "{named} {corpus:?}");
                assert_eq!(count(&conversation.user_context_message), 15, "{named} {corpus:?}");
            }
        }
    }
}

/// The messages that a server renders have the length asked for, not the bare text.
#[test]
fn with_a_chat_template_a_prompt_shrinks_by_what_wraps_it() {
    let tokenizer = opened("byte-bpe");
    let template = tokenizer.chat_template().unwrap();
    let build = |isl: f64, prefix_pool, endpoint| {
        let shape = SyntheticDataset { turns: constant(1.0), prefix_pool, ..synthetic(6, constant(isl)) };
        let context = OpenContext { apply_chat_template: true, endpoint, ..context(&tokenizer) };
        build_all(&*open(&config(DatasetSource::Synthetic(shape)), &context).unwrap())
    };
    let mut all = 0;
    for conversation in build(60.0, None, EndpointKind::Chat) {
        let prompt = text(&conversation.turns[0]);
        let messages = serde_json::json!([{"role": "user", "content": prompt}]).to_string();
        let rendered = template.render(&messages, None, true).unwrap();
        // The cost of wrapping is a mean: where words meet the template one token may come or go.
        let seen = tokenizer.count(&rendered);
        assert!(seen.abs_diff(60) <= 2, "a server sees {seen} tokens");
        assert!(tokenizer.count(prompt) < 55);
        all += seen;
    }
    assert!(all.abs_diff(6 * 60) <= 6, "{all} in 6 prompts");
    // Something is left of a prompt, unless a prefix is.
    let tokens = |conversations: Vec<Conversation>| tokenizer.count(text(&conversations[0].turns[0]));
    assert_eq!(tokens(build(3.0, None, EndpointKind::Chat)), 1);
    assert_eq!(tokens(build(3.0, Some((1, 8)), EndpointKind::Chat)), 8);
    // A template is for messages.
    assert_eq!(tokens(build(60.0, None, EndpointKind::Completions)), 59);
}

#[test]
fn lengths_follow_their_distribution() {
    let normal = Normal { mean: 40.0, stddev: 10.0 };
    let dataset = generate(synthetic(2000, normal));
    let lengths: Vec<f64> =
        build_all(&*dataset).iter().map(|c| c.turns[0].text_tokens.unwrap() as f64).collect();
    let mean = lengths.iter().sum::<f64>() / 2000.0;
    let deviation = (lengths.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1999.0).sqrt();
    assert!((mean / 40.0 - 1.0).abs() < 0.02, "{mean}");
    assert!((deviation / 10.0 - 1.0).abs() < 0.05, "{deviation}");
}

#[test]
fn turn_counts_are_rounded_to_nearest_not_up() {
    let dataset = generate(SyntheticDataset {
        turns: Normal { mean: 3.0, stddev: 1.0 },
        ..synthetic(2000, constant(1.0))
    });
    let turns: u64 = (0..2000).map(|index| u64::from(dataset.outline(index).turns())).sum();
    assert!((turns as f64 / 2000.0 - 3.0).abs() < 0.06, "{turns}");
    assert_eq!(dataset.total_turns(), Some(turns));
}

#[test]
fn turns_after_the_first_wait_and_the_ratio_scales_it() {
    let shape = |ratio| SyntheticDataset {
        turns: constant(3.0),
        turn_delay: constant(40.0),
        turn_delay_ratio: ratio,
        ..synthetic(2, constant(5.0))
    };
    assert_eq!(times(&*generate(shape(0.5)))[1].1, [(None, None), (None, Some(20.0)), (None, Some(20.0))]);
    assert_eq!(times(&*generate(shape(0.0)))[1].1, [(None, None); 3]);
    let capped = generate_with(shape(1.0), |config| {
        config.inter_turn_delay_cap = Some(std::time::Duration::from_millis(35));
    });
    assert_eq!(times(&*capped)[1].1, [(None, None), (None, Some(35.0)), (None, Some(35.0))]);
    times(&*generate(rich(30)));
}

#[test]
fn the_first_turn_has_a_prefix_of_the_pool_in_addition() {
    let tokenizer = Tokenizer::builtin();
    let dataset = generate(SyntheticDataset {
        turns: constant(2.0),
        prefix_pool: Some((3, 50)),
        ..synthetic(40, constant(30.0))
    });
    let mut starts = std::collections::HashSet::new();
    for conversation in build_all(&*dataset) {
        let first = text(&conversation.turns[0]);
        assert_eq!((tokenizer.count(first), conversation.turns[0].text_tokens), (80, Some(80)));
        assert_eq!(conversation.turns[1].text_tokens, Some(30));
        starts.insert(first.chars().take(40).collect::<String>());
    }
    assert_eq!(starts.len(), 3, "{starts:?}");
}

#[test]
fn system_prompt_is_shared_and_user_context_is_not() {
    let tokenizer = Tokenizer::builtin();
    let dataset = generate(SyntheticDataset {
        shared_system_prompt_length: Some(25),
        user_context_prompt_length: Some(15),
        ..synthetic(10, constant(8.0))
    });
    let all = build_all(&*dataset);
    let mut contexts = std::collections::HashSet::new();
    for conversation in &all {
        let system = conversation.system_message.as_deref().unwrap();
        assert_eq!(tokenizer.count(system), 25);
        assert_eq!(Some(system), all[0].system_message.as_deref());
        let user = conversation.user_context_message.as_deref().unwrap();
        assert_eq!(tokenizer.count(user), 15);
        contexts.insert(user.to_owned());
        assert_eq!(conversation.turns[0].text_tokens, Some(8));
    }
    assert_eq!(contexts.len(), 10);
}

#[test]
fn a_batch_is_several_texts_of_one_turn_where_the_endpoint_takes_them() {
    let tokenizer = Tokenizer::builtin();
    let shape = SyntheticDataset { batch_size: 4, ..synthetic(3, Normal { mean: 30.0, stddev: 8.0 }) };
    let context = OpenContext { endpoint: EndpointKind::Embeddings, ..context(&tokenizer) };
    let dataset = open(&config(DatasetSource::Synthetic(shape.clone())), &context).unwrap();
    for conversation in build_all(&*dataset) {
        let all = texts(&conversation.turns[0]);
        assert_eq!(all.len(), 4);
        let tokens: u64 = all.iter().map(|text| tokenizer.count(text)).sum();
        assert_eq!(conversation.turns[0].text_tokens, Some(tokens));
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }
    let message = open(&config(DatasetSource::Synthetic(shape)), &common::context(&tokenizer)).err().unwrap();
    assert!(message.to_string().contains("--batch-size 4"), "{message}");
}

#[test]
fn adding_an_output_length_leaves_every_prompt_unchanged() {
    let without = build_all(&*generate(rich(20)));
    let mut with = build_all(&*generate_with(rich(20), |config| {
        config.osl = Some(Normal { mean: 100.0, stddev: 20.0 });
    }));
    let limits: Vec<u64> =
        with.iter_mut().flat_map(|c| &mut c.turns).filter_map(|t| t.max_tokens.take()).collect();
    assert!(limits.iter().any(|limit| *limit != limits[0]));
    assert_eq!(all_of(&without), all_of(&with));
}

#[test]
fn more_entries_leave_the_earlier_ones_unchanged() {
    assert_eq!(all_of(&build_all(&*generate(rich(10)))), all_of(&build_all(&*generate(rich(200)))[..10]));
}

#[test]
fn any_thread_in_any_order_makes_the_same_conversations() {
    let serial = all_of(&build_all(&*generate(rich(60))));
    let dataset = generate(rich(60));
    let mut parallel: Vec<(u64, Conversation)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let dataset = &dataset;
                scope.spawn(move || {
                    let mine = (0..60).rev().filter(|index| index % 4 == thread);
                    mine.map(|index| (index, dataset.build(index).unwrap())).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    parallel.sort_by_key(|(index, _)| *index);
    let parallel: Vec<Conversation> = parallel.into_iter().map(|(_, conversation)| conversation).collect();
    assert_eq!(serial, all_of(&parallel));
}

#[test]
fn the_seed_decides_the_texts() {
    let tokenizer = Tokenizer::builtin();
    let source = || config(DatasetSource::Synthetic(synthetic(3, constant(50.0))));
    let other = open(&source(), &OpenContext { seed: 43, ..context(&tokenizer) }).unwrap();
    let one = generate(synthetic(3, constant(50.0)));
    assert_ne!(text(&one.build(0).unwrap().turns[0]), text(&other.build(0).unwrap().turns[0]));
    assert_ne!(text(&one.build(0).unwrap().turns[0]), text(&one.build(1).unwrap().turns[0]));
    assert_eq!(one.len(), Len::Exact(3));
}

#[test]
fn what_cannot_be_generated_is_refused() {
    let tokenizer = Tokenizer::builtin();
    let refuse = |shape: SyntheticDataset, context: OpenContext<'_>| -> DatasetError {
        open(&config(DatasetSource::Synthetic(shape)), &context).err().unwrap()
    };
    let base = context(&tokenizer);
    let shape = synthetic(3, constant(5.0));
    let error = refuse(shape.clone(), OpenContext { tokenizer: None, ..base });
    assert!(error.to_string().contains("--tokenizer"), "{error}");
    let error = refuse(shape.clone(), OpenContext { fixed_schedule: true, ..base });
    assert!(error.to_string().contains("--fixed-schedule"), "{error}");
    let error = refuse(SyntheticDataset { entries: 0, ..shape.clone() }, base);
    assert!(matches!(error, DatasetError::Empty(_)), "{error}");
    let many = SyntheticDataset { turns: constant(2.0), ..shape };
    let error = refuse(many, OpenContext { endpoint: EndpointKind::Completions, ..base });
    let message = error.to_string();
    assert!(message.contains("session `session_000000`") && message.contains("completions"), "{message}");
}
