//! Each option that acts on some data files only, with each format: it acts, is refused by name, or says that it
//! changes nothing.

use aiperf_config::{DatasetSource, FileDataset};
use aiperf_dataset::formats;

use crate::support::{settle, words};

/// What becomes of an option with a format.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Acts,
    Refused,
    Warned,
    /// Accepted, and without effect.
    Idle,
}

/// Options, the formats on which they act, and what happens with others.
const OPTIONS: &[(&str, &[&str], Outcome)] = &[
    ("--isl-block-size 32", &["mooncake_trace", "bailian_trace"], Outcome::Refused),
    ("--prompt-batch-size 2", &["random_pool"], Outcome::Refused),
    ("--image-batch-size 2", &["random_pool"], Outcome::Refused),
    ("--audio-batch-size 2", &["random_pool"], Outcome::Refused),
    ("--video-batch-size 2", &["random_pool"], Outcome::Refused),
    ("--uuid-and-strip", &["single_turn"], Outcome::Refused),
    ("--ignore-trace-delays", LENGTHS, Outcome::Warned),
    ("--synthesis-speedup-ratio 2", LENGTHS, Outcome::Refused),
    ("--synthesis-prefix-len-multiplier 2", LENGTHS, Outcome::Refused),
    ("--synthesis-prefix-root-multiplier 2", LENGTHS, Outcome::Refused),
    ("--synthesis-prompt-len-multiplier 2", LENGTHS, Outcome::Refused),
    ("--synthesis-output-len-multiplier 2", LENGTHS, Outcome::Refused),
    ("--synthesis-max-isl 2", LENGTHS, Outcome::Refused),
    ("--synthesis-max-osl 2", LENGTHS, Outcome::Refused),
    ("--num-dataset-entries 2", &[], Outcome::Idle),
    (
        "--input-columns session_id=conversation",
        &["single_turn", "multi_turn", "mooncake_trace"],
        Outcome::Refused,
    ),
    (
        "--input-columns timestamp=started",
        &["single_turn", "mooncake_trace", "bailian_trace"],
        Outcome::Refused,
    ),
    ("--input-columns TIMESTAMP=started", &["azure_llm_trace"], Outcome::Refused),
    ("--input-columns Timestamp=started", &["burst_gpt_trace"], Outcome::Refused),
];

const LENGTHS: &[&str] =
    &["mooncake_trace", "bailian_trace", "burst_gpt_trace", "azure_llm_trace", "sagemaker_data_capture"];

/// Formats with rules of their own, which have tests of their own.
const APART: [&str; 4] = ["baseten_trace", "tracelab", "weka_trace", "dag_jsonl"];

fn of_file(line: &str) -> Result<(FileDataset, bool), String> {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let settled = settle(&words).map_err(|error| error.report())?;
    let warned = settled.notes.iter().any(|note| note.warning);
    match settled.config.dataset.source {
        DatasetSource::File(file) => Ok((file, warned)),
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => Err("no file".into()),
    }
}

#[test]
fn every_option_acts_is_refused_or_says_that_it_does_not() {
    for (option, acting, otherwise) in OPTIONS {
        for format in formats().iter().filter(|format| !APART.contains(&format.name())) {
            let expected = if acting.contains(&format.name()) { Outcome::Acts } else { *otherwise };
            let plain = format!(
                "--input-file @mooncake_hash.jsonl --no-fixed-schedule --custom-dataset-type {}",
                format.name()
            );
            let line = format!("{plain} {option}");
            let (without, _) = of_file(&plain).unwrap();
            match (expected, of_file(&line)) {
                (Outcome::Refused, Err(message)) => {
                    let name = option.split(' ').next().unwrap();
                    assert!(message.contains(name) && message.contains(format.name()), "{line}: {message}");
                }
                (Outcome::Acts, Ok((file, false))) => {
                    assert_ne!(format!("{without:?}"), format!("{file:?}"), "{line}");
                }
                (Outcome::Warned, Ok((_, true))) | (Outcome::Idle, Ok((_, false))) => {}
                (_, found) => panic!("{line}: expected {expected:?}, found {found:?}"),
            }
        }
    }
}

#[test]
fn random_tokens_are_no_corpus_of_traces() {
    for name in ["mooncake_trace", "bailian_trace", "burst_gpt_trace", "azure_llm_trace"] {
        let message = of_file(&format!(
            "--input-file @mooncake_hash.jsonl --custom-dataset-type {name} --prompt-corpus random"
        ))
        .unwrap_err();
        assert!(message.contains("--prompt-corpus random") && message.contains(name), "{message}");
    }
    of_file("--input-file @single_turn.jsonl --custom-dataset-type single_turn --prompt-corpus random")
        .unwrap();
}

#[test]
fn traces_play_their_times_by_themselves_and_a_pace_contradicts_them() {
    for name in LENGTHS {
        let file = format!("--input-file @mooncake_hash.jsonl --custom-dataset-type {name}");
        for pace in ["--request-rate 5", "--dataset-sampling-strategy random"] {
            let message = of_file(&format!("{file} {pace}")).unwrap_err();
            assert!(message.contains("--no-fixed-schedule"), "{message}");
            of_file(&format!("{file} {pace} --no-fixed-schedule")).unwrap();
            of_file(&format!("{file} {pace} --ignore-trace-delays")).unwrap();
        }
    }
}

#[test]
fn a_start_offset_is_recorded_time_and_goes_faster_with_the_trace() {
    let words = words(
        "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace --synthesis-speedup-ratio 2 \
         --fixed-schedule-start-offset 181",
    );
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let config = settle(&words).unwrap().config;
    match config.profiling().mode {
        aiperf_config::LoadMode::FixedSchedule(schedule) => assert_eq!(schedule.zero_ms, Some(90.0)),
        mode => panic!("{mode:?}"),
    }
}

/// The reference declares other orders for some types and never uses them.
#[test]
fn every_type_is_played_in_its_own_order_unless_another_is_asked_for() {
    for format in aiperf_config::FileFormat::ALL {
        let line = format!(
            "--input-file @single_turn.jsonl --custom-dataset-type {} --no-fixed-schedule --request-count 3",
            format.name()
        );
        let of = |more: &str| {
            let words = words(&format!("{line} {more}"));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            settle(&words).unwrap_or_else(|error| panic!("{}", error.report())).config.dataset.sampling
        };
        assert_eq!(of(""), aiperf_config::Sampling::Sequential, "{}", format.name());
        assert_eq!(of("--dataset-sampling-strategy shuffle"), aiperf_config::Sampling::Shuffle);
    }
}
