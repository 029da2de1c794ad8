//! The same records, however they are stored, are the same requests: JSONL, compressed, parquet, shards.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
#[path = "common/columnar.rs"]
mod files;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::{DatasetSource, EndpointKind, FileDataset, FileFormat, Sampling};
use aiperf_dataset::{DatasetError, Len, Note, NoteLevel, Timing, open};
use aiperf_tokenize::Tokenizer;
use arrow_schema::{DataType, Schema};
use common::*;
use files::*;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use serde_json::{Value, json};

/// Everything of a conversation, times included.
fn all(path: &Path, format: FileFormat) -> Vec<String> {
    let dataset = load(path, format).unwrap_or_else(|error| panic!("{error}"));
    dataset.wait_for(u64::MAX);
    assert_eq!(dataset.fault(), None);
    build_all(&*dataset).iter().map(|conversation| format!("{conversation:?}")).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Keys in the order of the schema, since objects keep theirs.
fn jsonl(schema: &Schema, rows: &[Value]) -> String {
    let line = |row: &Value| {
        let keys = schema
            .fields()
            .iter()
            .filter_map(|field| Some((field.name().clone(), row.get(field.name())?.clone())));
        without_nulls(&Value::Object(keys.collect())).to_string() + "\n"
    };
    rows.iter().map(line).collect()
}

fn small() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_data_page_row_count_limit(10).set_max_row_group_row_count(Some(30))
}

/// The rows stored in every way that is read, each with a name for messages.
fn stored(folder: &Path, schema: &Arc<Schema>, rows: &[Value]) -> Vec<PathBuf> {
    let text = jsonl(schema, rows);
    let mut paths = Vec::new();
    let mut put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    };
    put("a.jsonl", text.as_bytes());
    put("blank_lines.jsonl", format!("\u{feff}\n{}", text.replace('\n', "\r\n\r\n")).as_bytes());
    put("a.jsonl.gz", &gzip(text.as_bytes()));
    put("gzip_by_content.txt", &gzip(text.as_bytes()));
    put("a.jsonl.zst", &zstd::encode_all(text.as_bytes(), 3).unwrap());
    let (first, second) = text.split_at(text.len() / 3);
    let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    put("members.gz", &members);
    let frames = [first, second].map(|part| zstd::encode_all(part.as_bytes(), 1).unwrap()).concat();
    put("frames.zst", &frames);
    put("skippable.zst", &[&b"\x5a\x2a\x4d\x18\x03\0\0\0abc"[..], &frames].concat());
    for (name, properties) in [
        ("one_group.parquet", WriterProperties::builder()),
        ("many_groups.parquet", small()),
        ("no_dictionary.parquet", small().set_dictionary_enabled(false)),
        ("by_magic.data", WriterProperties::builder().set_compression(Compression::SNAPPY)),
        (
            "gzip.parquet",
            WriterProperties::builder()
                .set_compression(Compression::GZIP(parquet::basic::GzipLevel::default())),
        ),
        (
            "zstd.parquet",
            WriterProperties::builder()
                .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::default())),
        ),
        ("lz4.parquet", WriterProperties::builder().set_compression(Compression::LZ4_RAW)),
        (
            "brotli.parquet",
            WriterProperties::builder()
                .set_compression(Compression::BROTLI(parquet::basic::BrotliLevel::default())),
        ),
        (
            "v2.PARQUET",
            small().set_writer_version(WriterVersion::PARQUET_2_0).set_offset_index_disabled(true),
        ),
    ] {
        let path = folder.join(name);
        write(&path, schema, rows, properties.build());
        paths.push(path);
    }
    let shards = folder.join("shards");
    std::fs::create_dir(&shards).unwrap();
    let parts: Vec<&[Value]> = rows.chunks(rows.len().div_ceil(3)).collect();
    for (number, part) in parts.iter().enumerate() {
        let path = shards.join(format!("train-{number:05}-of-{:05}.parquet", parts.len()));
        write(&path, schema, part, small().build());
    }
    write(&shards.join("test-00000-of-00001.parquet"), schema, &rows[..1], small().build());
    std::fs::write(shards.join("README.md"), "# Shards").unwrap();
    std::fs::write(shards.join("_SUCCESS"), "").unwrap();
    paths.push(shards);
    paths
}

fn same_however_stored(format: FileFormat, schema: &Arc<Schema>, rows: &[Value]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = stored(folder.path(), schema, rows);
    let expected = all(&paths[0], format);
    assert!(!expected.is_empty());
    for path in &paths[1..] {
        let found = all(path, format);
        assert!(
            found == expected,
            "{}: {:#?}",
            path.display(),
            found.iter().zip(&expected).find(|(a, b)| a != b)
        );
    }
}

/// The same strings in each of their layouts.
fn string_layouts() -> Vec<DataType> {
    vec![
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ]
}

#[test]
fn single_turn_records_are_the_same_requests_however_they_are_stored() {
    for string in string_layouts() {
        let schema = schema(vec![
            field("text", string.clone()),
            field(
                "texts",
                list(object(vec![field("name", string.clone()), field("contents", list(string.clone()))])),
            ),
            field("images", list(string.clone())),
            field("session_id", string.clone()),
            field("output_length", DataType::Int32),
            field("delay", DataType::Float64),
            field(
                "extra",
                object(vec![field("temperature", DataType::Float64), field("seed", DataType::UInt64)]),
            ),
            field("unknown", string.clone()),
        ]);
        let rows: Vec<Value> = (0..100)
            .map(|number| match number % 4 {
                0 => json!({"text": format!("tëxt \"{number}\"\n"), "output_length": number + 1, "unknown": "u"}),
                1 => json!({"text": "again", "session_id": format!("s{}", number % 8), "delay": 0.1}),
                2 => json!({"texts": [{"name": null, "contents": ["a", "b"]}], "extra": {"temperature": 0.7, "seed": null}}),
                _ => json!({"text": "t", "images": ["http://host/a.png"], "extra": {"temperature": null, "seed": u64::MAX}}),
            })
            .collect();
        same_however_stored(FileFormat::SingleTurn, &schema, &rows);
    }
}

#[test]
fn multi_turn_records_are_the_same_requests_however_they_are_stored() {
    for string in string_layouts() {
        let turn = object(vec![
            field("role", string.clone()),
            field("text", string.clone()),
            field("delay", DataType::Int64),
            field("extra", object(vec![field("top_p", DataType::Float32)])),
        ]);
        let schema = schema(vec![field("session_id", string.clone()), field("turns", list(turn))]);
        let rows: Vec<Value> = (0..80)
            .map(|number| {
                let turns: Vec<Value> = (0..=number % 5)
                    .map(|turn| match turn {
                        0 => json!({"role": "system", "text": "be brief", "delay": null, "extra": null}),
                        1 => json!({"text": format!("turn {number}"), "extra": {"top_p": 0.1}}),
                        _ => json!({"text": "more", "delay": turn * 10}),
                    })
                    .collect();
                json!({"session_id": if number % 3 == 0 { Value::Null } else { json!(format!("s{}", number % 9)) }, "turns": turns})
            })
            .collect();
        same_however_stored(FileFormat::MultiTurn, &schema, &rows);
    }
}

#[test]
fn prompts_of_hash_ids_and_lengths_are_the_same_however_they_are_stored() {
    let schema = schema(vec![
        field("timestamp", DataType::Int64),
        field("session_id", DataType::Utf8),
        field("input_length", DataType::Int32),
        field("output_length", DataType::Int16),
        field("hash_ids", list(DataType::Int64)),
        field("note", DataType::Utf8),
        field("priority", DataType::Float64),
    ]);
    let rows: Vec<Value> = (0..120)
        .map(|number| match number % 3 {
            0 => json!({"timestamp": number * 10, "input_length": 1100, "hash_ids": [number % 5, 100 + number % 2, 1000 + number], "output_length": 20}),
            1 => json!({"timestamp": number * 10, "input_length": 20 + number, "note": "n"}),
            _ => json!({"timestamp": number * 10, "session_id": format!("s{}", number % 4), "input_length": 33, "priority": 1.5}),
        })
        .collect();
    same_however_stored(FileFormat::MooncakeTrace, &schema, &rows);
}

#[test]
fn messages_with_tools_are_the_same_however_they_are_stored() {
    let parameters = object(vec![field("type", DataType::Utf8), field("required", list(DataType::Utf8))]);
    let function = object(vec![field("name", DataType::Utf8), field("parameters", parameters)]);
    let schema = schema(vec![
        field(
            "messages",
            list(object(vec![field("role", DataType::Utf8), field("content", DataType::Utf8)])),
        ),
        field("tools", list(object(vec![field("type", DataType::Utf8), field("function", function)]))),
        field("extra", object(vec![field("tool_choice", DataType::Utf8)])),
    ]);
    let rows: Vec<Value> = (0..40)
        .map(|number| {
            let mut row = json!({"messages": [{"role": "user", "content": format!("hello {number}")}, {"role": "assistant", "content": null}]});
            if number % 2 == 0 {
                row["tools"] = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["a", null]}}}]);
                row["extra"] = json!({"tool_choice": if number % 4 == 0 { json!("auto") } else { Value::Null }});
            }
            row
        })
        .collect();
    same_however_stored(FileFormat::MooncakeTrace, &schema, &rows);
}

#[test]
fn chats_of_a_trace_are_the_same_requests_however_they_are_stored() {
    let schema = schema(vec![
        field("chat_id", DataType::Int64),
        field("parent_chat_id", DataType::Int64),
        field("timestamp", DataType::Float64),
        field("input_length", DataType::Int64),
        field("output_length", DataType::UInt16),
        field("type", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))),
        field("turn", DataType::Int8),
        field("hash_ids", DataType::LargeList(Arc::new(field("element", DataType::Int64)))),
    ]);
    let rows: Vec<Value> = (0..90)
        .map(|number| {
            let (parent, turn) = if number % 3 == 0 { (-1, 1) } else { (499 + number, number % 3 + 1) };
            json!({
                "chat_id": 500 + number, "parent_chat_id": parent, "timestamp": f64::from(number) / 8.0, "type": "text",
                "input_length": 33, "output_length": 4, "turn": turn, "hash_ids": [1, 10 + number % 4, 100 + number],
            })
        })
        .collect();
    same_however_stored(FileFormat::BailianTrace, &schema, &rows);
}

#[test]
fn questions_are_the_same_requests_however_they_are_stored() {
    let message = object(vec![field("role", DataType::Utf8), field("content", DataType::LargeUtf8)]);
    let schema = schema(vec![
        field("question_id", DataType::Utf8),
        field("category", DataType::Utf8),
        field("source", DataType::Int64),
        field("messages", list(message)),
    ]);
    let rows: Vec<Value> = (0..60)
        .map(|number| {
            json!({
                "question_id": format!("{number:032}"), "category": if number % 2 == 0 { "coding" } else { "math" },
                "messages": [{"role": "user", "content": format!("question {number}")}, {"role": "user", "content": "and?"}],
            })
        })
        .collect();
    same_however_stored(FileFormat::SpeedBenchCoding, &schema, &rows);
    same_however_stored(FileFormat::SpeedBenchQualitative, &schema, &rows);
}

#[test]
fn padded_nulls_are_gone_at_every_depth() {
    let dataset = load(data("parquet/multi_turn.parquet"), FileFormat::MultiTurn).unwrap();
    let conversations = build_all(&*dataset);
    assert_eq!(conversations.len(), 2);
    assert_eq!(&*conversations[0].id, "orchard");
    let sent = usize::from(conversations[0].system_message.is_some()) + conversations[0].turns.len();
    assert_eq!((sent, conversations[1].turns.len()), (3, 1));
    let first = &conversations[0].turns[0];
    assert_eq!(serde_json::to_string(&first.extra_body).unwrap(), r#"{"temperature":0.1}"#);
    let second = &conversations[1].turns[0].extra_body;
    assert_eq!(serde_json::to_string(second).unwrap(), r#"{"seed":4}"#);
}

#[test]
fn of_a_folder_of_shards_train_is_read_and_the_log_says_what_is_not() {
    let path = data("parquet/mooncake_shards");
    let source = FileDataset { block_size: Some(32), ..file(&path, FileFormat::MooncakeTrace) };
    let dataset = open(&config(DatasetSource::File(source)), &context(&Tokenizer::builtin())).unwrap();
    assert_eq!(dataset.len(), Len::Exact(3));
    assert!(!format!("{:?}", build_all(&*dataset)).contains("must-not-load"));
    let note = dataset.notes().into_iter().find(|note| matches!(note, Note::SplitsDropped { .. })).unwrap();
    assert_eq!((note.level(), note.to_string().contains("test")), (NoteLevel::Info, true));
    assert_eq!(detect(&path).unwrap().format, FileFormat::MooncakeTrace);
}

/// The page on published traces: such columns are named instead of being written as some text.
#[test]
fn published_traces_columns_and_numbers_without_a_json_form_are_rejected_by_name() {
    for (file, what) in [
        ("timestamp", "timestamp"),
        ("binary", "binary"),
        ("decimal", "decimal"),
        ("map", "map"),
        ("nan", "NaN"),
    ] {
        let path = data(&format!("parquet/bad_{file}.parquet"));
        for format in [FileFormat::SingleTurn, FileFormat::MooncakeTrace] {
            let message = load(&path, format).err().unwrap().to_string();
            // A record of the other format is bad before its number is looked at.
            if file != "nan" || message.contains("odd_column") {
                assert!(message.contains("odd_column") && message.contains(what), "{message}");
                assert!(message.contains(&format!("bad_{file}.parquet")), "{message}");
            }
        }
        let message = detect(&path).unwrap_err().to_string();
        assert!(message.contains("odd_column"), "{message}");
    }
}

#[test]
fn a_bad_record_is_named_by_row_and_column() {
    let (folder, _) = written("x", "");
    let schema = schema(vec![field("text", DataType::Utf8), field("output_length", DataType::Int64)]);
    let rows: Vec<Value> = (0..50)
        .map(|number| json!({"text": "a", "output_length": if number == 41 { 0 } else { 5 }}))
        .collect();
    let path = folder.path().join("a.parquet");
    write(&path, &schema, &rows, small().build());
    let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("a.parquet: row 42: field `output_length`"), "{message}");
    // The same in the second shard of a folder: its own row.
    let shards = folder.path().join("shards");
    std::fs::create_dir(&shards).unwrap();
    write(&shards.join("a.parquet"), &schema, &rows[..30], small().build());
    write(&shards.join("b.parquet"), &schema, &rows[30..], small().build());
    let message = load(&shards, FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("b.parquet: row 12: "), "{message}");
}

#[test]
fn a_number_that_is_none_is_found_in_columns_that_no_format_reads() {
    let (folder, _) = written("x", "");
    let schema = schema(vec![field("text", DataType::Utf8), field("score", DataType::Float64)]);
    let mut rows = vec![json!({"text": "a", "score": 1.0}); 200];
    rows[150]["score"] = Value::Null;
    let good = batch(&schema, &rows);
    let scores: arrow_array::Float64Array =
        (0..200).map(|number| if number == 150 { f64::INFINITY } else { 1.0 }).collect();
    let bad =
        arrow_array::RecordBatch::try_new(schema, vec![good.column(0).clone(), Arc::new(scores)]).unwrap();
    let path = folder.path().join("a.parquet");
    write_batch(&path, &good, small().build());
    assert_eq!(load(&path, FileFormat::SingleTurn).unwrap().len(), Len::Exact(200));
    write_batch(&path, &bad, small().build());
    let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("row 151: field `score`: is infinity"), "{message}");
}

#[test]
fn a_long_parquet_file_is_usable_while_it_is_read() {
    let (folder, _) = written("x", "");
    let schema = schema(vec![field("text", DataType::Utf8), field("session_id", DataType::Utf8)]);
    let rows: Vec<Value> = (0..30_000).map(|number| json!({"text": format!("row {number}")})).collect();
    let path = folder.path().join("a.parquet");
    write(
        &path,
        &schema,
        &rows,
        WriterProperties::builder().set_max_row_group_row_count(Some(10_000)).build(),
    );
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    assert!(dataset.len().known() >= 1000);
    assert_eq!(text(&dataset.build(17).unwrap().turns[0]), "row 17");
    assert_eq!(dataset.wait_for(u64::MAX), Len::Exact(30_000));
    for index in [0, 29_999, 9_999, 10_000, 12_345] {
        assert_eq!(text(&dataset.build(index).unwrap().turns[0]), format!("row {index}"));
    }
    // A session id far into the file: the footer says that there is one somewhere.
    let mut rows = rows;
    rows[25_000]["session_id"] = json!("s");
    rows[25_001]["session_id"] = json!("s");
    write(&path, &schema, &rows, WriterProperties::default());
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    assert_eq!(dataset.len(), Len::Exact(29_999));
    assert_eq!(dataset.build(25_000).unwrap().turns.len(), 2);
    // Other orders than the file's wait for all of it.
    let mut config = config(DatasetSource::File(file(&path, FileFormat::SingleTurn)));
    config.sampling = Sampling::Random;
    assert_eq!(open(&config, &context(&Tokenizer::builtin())).unwrap().len(), Len::Exact(29_999));
}

#[test]
fn the_first_row_of_the_first_shard_is_the_first_record() {
    let (folder, _) = written("x", "");
    let shards = folder.path().join("shards");
    std::fs::create_dir(&shards).unwrap();
    let schema = schema(vec![field("input_length", DataType::Int64), field("timestamp", DataType::Int64)]);
    write(&shards.join("b.parquet"), &schema, &[json!({"input_length": 5, "timestamp": 5})], small().build());
    write(&shards.join("a.parquet"), &schema, &[json!({"input_length": 5})], small().build());
    let timing = |path: &Path| first_record_timing(path, FileFormat::MooncakeTrace).unwrap();
    assert_eq!(timing(&shards), Timing { timestamp: false, delay: false, promotes: true });
    assert_eq!(timing(&shards.join("b.parquet")), Timing { timestamp: true, delay: false, promotes: true });
    assert!(!detect(&shards).unwrap().timed);
    assert!(detect(&shards.join("b.parquet")).unwrap().timed);
}

#[test]
fn a_folder_of_several_splits_without_train_is_an_error() {
    let (folder, _) = written("README.md", "");
    let schema = schema(vec![field("text", DataType::Utf8)]);
    for split in ["dev", "eval"] {
        let path = folder.path().join(format!("{split}-00000-of-00001.parquet"));
        write(&path, &schema, &[json!({"text": "a"})], small().build());
    }
    for error in
        [load(folder.path(), FileFormat::SingleTurn).err().unwrap(), detect(folder.path()).unwrap_err()]
    {
        let message = error.to_string();
        assert!(
            message.contains("holds the splits dev, eval") && message.contains("Use one split's shard"),
            "{message}"
        );
    }
    std::fs::remove_file(folder.path().join("dev-00000-of-00001.parquet")).unwrap();
    assert_eq!(load(folder.path(), FileFormat::SingleTurn).unwrap().len(), Len::Exact(1));
    std::fs::write(folder.path().join("more.jsonl"), "").unwrap();
    let message = load(folder.path(), FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("more.jsonl"), "{message}");
}

#[test]
fn parquet_is_read_by_the_formats_of_the_shared_reader() {
    let read = ["single_turn", "multi_turn", "mooncake_trace", "bailian_trace", "baseten_trace"];
    for format in aiperf_dataset::formats() {
        let expected = read.contains(&format.name()) || format.name().starts_with("speed_bench");
        assert_eq!(format.parquet, expected, "{}", format.name());
    }
}

#[test]
fn the_output_folder_of_another_program_is_read_as_it_is() {
    let (folder, _) = written("_SUCCESS", "");
    let schema = schema(vec![field("text", DataType::Utf8)]);
    for (part, text) in ["first", "second"].iter().enumerate() {
        let name = format!("part-{part:05}-4f2a-c000.snappy.parquet");
        write(&folder.path().join(&name), &schema, &[json!({"text": text})], small().build());
        std::fs::write(folder.path().join(format!(".{name}.crc")), [0, 255]).unwrap();
    }
    for name in ["_committed_12", "_started_12", "_metadata", "_common_metadata", "README.md", "aiperf.json"]
    {
        std::fs::write(folder.path().join(name), "{}").unwrap();
    }
    std::fs::create_dir(folder.path().join("_delta_log")).unwrap();
    let dataset = load(folder.path(), FileFormat::SingleTurn).unwrap();
    let texts: Vec<String> = build_all(&*dataset).iter().map(|one| text(&one.turns[0]).to_owned()).collect();
    assert_eq!((texts, dataset.notes()), (vec!["first".into(), "second".into()], Vec::new()));
    assert_eq!(detect(folder.path()).unwrap().format, FileFormat::SingleTurn);
}

#[test]
fn arrow_files_are_for_baseten_alone() {
    let (folder, _) = written("x", "");
    let path = folder.path().join("a.arrow");
    let schema = schema(vec![field("text", DataType::Utf8)]);
    write_arrow(&path, &schema, &[json!({"text": "a"})], 1);
    let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("Arrow") && message.contains("baseten_trace"), "{message}");
}

#[test]
fn a_parquet_name_without_parquet_content_is_told() {
    let (_folder, path) = written("a.parquet", "{\"text\": \"a\"}\n");
    let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("a.parquet") && message.contains("PAR1"), "{message}");
}

#[test]
fn an_empty_parquet_file_has_nothing_to_send() {
    let (folder, _) = written("x", "");
    let path = folder.path().join("a.parquet");
    let schema = schema(vec![field("text", DataType::Utf8)]);
    write(&path, &schema, &[], small().build());
    for error in [load(&path, FileFormat::SingleTurn).err().unwrap(), detect(&path).unwrap_err()] {
        assert!(matches!(error, DatasetError::Empty(_)), "{error}");
    }
}

#[test]
fn a_file_that_changes_during_the_run_is_an_error() {
    let (folder, _) = written("x", "");
    let path = folder.path().join("a.parquet");
    let schema = schema(vec![field("text", DataType::Utf8)]);
    let rows: Vec<Value> = (0..2000).map(|number| json!({"text": format!("row {number}")})).collect();
    write(&path, &schema, &rows, small().build());
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    dataset.wait_for(u64::MAX);
    write(&path, &schema, &rows[..5], small().build());
    let message = dataset.build(1500).unwrap_err().to_string();
    assert!(message.contains("a.parquet") && message.contains("changed"), "{message}");
}

#[test]
fn limits_endpoints_and_windows_act_on_rows_as_on_lines() {
    let (folder, _) = written("x", "");
    let path = folder.path().join("a.parquet");
    let schema = schema(vec![field("input_length", DataType::Int64), field("timestamp", DataType::Float64)]);
    let rows: Vec<Value> = (0..300).map(|number| json!({"input_length": 5, "timestamp": number})).collect();
    write(&path, &schema, &rows, small().build());
    let dataset = schedule_within(&path, FileFormat::MooncakeTrace, (Some(10.0), Some(19.0))).unwrap();
    assert_eq!(dataset.len(), Len::Exact(10));
    assert_eq!(dataset.outline(0).first_timestamp_ms(), Some(10.0));
    let source = FileDataset { entries: Some(70), ..file(&path, FileFormat::MooncakeTrace) };
    let dataset = open(&config(DatasetSource::File(source)), &context(&Tokenizer::builtin())).unwrap();
    assert_eq!(dataset.wait_for(u64::MAX), Len::Exact(70));
    assert!(load_for(&path, FileFormat::MooncakeTrace, EndpointKind::Completions).is_ok());
}

#[test]
fn a_file_that_makes_the_decoder_panic_is_a_damaged_file() {
    let message =
        load(data("parquet/decoder_gives_up.parquet"), FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(message.contains("decoder_gives_up.parquet") && message.contains("damaged"), "{message}");
    assert!(!aiperf_dataset::panic_is_caught());
}
