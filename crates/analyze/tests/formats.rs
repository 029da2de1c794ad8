//! Every format is looked at: the samples of the dataset room.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use aiperf_analyze::{Analysis, analyze, render, to_json, validate};
use aiperf_config::{DatasetConfig, DatasetSource, FileDataset, FileFormat};
use aiperf_dataset::{OpenContext, Survey, format, formats, open};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data")
}

fn looked_at(name: &str, found: FileFormat) -> Analysis {
    let path = data().join(name);
    let survey = Survey::new(10);
    // The blocks of this one are those of another trace.
    let block_size = name.ends_with("mooncake_shards").then_some(20);
    let file = FileDataset { block_size, ..FileDataset::new(&path, found) };
    let config = DatasetConfig::new(DatasetSource::File(file));
    let opened = open(&config, &OpenContext::survey(&survey, false));
    let validation = validate(opened.as_deref(), &survey, found, 10, path.is_dir()).unwrap();
    assert!(validation.is_valid(), "{name}: {validation:?}");
    let dataset = opened.unwrap();
    let analysis = analyze(dataset.as_ref(), found, format(found).block_size, None).unwrap();
    assert_eq!(Some(analysis.requests), dataset.total_turns(), "{name}");
    assert!(validation.rows > 0, "{name}");
    let text = render(&analysis);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}: {text}");
    analysis
}

/// A sample of each format, with its requests and conversations.
const SAMPLES: [(FileFormat, &str, u64, u64); 23] = [
    (FileFormat::SingleTurn, "single_turn.jsonl", 5, 4),
    (FileFormat::SingleTurn, "single_turn_schedule.jsonl", 4, 4),
    (FileFormat::MultiTurn, "multi_turn.jsonl", 6, 3),
    (FileFormat::MultiTurn, "parquet/multi_turn.parquet", 3, 2),
    (FileFormat::RandomPool, "random_pool.jsonl", 3, 3),
    (FileFormat::RandomPool, "random_pool_dir", 4, 4),
    (FileFormat::MooncakeTrace, "mooncake_hash.jsonl", 5, 5),
    (FileFormat::MooncakeTrace, "mooncake_sessions.jsonl", 5, 3),
    (FileFormat::MooncakeTrace, "mooncake_messages.jsonl", 3, 2),
    (FileFormat::MooncakeTrace, "mooncake_payload.jsonl", 3, 3),
    (FileFormat::MooncakeTrace, "parquet/mooncake_shards", 3, 3),
    (FileFormat::RawPayload, "raw_payload.jsonl", 3, 3),
    (FileFormat::RawPayload, "raw_payload_dir", 3, 2),
    (FileFormat::InputsJson, "inputs.json", 3, 2),
    (FileFormat::BailianTrace, "bailian.jsonl", 5, 3),
    (FileFormat::BurstGptTrace, "burst_gpt.csv", 4, 4),
    (FileFormat::AzureLlmTrace, "azure_llm.csv", 4, 4),
    (FileFormat::BasetenTrace, "baseten.parquet", 7, 4),
    (FileFormat::SagemakerDataCapture, "sagemaker_capture.jsonl", 3, 3),
    (FileFormat::DagJsonl, "dag.jsonl", 6, 1),
    (FileFormat::WekaTrace, "weka_trace.json", 5, 1),
    (FileFormat::Tracelab, "tracelab.jsonl", 3, 1),
    (FileFormat::SpeedBenchCoding, "speed_bench/qualitative.jsonl", 3, 2),
];

#[test]
fn every_format_is_looked_at_without_a_tokenizer() {
    for (found, name, requests, conversations) in SAMPLES {
        let analysis = looked_at(name, found);
        assert_eq!((analysis.requests, analysis.conversations), (requests, conversations), "{name}");
        let json = to_json(&analysis);
        assert_eq!(json["format"], found.name());
        assert_eq!(json["total_requests"], requests);
        let has_length = json.get("input_characters_stats").or_else(|| json.get("isl_stats"));
        assert!(has_length.is_some_and(|stats| stats["max"].as_f64() > Some(0.0)), "{name}: {json}");
    }
    let stands = |format: FileFormat| match format.name() {
        name if name.starts_with("speed_bench") => FileFormat::SpeedBenchCoding,
        _ => format,
    };
    for built in formats().iter().map(|format| stands(format.format)) {
        assert!(SAMPLES.iter().any(|(found, ..)| *found == built), "no sample of {}", built.name());
    }
}

#[test]
fn rows_that_are_left_out_or_were_cancelled_are_counted() {
    let burst = to_json(&looked_at("burst_gpt.csv", FileFormat::BurstGptTrace));
    assert_eq!(burst["rows"]["skipped"], 1);
    let baseten = to_json(&looked_at("baseten.parquet", FileFormat::BasetenTrace));
    assert_eq!(baseten["rows"]["cancelled"], 1);
    assert!(baseten["working_set_tokens"].as_u64() > Some(0));
    assert_eq!(burst.get("working_set_blocks"), None);
}

#[test]
fn subagents_stay_subagents() {
    for (name, format, subagents) in [
        ("dag.jsonl", FileFormat::DagJsonl, 3),
        ("weka_trace.json", FileFormat::WekaTrace, 1),
        ("tracelab.jsonl", FileFormat::Tracelab, 1),
    ] {
        let analysis = looked_at(name, format);
        assert_eq!((analysis.subagents, analysis.depth), (Some(subagents), Some(1)), "{name}");
        assert_eq!(to_json(&analysis)["subagent_depth"], 1, "{name}");
    }
}

#[test]
fn equal_numbers_in_two_traces_are_different_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(data().join("weka_trace.json")).unwrap();
    std::fs::write(folder.path().join("a.json"), &text).unwrap();
    std::fs::write(folder.path().join("b.json"), text.replace("weka-demo", "weka-other")).unwrap();
    let one = to_json(&looked_at("weka_trace.json", FileFormat::WekaTrace));
    let two = to_json(&looked_at(folder.path().to_str().unwrap(), FileFormat::WekaTrace));
    assert_eq!(two["total_requests"], 10);
    assert_eq!(two["cache_hit_rate"], one["cache_hit_rate"]);
    for key in ["working_set_blocks", "working_set_tokens"] {
        assert_eq!(two[key].as_u64(), one[key].as_u64().map(|count| count * 2), "{key}");
    }
}

#[test]
fn a_tokenizer_turns_characters_into_tokens() {
    let survey = Survey::new(1);
    let file = FileDataset::new(data().join("single_turn.jsonl"), FileFormat::SingleTurn);
    let config = DatasetConfig::new(DatasetSource::File(file));
    let dataset = open(&config, &OpenContext::survey(&survey, false)).unwrap();
    let tokenizer = aiperf_tokenize::Tokenizer::builtin();
    let counted = analyze(dataset.as_ref(), FileFormat::SingleTurn, None, Some(&tokenizer)).unwrap();
    let plain = analyze(dataset.as_ref(), FileFormat::SingleTurn, None, None).unwrap();
    let mean = |analysis: &Analysis, key: &str| {
        analysis.quantities.iter().find(|quantity| quantity.key == key).map(|quantity| quantity.stats.mean)
    };
    assert!(mean(&counted, "isl") < mean(&plain, "input_characters"));
    assert_eq!((mean(&counted, "input_characters"), mean(&plain, "isl")), (None, None));
}
