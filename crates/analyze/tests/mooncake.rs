//! What is said of Mooncake traces, beside what the reference says.
#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests say what they expect, exactly")]

use std::path::{Path, PathBuf};

use aiperf_analyze::{Analysis, Validation, analyze, render, to_json, validate};
use aiperf_config::{DatasetConfig, DatasetSource, FileDataset, FileFormat};
use aiperf_dataset::{DatasetError, OpenContext, Survey, open};
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn config(path: &Path, block_size: u32) -> DatasetConfig {
    let file =
        FileDataset { block_size: Some(block_size), ..FileDataset::new(path, FileFormat::MooncakeTrace) };
    DatasetConfig::new(DatasetSource::File(file))
}

fn analyzed(path: &Path, block_size: u32) -> Analysis {
    let survey = Survey::figures();
    let dataset = open(&config(path, block_size), &OpenContext::survey(&survey, false)).unwrap();
    assert_eq!(survey.faults().1, 0);
    analyze(dataset.as_ref(), FileFormat::MooncakeTrace, Some(block_size), None).unwrap()
}

fn validated(text: &str, block_size: u32, most: usize) -> Result<Validation, DatasetError> {
    let (_folder, path) = written(text);
    let survey = Survey::new(most);
    let opened = open(&config(&path, block_size), &OpenContext::survey(&survey, false));
    validate(opened.as_deref(), &survey, FileFormat::MooncakeTrace, most, false)
}

/// Every figure of the reference's report is in ours, the same to the last digits.
fn assert_same(theirs: &Value, ours: &Value, at: &str) {
    match theirs {
        Value::Object(map) => {
            for (key, value) in map {
                assert_same(value, &ours[key], &format!("{at}.{key}"));
            }
        }
        Value::Number(_) => {
            let (theirs, ours) = (theirs.as_f64().unwrap(), ours.as_f64().unwrap());
            assert!((theirs - ours).abs() <= 1e-12 * theirs.abs().max(1.0), "{at}: {theirs} {ours}");
        }
        other => assert_eq!(other, ours, "{at}"),
    }
}

#[test]
fn figures_equal_those_of_the_reference() {
    let ours = to_json(&analyzed(&data("shared_blocks.jsonl"), 10));
    let theirs: Value =
        serde_json::from_slice(&std::fs::read(data("shared_blocks.reference.json")).unwrap()).unwrap();
    assert_same(&theirs, &ours, "");
    assert!(theirs["min_isl"].is_u64() && ours["min_isl"].is_u64());
}

#[test]
fn rows_without_lengths_and_blocks_have_no_hit_rate_and_count_as_nothing() {
    let (_folder, path) = written("{\"text_input\":\"\u{e9}t\u{e9}\"}\n{\"text_input\":\"no\"}\n");
    let analysis = analyzed(&path, 512);
    let json = to_json(&analysis);
    assert_eq!((&json["hit_rate_stats"], &json["avg_isl"]), (&Value::Null, &0.0.into()));
    assert_eq!(json["input_characters_stats"]["max"], 3.0);
    for absent in ["delay_ms_stats", "span_ms", "rates", "working_set_blocks", "rows"] {
        assert_eq!(json.get(absent), None, "{absent}");
    }
}

#[test]
fn what_no_row_records_is_no_figure_of_0_for_people_and_what_some_lack_is_said() {
    let texts = "{\"text_input\":\"one\"}\n{\"text_input\":\"two\"}\n";
    let (_folder, path) = written(texts);
    let analysis = analyzed(&path, 512);
    let shown = render(&analysis);
    for name in ["Input Length", "Context Length", "Unique Prompt Length", "Output Length"] {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with("N/A") && !line.contains("0.00"), "{shown}");
    }
    assert!(!shown.contains("counts as 0"), "{shown}");
    let json = to_json(&analysis);
    assert_eq!(
        (&json["rows_without_input_length"], &json["rows_without_output_length"]),
        (&2.into(), &2.into())
    );

    let (_folder, path) = written(&format!("{texts}{{\"input_length\":6,\"output_length\":0}}\n"));
    let analysis = analyzed(&path, 512);
    let shown = render(&analysis);
    for what in ["input", "output"] {
        assert!(
            shown.contains(&format!("\n2 rows record no {what} length, which counts as 0 above\n")),
            "{shown}"
        );
    }
    assert_eq!(to_json(&analysis)["avg_isl"], 2.0);
    let (_folder, path) = written("{\"input_length\":6,\"output_length\":0}\n");
    assert!(!render(&analyzed(&path, 512)).contains("record no"));
}

#[test]
fn incremental_sessions_show_both_rates_and_say_which_is_which() {
    // Each later row says only what is new; the requests repeat all of it.
    let row = |session: u32, turn: u32| {
        let time = if turn == 0 { "\"timestamp\":0".to_owned() } else { "\"delay\":50".to_owned() };
        let first = session * 100 + turn * 2;
        format!(
            "{{\"session_id\":\"s{session}\",{time},\"input_length\":20,\"output_length\":10,\"hash_ids\":[{},{}]}}\n",
            first,
            first + 1
        )
    };
    let text: String = (0..5).flat_map(|session| (0..20).map(move |turn| row(session, turn))).collect();
    let (_folder, path) = written(&text);
    let analysis = analyzed(&path, 10);
    let mooncake = analysis.mooncake.as_ref().unwrap();
    assert_eq!(mooncake.hit_rate.unwrap().mean, 0.0);
    // Turn t sends 3t + 2 blocks, of which the request before sent 3t - 1.
    let (hits, blocks) =
        (1..20).fold((0, 2), |(hits, blocks), turn| (hits + 3 * turn - 1, blocks + 3 * turn + 2));
    let cumulative = analysis.cumulative.unwrap();
    assert_eq!(cumulative.by_block, f64::from(hits) / f64::from(blocks));
    assert!(cumulative.by_block > 0.85);
    let contexts = analysis.quantities.iter().find(|quantity| quantity.key == "cumulative_isl").unwrap();
    assert_eq!(contexts.stats.max, 19.0 * 30.0 + 20.0);
    let text = render(&analysis);
    assert!(text.contains("Infinite cache, by block") && text.contains("over the whole contexts"), "{text}");
    assert_eq!(to_json(&analysis)["turns_per_conversation_stats"]["mean"], 20.0);
}

#[test]
fn times_are_those_of_the_trace() {
    let rows = [0, 500, 900, 61_000].map(|time| format!("{{\"timestamp\":{time},\"input_length\":5}}\n"));
    let (_folder, path) = written(&rows.concat());
    let analysis = analyzed(&path, 512);
    assert_eq!(analysis.span_ms, Some(61_000.0));
    let rates = analysis.rates.unwrap();
    assert_eq!((rates.peak_1s, rates.peak_60s), (Some(3.0), Some(0.05)));
    let gaps = analysis.quantities.iter().find(|quantity| quantity.key == "inter_arrival_ms").unwrap();
    assert_eq!((gaps.stats.min, gaps.stats.max), (400.0, 60_100.0));
}

#[test]
fn the_report_fits_80_columns() {
    let text = render(&analyzed(&data("shared_blocks.jsonl"), 10));
    assert!(text.lines().all(|line| line.chars().count() <= 80 && line.is_ascii()), "{text}");
}

#[test]
fn every_bad_row_is_counted_and_the_first_are_shown_with_their_lines() {
    let mut text = "{\"input_length\":5}\n\n[1]\nnope\n{\"input_length\":-1}\n".to_owned();
    text.push_str(&"{\"input_length\":1,\"text_input\":\"x\"}\n".repeat(20));
    let validation = validated(&text, 512, 3).unwrap();
    assert_eq!((validation.rows, validation.count), (24, 23));
    let lines: Vec<Option<u64>> = validation.errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [Some(3), Some(4), Some(5)]);
    assert_eq!(validation.json()["errors"][2]["field"], "input_length");
    assert!(validation.errors[1].text("").starts_with("Line 4: not valid JSON"));
}

#[test]
fn what_a_replay_changes_is_a_warning_and_what_no_clock_shows_an_error() {
    let text = "{\"input_length\":0,\"output_length\":0}\n{\"input_length\":7,\"timestamp\":-3}\n";
    let validation = validated(text, 512, 10).unwrap();
    assert_eq!((validation.count, validation.warning_count), (1, 2));
    assert_eq!(
        validation.errors[0].text(""),
        "Line 2: field `timestamp`: must be 0 or more milliseconds, is -3"
    );
    assert_eq!(
        validation.warnings[0].text("warning: "),
        "Line 1: warning: field `output_length`: is below 1; a replay asks for 1 token"
    );
}

#[test]
fn blocks_must_fit_the_length_and_each_other_and_may_leave_a_tail() {
    let ok = "{\"input_length\":25,\"hash_ids\":[1,2]}\n{\"input_length\":40,\"hash_ids\":[1,2]}";
    assert!(validated(ok, 10, 10).unwrap().count == 0);
    for (bad, words) in [
        ("{\"input_length\":10,\"hash_ids\":[1,2]}", "do not fit"),
        ("{\"input_length\":0,\"hash_ids\":[1]}", "must be above 0"),
        ("{\"input_length\":15,\"hash_ids\":[1,2]}\n{\"input_length\":20,\"hash_ids\":[1,2]}", "earlier row"),
    ] {
        let validation = validated(bad, 10, 10).unwrap();
        assert_eq!(validation.count, 1, "{bad}");
        assert!(validation.errors[0].message.contains(words), "{}", validation.errors[0].message);
    }
    // Figures need no blocks that fit.
    let (_folder, path) = written("{\"input_length\":10,\"hash_ids\":[1,2]}");
    assert_eq!(analyzed(&path, 10).mooncake.unwrap().unique_prefixes, 2);
}

#[test]
fn an_empty_file_is_no_valid_trace() {
    assert!(validated("\n\n", 512, 10).unwrap_err().to_string().contains("no records"));
}
