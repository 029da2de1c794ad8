//! Prompts of numbered blocks: equal numbers are equal text, wherever and whenever they are made.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fmt::Write as _;

use aiperf_config::{DatasetSource, FileDataset, FileFormat};
use aiperf_dataset::{Dataset, OpenContext, open};
use aiperf_tokenize::Tokenizer;
use common::*;

const ROWS: &str = r#"{"input_length": 40, "hash_ids": [7, 8, 9]}
{"input_length": 32, "hash_ids": [7, 8], "session_id": "s"}
{"input_length": 24, "hash_ids": [30, 8], "session_id": "s"}
{"input_length": 60, "hash_ids": [7, 8]}
{"input_length": 60, "hash_ids": [7, 8]}
{"input_length": 16, "hash_ids": [-3]}
"#;

fn trace(text: &str, seed: u64) -> Vec<Vec<u32>> {
    let (_folder, path) = written("d.jsonl", text);
    prompts(&*open_trace(&path, seed))
}

fn open_trace(path: &std::path::Path, seed: u64) -> std::sync::Arc<dyn Dataset> {
    let tokenizer = Tokenizer::builtin();
    let source = FileDataset { block_size: Some(16), ..file(path, FileFormat::MooncakeTrace) };
    open(&config(DatasetSource::File(source)), &OpenContext { seed, ..context(&tokenizer) }).unwrap()
}

fn encode(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    Tokenizer::builtin().encode(text, &mut tokens);
    tokens
}

fn prompts(dataset: &dyn Dataset) -> Vec<Vec<u32>> {
    build_all(dataset).iter().flat_map(|c| &c.turns).map(|turn| encode(text(turn))).collect()
}

#[test]
fn equal_blocks_are_equal_tokens_in_every_row_and_session() {
    // 24 tokens with [30, 8] would give block 8 a second size.
    let rows = ROWS.replace("\"input_length\": 24", "\"input_length\": 32");
    // Conversations in order of first appearance: rows 1, then 2 and 3, then the others.
    let all = trace(&rows, 42);
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [40, 32, 32, 60, 60, 16]);
    assert_eq!(all[0][..32], all[1][..], "blocks 7 and 8, across sessions");
    assert_eq!(all[2][16..32], all[1][16..32], "block 8 after another block");
    assert_ne!(all[2][..16], all[1][..16]);
    assert_eq!(all[3][..32], all[1][..]);
    // What goes beyond the blocks is a row's own.
    assert_ne!(all[3][32..], all[4][32..]);
}

#[test]
fn a_partial_block_is_the_beginning_of_the_full_one() {
    let partial = trace("{\"input_length\": 25, \"hash_ids\": [1, 2]}\n", 42);
    let full = trace("{\"input_length\": 32, \"hash_ids\": [1, 2]}\n", 42);
    // Other records are another file, and so other text: compare within one identity.
    assert_ne!(partial[0][..16], full[0][..16]);
    let same = |lengths: [u32; 2]| {
        // 64 equal records fix the identity; what follows does not belong to it.
        let mut text = "{\"text_input\": \"x\"}\n".repeat(64);
        for length in lengths {
            let _ = writeln!(text, "{{\"input_length\": {length}, \"hash_ids\": [1, {}]}}", 100 + length);
        }
        trace(&text, 42).split_off(64)
    };
    let [one, other] = [same([25, 32]), same([32, 25])];
    assert_eq!(one[0], other[1]);
    assert_eq!(one[1], other[0]);
    let partial = |length: u32| {
        let mut text = "{\"text_input\": \"x\"}\n".repeat(64);
        let _ = writeln!(text, "{{\"input_length\": {length}, \"hash_ids\": [1, 2]}}");
        let (_folder, path) = written("d.jsonl", &text);
        let dataset = open_trace(&path, 42);
        common::text(&dataset.build(64).unwrap().turns[0]).to_owned()
    };
    assert!(partial(32).starts_with(&partial(25)));
}

#[test]
fn vllm_39795_the_seed_and_the_file_decide_the_text() {
    let one = "{\"input_length\": 32, \"hash_ids\": [1, 2]}\n";
    assert_eq!(trace(one, 1), trace(one, 1));
    assert_ne!(trace(one, 1), trace(one, 2));
    let other = "{\"input_length\": 32, \"hash_ids\": [1, 2], \"output_length\": 9}\n";
    assert_ne!(trace(one, 1), trace(other, 1));
    let rewritten = "\u{feff}\n{ \"hash_ids\":[1.0,2],\"input_length\":32.0, \"delay\": null }\n";
    assert_eq!(trace(one, 1), trace(rewritten, 1), "the same records, written otherwise");
}

#[test]
fn threads_and_order_do_not_matter() {
    let mut text = String::new();
    for row in 0..80 {
        let _ = writeln!(
            text,
            "{{\"input_length\": 64, \"hash_ids\": [{}, {}, {}, 1]}}",
            row % 7,
            row % 5 + 10,
            row
        );
    }
    let (_folder, path) = written("d.jsonl", &text);
    let serial = prompts(&*open_trace(&path, 9));
    let dataset = open_trace(&path, 9);
    let mut parallel: Vec<(u64, Vec<u32>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let dataset = &dataset;
                scope.spawn(move || {
                    (0..80)
                        .rev()
                        .filter(|index| index % 4 == thread)
                        .map(|index| (index, encode(common::text(&dataset.build(index).unwrap().turns[0]))))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    parallel.sort();
    assert_eq!(serial, parallel.into_iter().map(|(_, tokens)| tokens).collect::<Vec<_>>());
}

#[test]
fn a_length_alone_is_met_exactly_and_zero_is_one_token() {
    let all = trace(
        "{\"input_length\": 0}\n{\"input_length\": 300}\n{\"input_length\": 300, \"hash_ids\": []}\n",
        3,
    );
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [1, 300, 300]);
    assert_ne!(all[1], all[2]);
}
