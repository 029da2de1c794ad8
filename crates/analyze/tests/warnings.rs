//! What loads and is hardly meant is a warning with its place.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use aiperf_analyze::{Validation, validate};
use aiperf_config::{DatasetConfig, DatasetSource, FileDataset, FileFormat};
use aiperf_dataset::{OpenContext, Survey, open};

fn validated(path: &Path, format: FileFormat, most: usize) -> Validation {
    let survey = Survey::new(most);
    let config = DatasetConfig::new(DatasetSource::File(FileDataset::new(path, format)));
    let opened = open(&config, &OpenContext::survey(&survey, false));
    validate(opened.as_deref(), &survey, format, most, path.is_dir()).unwrap()
}

fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// The warnings of a valid file, without its folder.
fn warned(name: &str, text: &str, format: FileFormat) -> Vec<String> {
    let (folder, path) = written(name, text);
    let validation = validated(&path, format, 10);
    assert!(validation.is_valid(), "{validation:?}");
    assert_eq!(validation.warning_count, validation.warnings.len() as u64);
    let folder = format!("{}/", folder.path().display());
    validation.warnings.iter().map(|warning| warning.text("warning: ").replace(&folder, "")).collect()
}

#[test]
fn times_that_go_back_in_a_session_are_warned_of_with_both_lines() {
    let cases = [
        (
            FileFormat::MooncakeTrace,
            "{\"session_id\":\"a\",\"input_length\":4,\"timestamp\":90}\n\
             {\"session_id\":\"b\",\"input_length\":4,\"timestamp\":10}\n\
             {\"session_id\":\"a\",\"input_length\":4,\"delay\":5}\n\
             {\"session_id\":\"a\",\"input_length\":4,\"timestamp\":40}\n\
             {\"session_id\":\"a\",\"input_length\":4,\"timestamp\":95}\n",
            "Line 4: warning: field `timestamp`: lies 50 ms before that of line 1, ",
        ),
        (
            FileFormat::SingleTurn,
            "{\"session_id\":\"a\",\"text\":\"x\",\"timestamp\":90}\n{\"session_id\":\"a\",\"text\":\"y\",\"timestamp\":40.5}\n",
            "Line 2: warning: field `timestamp`: lies 49.5 ms before that of line 1, ",
        ),
        (
            FileFormat::MultiTurn,
            "{\"turns\":[{\"text\":\"x\",\"timestamp\":9},{\"text\":\"y\",\"timestamp\":8}]}\n",
            "Line 1: warning: field `timestamp`: lies 1 ms before that of line 1, ",
        ),
    ];
    for (format, text, start) in cases {
        let warnings = warned("t.jsonl", text, format);
        assert!(warnings.len() == 1 && warnings[0].starts_with(start), "{warnings:?}");
        assert!(warnings[0].contains("leaves late") && warnings[0].contains("in the order of their times"));
    }
    let trace = "{\"id\":\"w\",\"models\":[\"m\"],\"block_size\":16,\"hash_id_scope\":\"local\",\"requests\":[\
        {\"t\":2,\"type\":\"n\",\"model\":\"m\",\"in\":16,\"out\":1,\"hash_ids\":[1]},\
        {\"t\":1.5,\"type\":\"n\",\"model\":\"m\",\"in\":32,\"out\":1,\"hash_ids\":[1,2]}]}";
    let warnings = warned("t.json", trace, FileFormat::WekaTrace);
    let start = "warning: 1 request(s) lie before the one that is listed before them (the first: t.json: requests[1])";
    assert!(warnings.len() == 1 && warnings[0].starts_with(start), "{warnings:?}");
}

#[test]
fn times_in_order_and_sessions_of_one_record_are_not_warned_of() {
    let rows = "{\"session_id\":\"a\",\"turns\":[{\"text\":\"x\",\"timestamp\":1},{\"text\":\"y\",\"timestamp\":1}]}\n\
                {\"session_id\":\"b\",\"turns\":[{\"text\":\"x\",\"timestamp\":0}]}\n{\"turns\":[{\"text\":\"z\"}]}\n";
    assert_eq!(warned("t.jsonl", rows, FileFormat::MultiTurn), Vec::<String>::new());
}

#[test]
fn records_of_multi_turn_that_become_one_conversation_are_warned_of_with_their_lines() {
    let row =
        |id: &str| format!("{{\"session_id\":\"{id}\",\"turns\":[{{\"text\":\"x\"}},{{\"text\":\"y\"}}]}}\n");
    let text = ["a", "b", "a", "", "", "a", "c", "c"].map(row).concat();
    let warnings = warned("t.jsonl", &text, FileFormat::MultiTurn);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with(
            "Line 3: warning: field `session_id`: is that of line 1, too: the turns of 3 records are sent as one"
        ),
        "{warnings:?}"
    );
    assert!(warnings[1].starts_with("Line 8: ") && warnings[1].contains("line 7, too: the turns of 2"));
}

#[test]
fn blocks_that_do_not_fit_the_length_of_a_recorded_agents_prompt_are_warned_of() {
    let request = |input: u32, ids: &str| {
        format!("{{\"t\":0,\"type\":\"n\",\"model\":\"m\",\"in\":{input},\"out\":1,\"hash_ids\":[{ids}]}}")
    };
    let inner = request(16, "1,2");
    let requests = [
        request(40, "1,2"),
        request(40, "1,2,3"),
        request(40, "1,2,3,4"),
        format!("{{\"t\":0,\"type\":\"subagent\",\"agent_id\":\"a\",\"requests\":[{inner}]}}"),
        request(48, "1,2"),
    ];
    let text = format!(
        "{{\"id\":\"w\",\"models\":[\"m\"],\"block_size\":16,\"hash_id_scope\":\"local\",\"requests\":[{}]}}",
        requests.join(",")
    );
    let warnings = warned("t.json", &text, FileFormat::WekaTrace);
    let found = |place: &str, rule: &str| {
        let start = format!("warning: t.json: {place}: field `hash_ids`: has ");
        let fits = |warning: &String| warning.starts_with(&start) && warning.contains(rule);
        assert!(warnings.iter().any(fits), "{place}: {warnings:?}");
    };
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    found(
        "requests[2]",
        "4 id(s), and the 40 tokens of `in` are 2 whole block(s) of 16: the last ids are not sent",
    );
    found("requests[4]", "2 id(s), and the 48 tokens of `in` are 3 whole block(s) of 16: what has no id");
    found("requests[3].requests[0]", "2 id(s), and the 16 tokens");
}

#[test]
fn all_warnings_are_counted_and_the_first_are_kept() {
    let row = |id: u32| format!("{{\"session_id\":\"{id}\",\"turns\":[{{\"text\":\"x\"}}]}}\n");
    let text: String = (0..40).map(|number| row(number / 2)).collect();
    let (_folder, path) = written("t.jsonl", &text);
    let validation = validated(&path, FileFormat::MultiTurn, 3);
    assert_eq!((validation.warning_count, validation.warnings.len()), (20, 3));
    assert_eq!(validation.json()["warning_count"], 20);
    assert_eq!(validation.warnings[2].line, Some(6));
}
