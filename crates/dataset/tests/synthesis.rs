//! Traces that are changed before they are played: filters, times, lengths, shared prefixes.

mod common;

use std::sync::Arc;

use aiperf_config::{DatasetSource, FileDataset, FileFormat, Synthesis};
use aiperf_dataset::{Dataset, DatasetError, Note, OpenContext, open};
use aiperf_tokenize::Tokenizer;
use common::*;
use proptest::prelude::*;

fn encode(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    Tokenizer::builtin().encode(text, &mut tokens);
    tokens
}

fn changed(file: FileDataset, synthesis: Synthesis) -> Result<Arc<dyn Dataset>, DatasetError> {
    open(&config(DatasetSource::File(FileDataset { synthesis, ..file })), &context(&Tokenizer::builtin()))
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn as_schedule(file: FileDataset, synthesis: Synthesis) -> Arc<dyn Dataset> {
    let tokenizer = Tokenizer::builtin();
    let context = OpenContext { fixed_schedule: true, ..context(&tokenizer) };
    open(&config(DatasetSource::File(FileDataset { synthesis, ..file })), &context).unwrap()
}

fn hashes() -> FileDataset {
    file(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace)
}

fn prompts(dataset: &dyn Dataset) -> Vec<Vec<u32>> {
    build_all(dataset).iter().map(|one| encode(text(&one.turns[0]))).collect()
}

fn common_start(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[test]
fn speed_and_outputs_leave_the_prompts_alone() {
    let plain = changed(hashes(), Synthesis::default()).unwrap();
    let faster = Synthesis { speedup: 4.0, output_len: 2.5, ..Synthesis::default() };
    let fast = changed(hashes(), faster).unwrap();
    assert_eq!(prompts(&*plain), prompts(&*fast));
    let limits = |dataset: &dyn Dataset| -> Vec<Option<u64>> {
        build_all(dataset).iter().map(|one| one.turns[0].max_tokens).collect()
    };
    for (plain, fast) in limits(&*plain).into_iter().zip(limits(&*fast)) {
        assert_eq!(fast, plain.map(|limit| (limit as f64 * 2.5).round_ties_even() as u64));
    }
    let scheduled = as_schedule(hashes(), faster);
    let times: Vec<f64> =
        (0..5).map(|index| scheduled.outline(index).first_timestamp_ms().unwrap()).collect();
    assert_eq!(times, [0.0, 22.0, 45.0, 65.0, 82.0]);
}

#[test]
fn delays_are_divided_before_they_are_capped() {
    let lines = [
        r#"{"session_id": "a", "text_input": "x", "timestamp": 0}"#,
        r#"{"session_id": "a", "text_input": "y", "delay": 3000}"#,
        r#"{"session_id": "a", "text_input": "z", "delay": 9000}"#,
    ];
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    let tokenizer = Tokenizer::builtin();
    let synthesis = Synthesis { speedup: 2.0, ..Synthesis::default() };
    let source = FileDataset { synthesis, ..file(&path, FileFormat::MooncakeTrace) };
    let mut config = config(DatasetSource::File(source));
    config.inter_turn_delay_cap = Some(std::time::Duration::from_secs(2));
    let outline = open(&config, &context(&tokenizer)).unwrap().outline(0);
    assert_eq!([1, 2].map(|turn| outline.turn(turn).unwrap().delay_ms), [Some(1500.0), Some(2000.0)]);
}

#[test]
fn long_inputs_are_left_out_and_long_outputs_capped_and_both_are_counted() {
    let synthesis = Synthesis { max_isl: Some(1100), max_osl: Some(4), ..Synthesis::default() };
    let dataset = changed(hashes(), synthesis).unwrap();
    assert_eq!(prompts(&*dataset).iter().map(Vec::len).collect::<Vec<_>>(), [1100, 700, 40, 1100]);
    let notes = dataset.notes();
    assert!(notes.contains(&Note::LongerThanAsked { rows: 1 }), "{notes:?}");
    assert!(notes.iter().any(|note| matches!(note, Note::OutputLengthCapped { turns: 1.. })), "{notes:?}");
    // Rows without a length stay.
    let texts = file(data("mooncake_messages.jsonl"), FileFormat::MooncakeTrace);
    let all = changed(texts.clone(), Synthesis::default()).unwrap().len();
    assert_eq!(changed(texts, Synthesis { max_isl: Some(1), ..Synthesis::default() }).unwrap().len(), all);
    let error =
        changed(hashes(), Synthesis { max_isl: Some(1), ..Synthesis::default() }).err().unwrap().to_string();
    assert!(error.contains("5 turn(s) have a longer input than --synthesis-max-isl"), "{error}");
}

#[test]
fn every_trace_of_lengths_knows_the_filters_and_the_speed() {
    let synthesis = Synthesis { speedup: 2.0, max_isl: Some(25), output_len: 0.5, ..Synthesis::default() };
    let burst = as_schedule(file(data("burst_gpt.csv"), FileFormat::BurstGptTrace), synthesis);
    let times: Vec<f64> = (0..3).map(|index| burst.outline(index).first_timestamp_ms().unwrap()).collect();
    assert_eq!(times, [2560.0, 2560.0, 2725.0]);
    assert_eq!(prompts(&*burst).iter().map(Vec::len).collect::<Vec<_>>(), [18, 25, 22]);
    let azure = as_schedule(file(data("azure_llm.csv"), FileFormat::AzureLlmTrace), synthesis);
    let times: Vec<f64> = (0..2).map(|index| azure.outline(index).first_timestamp_ms().unwrap()).collect();
    assert_eq!(times, [0.0, 2125.0]);
    let captured = as_schedule(
        file(data("sagemaker_capture.jsonl"), FileFormat::SagemakerDataCapture),
        Synthesis { max_isl: Some(12), ..synthesis },
    );
    // The first call counts 14 tokens; the third does not say.
    assert_eq!(captured.len().known(), 2);
    assert_eq!(captured.outline(0).first_timestamp_ms(), Some(125.0));
    assert_eq!(captured.build(0).unwrap().turns[0].max_tokens, Some(3));
    let bailian = as_schedule(file(data("bailian.jsonl"), FileFormat::BailianTrace), synthesis);
    assert_eq!(prompts(&*bailian).len(), 2);
}

#[test]
fn a_longer_prefix_stretches_what_is_shared_and_a_longer_prompt_the_rest() {
    let plain = prompts(&*changed(hashes(), Synthesis::default()).unwrap());
    // A separator in front of each block may be one more.
    let shared = |prompts: &[Vec<u32>]| common_start(&prompts[0], &prompts[1]) / 512;
    assert_eq!(shared(&plain), 2);
    let longer = changed(hashes(), Synthesis { prefix_len: 2.0, ..Synthesis::default() }).unwrap();
    let longer = prompts(&*longer);
    assert_eq!(shared(&longer), 4);
    assert_eq!(longer[0].len(), plain[0].len() + 1024);
    let shorter = changed(hashes(), Synthesis { prefix_len: 0.5, ..Synthesis::default() }).unwrap();
    let shorter = prompts(&*shorter);
    assert_eq!(shared(&shorter), 1);
    assert_eq!(shorter[0].len(), plain[0].len() - 512);
    let prompt = changed(hashes(), Synthesis { prompt_len: 3.0, ..Synthesis::default() }).unwrap();
    let prompt = prompts(&*prompt);
    assert_eq!(shared(&prompt), 2);
    assert_eq!(prompt[0].len(), 1024 + (plain[0].len() - 1024) * 3);
}

#[test]
fn roots_part_requests_into_groups_that_share_nothing() {
    let row = r#"{"input_length": 1024, "hash_ids": [1, 2]}"#;
    let (_folder, path) = written("d.jsonl", vec![row; 24].join("\n"));
    let synthesis = Synthesis { prefix_root: 3, ..Synthesis::default() };
    let all = prompts(&*changed(file(&path, FileFormat::MooncakeTrace), synthesis).unwrap());
    let mut distinct = all.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 3);
    assert!(distinct.windows(2).all(|pair| common_start(&pair[0], &pair[1]) < 16));
}

/// A row whose blocks are all shared and whose last one is partial has fewer tokens than blocks times their size.
#[test]
fn a_fully_shared_row_with_a_partial_block_takes_every_multiplier() {
    let lines = [
        r#"{"input_length": 600, "hash_ids": [1, 2], "output_length": 5}"#,
        r#"{"input_length": 600, "hash_ids": [1, 2], "output_length": 5}"#,
        r#"{"input_length": 1500, "hash_ids": [1, 3, 4], "output_length": 5}"#,
    ];
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    for synthesis in [
        Synthesis { speedup: 3.0, ..Synthesis::default() },
        Synthesis { prefix_len: 1.5, ..Synthesis::default() },
        Synthesis { prefix_len: 0.5, ..Synthesis::default() },
        Synthesis { prefix_root: 4, ..Synthesis::default() },
        Synthesis { prompt_len: 0.1, ..Synthesis::default() },
        Synthesis { output_len: 0.0, ..Synthesis::default() },
    ] {
        let dataset = changed(file(&path, FileFormat::MooncakeTrace), synthesis).unwrap();
        assert_eq!(build_all(&*dataset).len(), 3, "{synthesis:?}");
    }
}

#[test]
fn multipliers_of_prompts_without_blocks_say_that_nothing_changes() {
    let synthesis = Synthesis { prompt_len: 2.0, ..Synthesis::default() };
    for (name, format) in [
        ("burst_gpt.csv", FileFormat::BurstGptTrace),
        ("sagemaker_capture.jsonl", FileFormat::SagemakerDataCapture),
        ("mooncake_messages.jsonl", FileFormat::MooncakeTrace),
    ] {
        let dataset = changed(file(data(name), format), synthesis).unwrap();
        assert!(dataset.notes().contains(&Note::NothingToReshape), "{name}: {:?}", dataset.notes());
    }
}

#[test]
fn ids_too_large_to_be_multiplied_are_an_error_that_names_the_flags() {
    let row = format!(r#"{{"input_length": 512, "hash_ids": [{}]}}"#, i64::MAX);
    let (_folder, path) = written("d.jsonl", [row.as_str(); 2].join("\n"));
    let source = file(&path, FileFormat::MooncakeTrace);
    assert!(changed(source.clone(), Synthesis::default()).is_ok());
    let error =
        changed(source, Synthesis { prefix_len: 2.0, ..Synthesis::default() }).err().unwrap().to_string();
    assert!(error.contains("too large") && error.contains("--synthesis-prefix-len-multiplier"), "{error}");
}

#[test]
fn a_multiplier_that_no_memory_holds_is_refused_by_the_line_it_is_too_much_for() {
    for synthesis in [
        Synthesis { prompt_len: 1e9, ..Synthesis::default() },
        Synthesis { prefix_len: 1e12, ..Synthesis::default() },
    ] {
        let error = changed(hashes(), synthesis).err().unwrap().to_string();
        assert!(
            error.contains("mooncake_hash.jsonl:1: ") && error.contains("--synthesis-max-isl"),
            "{error}"
        );
        let capped = changed(hashes(), Synthesis { max_isl: Some(2000), ..synthesis }).unwrap();
        assert!(prompts(&*capped).iter().all(|prompt| prompt.len() <= 2010));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn lengths_and_sharing_follow_the_multipliers_whatever_the_trace(
        rows in prop::collection::vec((prop::collection::vec(0i64..6, 0..4), 1u64..16), 1..8),
        prefix in prop::sample::select(vec![0.3, 0.5, 1.0, 1.5, 2.0, 3.25]),
        prompt in prop::sample::select(vec![0.5, 1.0, 2.0]),
        most in prop::option::of(20u64..200),
    ) {
        // Last blocks are all partial ones of their own, so that no id has two sizes.
        let lines: Vec<String> = rows
            .iter()
            .enumerate()
            .map(|(number, (ids, last))| {
                let ids: Vec<String> =
                    ids.iter().copied().chain([100 + number as i64]).map(|id| id.to_string()).collect();
                let length = (ids.len() as u64 - 1) * 16 + last;
                format!(r#"{{"input_length": {length}, "hash_ids": [{}], "output_length": 1}}"#, ids.join(","))
            })
            .collect();
        let (_folder, path) = written("d.jsonl", lines.join("\n"));
        let source = FileDataset { block_size: Some(16), ..file(&path, FileFormat::MooncakeTrace) };
        let synthesis = Synthesis { prefix_len: prefix, prompt_len: prompt, max_isl: most, ..Synthesis::default() };
        match changed(source, synthesis) {
            Ok(dataset) => {
                for one in build_all(&*dataset) {
                    let tokens = Tokenizer::builtin().count(text(&one.turns[0]));
                    // Decoded blocks may meet in other tokens by a few.
                    prop_assert!(most.is_none_or(|most| tokens <= most + most / 10 + 4), "{tokens} of {most:?}");
                }
            }
            Err(error) => prop_assert!(error.to_string().contains("--synthesis-max-isl"), "{}", error),
        }
    }
}
