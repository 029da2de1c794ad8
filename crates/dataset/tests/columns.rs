//! Fields under other names than those of their format.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/columnar.rs"]
#[allow(unused_imports, reason = "helpers of tests, of which each test binary uses its part")]
mod files;

use std::path::Path;

use aiperf_config::{DatasetSource, EndpointKind, FileDataset, FileFormat, InputColumns};
use aiperf_dataset::{DatasetError, Note, OpenContext, Timing, first_record_timing, open};
use aiperf_tokenize::Tokenizer;
use arrow_schema::DataType;
use common::{build_all, config, context, data, written};
use files::{field, list, schema, write};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

fn columns(text: &str) -> InputColumns {
    InputColumns::parse([text]).unwrap()
}

/// Everything of a file's conversations, or why there are none.
fn opened(path: &Path, format: FileFormat, columns: &InputColumns) -> Result<Vec<String>, DatasetError> {
    let file = FileDataset { columns: columns.clone(), ..FileDataset::new(path, format) };
    let endpoint = match format {
        FileFormat::BasetenTrace => EndpointKind::Completions,
        _ => EndpointKind::Chat,
    };
    let tokenizer = Tokenizer::builtin();
    let dataset = open(&config(DatasetSource::File(file)), &OpenContext { endpoint, ..context(&tokenizer) })?;
    dataset.wait_for(u64::MAX);
    dataset.fault().map_or(Ok(()), Err)?;
    Ok(build_all(&*dataset).iter().map(|conversation| format!("{conversation:?}")).collect())
}

fn refused(path: &Path, format: FileFormat, columns: &str) -> String {
    opened(path, format, &self::columns(columns)).unwrap_err().to_string()
}

/// <https://github.com/vllm-project/guidellm/blob/main/docs/guides/datasets.md>: columns of other names took a mapping
/// in nested JSON.
#[test]
fn guidellm_datasets_columns_of_other_names_are_the_same_requests_in_lines_and_in_columns() {
    let (folder, plain) = written(
        "plain.jsonl",
        "{\"session_id\":\"a\",\"text\":\"one\",\"output_length\":3}\n{\"session_id\":\"a\",\"text\":\"two\"}\n",
    );
    let rows = [
        json!({"conversation": "a", "question": "one", "text": "not this", "tokens": 3}),
        json!({"conversation": "a", "question": "two", "text": "nor this"}),
    ];
    let lines = folder.path().join("named.jsonl");
    std::fs::write(&lines, format!("{}\n{}\n", rows[0], rows[1])).unwrap();
    let shards = folder.path().join("shards");
    std::fs::create_dir(&shards).unwrap();
    let parquet = shards.join("train-00000-of-00001.parquet");
    let schema = schema(vec![
        field("conversation", DataType::Utf8),
        field("question", DataType::Utf8),
        field("text", DataType::Utf8),
        field("tokens", DataType::Int64),
    ]);
    write(&parquet, &schema, &rows, WriterProperties::default());
    let columns = columns("text=question,session_id=conversation,output_length=tokens");
    let expected = opened(&plain, FileFormat::SingleTurn, &InputColumns::default()).unwrap();
    for path in [&lines, &parquet, &shards] {
        let found = opened(path, FileFormat::SingleTurn, &columns).unwrap();
        assert_eq!(found, expected, "{}", path.display());
        let detected = aiperf_dataset::detect(path, &columns).unwrap();
        assert_eq!((detected.format, detected.columns), (FileFormat::SingleTurn, columns.clone()));
    }
}

#[test]
fn prompts_that_are_made_are_the_same_whatever_the_names_of_the_columns() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(data("mooncake_hash.jsonl")).unwrap();
    let path = folder.path().join("d.jsonl");
    std::fs::write(&path, text.replace("\"hash_ids\"", "\"blocks\"").replace("\"timestamp\"", "\"started\""))
        .unwrap();
    let columns = columns("timestamp=started,hash_ids=blocks");
    assert_eq!(
        opened(&path, FileFormat::MooncakeTrace, &columns).unwrap(),
        opened(&data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace, &InputColumns::default()).unwrap()
    );
    let timed = Timing { timestamp: true, delay: false, promotes: true };
    assert_eq!(first_record_timing(&path, FileFormat::MooncakeTrace, &columns).unwrap(), timed);
    let detected = aiperf_dataset::detect(&path, &columns).unwrap();
    assert_eq!((detected.format, detected.timed), (FileFormat::MooncakeTrace, true));
}

#[test]
fn columns_of_a_table_may_have_other_names() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format, named) in [
        ("azure_llm.csv", FileFormat::AzureLlmTrace, "TIMESTAMP=at,ContextTokens=in,GeneratedTokens=out"),
        ("burst_gpt.csv", FileFormat::BurstGptTrace, "Timestamp=at,Request tokens=in,Response tokens=out"),
    ] {
        let columns = columns(named);
        let (path, mut text) = (folder.path().join(name), std::fs::read_to_string(data(name)).unwrap());
        for (field, column) in columns.pairs() {
            text = text.replacen(field, column, 1);
        }
        std::fs::write(&path, text).unwrap();
        assert_eq!(
            opened(&path, format, &columns).unwrap(),
            opened(&data(name), format, &InputColumns::default()).unwrap()
        );
        assert_eq!(aiperf_dataset::detect(&path, &columns).unwrap().format, format);
        let said = refused(&data(name), format, named);
        assert!(said.contains("no such column") && said.contains(name), "{said}");
    }
}

#[test]
fn columns_of_a_trace_of_completions_may_have_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let own = ["timestamp_start_unix_ms", "prompt", "input_tokens", "output_tokens", "total_hashes"];
    let other = ["started", "question", "in", "out", "blocks"];
    let [plain, named] = [("plain.parquet", own), ("named.parquet", other)].map(|(name, names)| {
        let [time, prompt, input, output, hashes] = names;
        let schema = schema(vec![
            field(time, DataType::Int64),
            field(prompt, DataType::Utf8),
            field(input, DataType::Int64),
            field(output, DataType::Int64),
            field(hashes, list(DataType::Int64)),
        ]);
        let row = |at: i64| json!({time: 1000 + at, prompt: format!("p{at}"), input: 4, output: at + 1, hashes: [at, 7]});
        let path = folder.path().join(name);
        write(&path, &schema, &(0..50).map(row).collect::<Vec<Value>>(), WriterProperties::default());
        path
    });
    let columns = columns(
        "timestamp_start_unix_ms=started,prompt=question,input_tokens=in,output_tokens=out,total_hashes=blocks",
    );
    assert_eq!(
        opened(&named, FileFormat::BasetenTrace, &columns).unwrap(),
        opened(&plain, FileFormat::BasetenTrace, &InputColumns::default()).unwrap()
    );
    let detected = aiperf_dataset::detect(&named, &columns).unwrap();
    assert_eq!((detected.format, detected.timed), (FileFormat::BasetenTrace, true));
    let said = refused(&plain, FileFormat::BasetenTrace, "prompt=question");
    assert!(said.contains("--input-columns prompt=question") && said.contains("input_tokens"), "{said}");
}

#[test]
fn common_names_are_found_where_nothing_else_fits() {
    for (row, format, found) in [
        (
            r#"{"prompt": "hi", "output_tokens": 4}"#,
            FileFormat::SingleTurn,
            "text=prompt,output_length=output_tokens",
        ),
        (r#"{"question": "hi", "id": 3}"#, FileFormat::SingleTurn, "text=question"),
        (
            r#"{"prompt": "hi", "max_tokens": 4}"#,
            FileFormat::SingleTurn,
            "text=prompt,output_length=max_tokens",
        ),
        (
            r#"{"input_tokens": 9, "completion_tokens": 4, "conversation_id": "c"}"#,
            FileFormat::MooncakeTrace,
            "input_length=input_tokens,output_length=completion_tokens,session_id=conversation_id",
        ),
    ] {
        let (_folder, path) = written("d.jsonl", row);
        let detected = aiperf_dataset::detect(&path, &InputColumns::default()).unwrap();
        assert_eq!((detected.format, detected.columns.to_string().as_str()), (format, found), "{row}");
        opened(&path, format, &detected.columns).unwrap();
    }
    // A whole body; a time in a unit that nobody knows; a prompt that is none.
    for row in [
        r#"{"model": "m", "prompt": "hi"}"#,
        r#"{"prompt": "hi", "timestamp_start_unix_ms": 17}"#,
        r#"{"prompt": [1, 2]}"#,
    ] {
        let (_folder, path) = written("d.jsonl", row);
        let error = aiperf_dataset::detect(&path, &InputColumns::default()).unwrap_err();
        assert!(matches!(error, DatasetError::Undetected(_)), "{row}: {error}");
    }
    // What fits as it is stays as it is.
    let (_folder, path) = written("d.jsonl", r#"{"text": "hi", "prompt": "ho"}"#);
    assert!(aiperf_dataset::detect(&path, &InputColumns::default()).unwrap().columns.is_empty());
}

#[test]
fn keys_that_look_like_fields_and_are_not_read_are_told_once() {
    let (single, trace) = (FileFormat::SingleTurn, FileFormat::MooncakeTrace);
    for (row, format, named, keys) in [
        (r#"{"text": "hi", "max_tokens": 5}"#, single, "", vec![("max_tokens", "output_length")]),
        (r#"{"text": "hi", "conversation_id": "c"}"#, single, "", vec![("conversation_id", "session_id")]),
        (
            r#"{"input_length": 5, "output_len": 4, "hash_id": [1]}"#,
            trace,
            "",
            vec![("output_len", "output_length"), ("hash_id", "hash_ids")],
        ),
        // What is read, what excludes what is read, what would be no field, and what is nothing like one.
        (r#"{"text": "hi", "max_tokens": 5}"#, single, "output_length=max_tokens", vec![]),
        (r#"{"text": "hi", "output_length": 4, "max_tokens": 5}"#, single, "", vec![]),
        (
            r#"{"text": "hi", "max_completion_tokens": 5}"#,
            single,
            "",
            vec![("max_completion_tokens", "output_length")],
        ),
        (r#"{"text_input": "hi", "input_tokens": 5}"#, trace, "", vec![]),
        (r#"{"text": "hi", "max_tokens": "many"}"#, single, "", vec![]),
        (r#"{"text": "hi", "id": 7}"#, single, "", vec![]),
    ] {
        let (_folder, path) = written("d.jsonl", format!("{row}\n{row}\n"));
        let columns = if named.is_empty() { InputColumns::default() } else { columns(named) };
        let file = FileDataset { columns, ..FileDataset::new(&path, format) };
        let tokenizer = Tokenizer::builtin();
        let dataset = open(&config(DatasetSource::File(file)), &context(&tokenizer)).unwrap();
        let expected: Vec<Note> =
            (!keys.is_empty()).then_some(Note::KeysNotRead { keys }).into_iter().collect();
        assert_eq!(dataset.notes(), expected, "{row}");
    }
}

#[test]
fn keys_of_bodies_that_a_record_does_not_send_are_told() {
    for (row, format, keys) in [
        (
            r#"{"text": "hi", "temperature": 0, "model": "m"}"#,
            FileFormat::SingleTurn,
            vec!["model", "temperature"],
        ),
        (r#"{"text_input": "hi", "top_p": 1}"#, FileFormat::MooncakeTrace, vec!["top_p"]),
        (r#"{"text": "hi", "extra": {"top_p": 1}, "id": 7}"#, FileFormat::SingleTurn, vec![]),
    ] {
        let (_folder, path) = written("d.jsonl", format!("{row}\n"));
        let tokenizer = Tokenizer::builtin();
        let opened =
            open(&config(DatasetSource::File(FileDataset::new(&path, format))), &context(&tokenizer));
        let notes = opened.unwrap().notes();
        let expected: Vec<Note> =
            (!keys.is_empty()).then_some(Note::KeysOfBodies { keys }).into_iter().collect();
        assert_eq!(notes, expected, "{row}");
    }
}

#[test]
fn a_field_that_no_type_has_is_named_where_the_type_is_not() {
    let (_folder, path) = written("d.jsonl", "{\"timestamp\": 1, \"input_length\": 5}\n");
    let message = aiperf_dataset::detect(&path, &columns("nope=timestamp")).unwrap_err().to_string();
    assert!(
        message.contains("--input-columns nope=timestamp: no dataset type has a field `nope`"),
        "{message}"
    );
}

#[test]
fn a_field_that_is_none_and_a_column_that_is_nowhere_are_named() {
    let (_folder, path) = written("d.jsonl", "{\"text\": \"hi\"}\n{\"text\": \"ho\", \"max\": 4}\n");
    opened(&path, FileFormat::SingleTurn, &columns("output_length=max")).unwrap();
    for (named, said) in [
        ("output_length=most", "output_length=most: no record has such a key"),
        ("reply=max", "single_turn has no field `reply`; its fields are text, texts"),
    ] {
        let message = refused(&path, FileFormat::SingleTurn, named);
        assert!(message.contains(&format!("--input-columns {said}")) || message.contains(said), "{message}");
    }
    for format in
        [FileFormat::RawPayload, FileFormat::InputsJson, FileFormat::WekaTrace, FileFormat::RandomPool]
    {
        let message = refused(&path, format, "text=prompt");
        assert!(message.contains("--input-columns") && message.contains(format.name()), "{message}");
    }
    let (_folder, path) = written("d.jsonl", "{\"gr\\u00f6\\u00dfe\": 5, \"text\": \"hi\"}\n");
    opened(&path, FileFormat::SingleTurn, &columns("output_length=größe")).unwrap();
}

#[test]
fn a_record_that_is_no_object_is_told_as_it_is() {
    for (line, said) in [("[1]", "must be a JSON object"), ("{\"question\": ", "not valid JSON")] {
        let (_folder, path) = written("d.jsonl", format!("{{\"question\": \"hi\"}}\n{line}\n"));
        let message = refused(&path, FileFormat::SingleTurn, "text=question");
        assert!(message.contains("d.jsonl:2: ") && message.contains(said), "{message}");
    }
}
