//! What is refused, and what the message says: file, line, field, rule, next step.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::Write as _;
use std::path::Path;

use aiperf_config::{DatasetSource, EndpointKind, FileDataset, FileFormat, Sampling};
use aiperf_dataset::{DatasetError, Files, OpenContext, open};
use aiperf_tokenize::Tokenizer;
use common::*;

/// Checks that a file of `lines` is refused and that the message has all `parts`.
#[track_caller]
fn refused(format: FileFormat, lines: &[&str], parts: &[&str]) {
    let message = refusal(format, lines);
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    assert!(!message.ends_with('.'), "{message}");
}

const GOOD: &str = r#"{"text": "fine"}"#;

#[test]
fn a_bad_line_is_named_with_the_parsers_reason() {
    let lines = [GOOD, GOOD, GOOD, GOOD, GOOD, GOOD, "not json"];
    refused(
        FileFormat::SingleTurn,
        &lines,
        &["d.jsonl:7: ", "not valid JSON: a word that is none of true, false and null (column 2)"],
    );
    refused(FileFormat::SingleTurn, &["", "  ", "{\"text\": }"], &["d.jsonl:3: ", "not valid JSON"]);
    refused(FileFormat::SingleTurn, &[r#"{"text": NaN}"#], &["d.jsonl:1: ", "not valid JSON"]);
}

#[test]
fn records_must_be_objects() {
    for format in [
        FileFormat::SingleTurn,
        FileFormat::MultiTurn,
        FileFormat::RandomPool,
        FileFormat::MooncakeTrace,
        FileFormat::RawPayload,
    ] {
        refused(format, &["[1, 2]"], &["d.jsonl:1: ", "must be a JSON object, found a list"]);
        refused(format, &["\"text\""], &["d.jsonl:1: ", "found a string"]);
    }
    refused(FileFormat::InputsJson, &["[1, 2]"], &["d.jsonl: ", "expected an object", "found a list"]);
}

fn files(format: FileFormat) -> Files {
    aiperf_dataset::format(format).files
}

#[test]
fn empty_files_are_named() {
    for format in every_format().filter(|format| files(*format) != Files::Parquet) {
        for text in ["", "\n  \n", "\u{feff}\n"] {
            let (_folder, path) = written("d.jsonl", text);
            let error = load(&path, format).err().unwrap();
            assert!(matches!(error, DatasetError::Empty(_)), "{format:?}: {error}");
            assert!(error.to_string().contains("d.jsonl"), "{error}");
        }
    }
}

#[test]
fn text_must_be_utf8() {
    // The first line of a table is its columns, which are other ones here.
    for format in every_format().filter(|format| matches!(files(*format), Files::Jsonl | Files::Json)) {
        let (_folder, path) = written("d.jsonl", b"{\"text\": \"\xff\xfe\"}\n");
        let message = load(&path, format).err().unwrap().to_string();
        assert!(message.contains("not valid UTF-8") && message.contains("d.jsonl"), "{format:?}: {message}");
    }
}

#[test]
fn a_missing_path_is_named_with_the_dataset_and_what_to_do() {
    let missing =
        "no/such/trace.jsonl does not exist; check the path: a relative one starts at the working directory";
    let declared = load("no/such/trace.jsonl", FileFormat::MooncakeTrace).err().unwrap();
    assert_eq!(declared.to_string(), format!("dataset mooncake_trace: {missing}"));
    let detected = detect(Path::new("no/such/trace.jsonl")).unwrap_err();
    assert_eq!(detected.to_string(), missing);
}

#[test]
fn a_folder_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for format in
        [FileFormat::SingleTurn, FileFormat::MultiTurn, FileFormat::MooncakeTrace, FileFormat::InputsJson]
    {
        let message = load(folder.path(), format).err().unwrap().to_string();
        assert!(message.contains("it is a directory") && message.contains(format.name()), "{message}");
    }
    for format in [FileFormat::RandomPool, FileFormat::RawPayload] {
        let message = load(folder.path(), format).err().unwrap().to_string();
        assert!(message.contains("the folder has no"), "{message}");
    }
}

#[test]
fn an_unreadable_file_is_named() {
    // A path through a file can be read by nobody, not even by root.
    let (_folder, path) = written("d.jsonl", GOOD);
    let error = load(path.join("inner.jsonl"), FileFormat::SingleTurn).err().unwrap();
    assert!(matches!(error, DatasetError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("d.jsonl/inner.jsonl"), "{error}");
}

/// A pipe ends once, and one without a writer is waited for without end; `/dev/zero` never ends.
#[test]
fn pipes_and_devices_are_refused_without_reading() {
    for path in ["/dev/zero", "/dev/null"] {
        let message = load(path, FileFormat::SingleTurn).err().unwrap().to_string();
        assert!(message.contains(path) && message.contains("save it to a file"), "{message}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn damaged_gzip_is_named() {
    let lines = "{\"text\": \"some words that repeat\"}
"
    .repeat(1000);
    let whole = gzip(lines.as_bytes());
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0xff;
    for bytes in [&whole[..whole.len() / 2], &whole[..whole.len() - 4], &whole[..3], &flipped] {
        let (_folder, path) = written("d.jsonl", bytes);
        let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
        assert!(message.contains("d.jsonl") && message.contains("gzip"), "{message}");
    }
}

#[test]
fn damaged_zstandard_is_named() {
    let lines = "{\"text\": \"some words that repeat\"}\n".repeat(1000);
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(lines.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0xff;
    for bytes in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], &whole[..4], &flipped] {
        let (_folder, path) = written("d.jsonl", bytes);
        let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
        assert!(message.contains("d.jsonl") && message.contains("zstd"), "{message}");
    }
}

#[test]
fn formats_that_read_no_parquet_say_so_and_what_to_do() {
    let parquet = data("baseten_minimal.parquet");
    let (folder, _) = written("README.md", "");
    std::fs::copy(&parquet, folder.path().join("a.parquet")).unwrap();
    for path in [parquet.as_path(), folder.path()] {
        for format in [FileFormat::RandomPool, FileFormat::RawPayload, FileFormat::InputsJson] {
            let message = load(path, format).err().unwrap().to_string();
            assert!(
                message.contains("does not read parquet files") && message.contains("JSONL"),
                "{message}"
            );
            assert!(message.contains("--custom-dataset-type"), "{message}");
        }
    }
}

#[test]
fn single_turn_rules_each_have_a_message() {
    let cases: &[(&str, &[&str])] = &[
        ("{}", &["nothing to send", "`texts`", "`videos`"]),
        (r#"{"text": ""}"#, &["nothing to send"]),
        (r#"{"texts": []}"#, &["nothing to send"]),
        (r#"{"text": null, "output_length": 3}"#, &["nothing to send"]),
        (r#"{"text": "a", "texts": ["b"]}"#, &["`text` and `texts` exclude each other"]),
        (r#"{"image": "http://a", "images": ["http://b"]}"#, &["`image` and `images`"]),
        (r#"{"audio": "http://a", "audios": ["http://b"]}"#, &["`audio` and `audios`"]),
        (r#"{"video": "http://a", "videos": ["http://b"]}"#, &["`video` and `videos`"]),
        (r#"{"texts": ["a", {"contents": ["b"]}]}"#, &["field `texts`", "not of both"]),
        (r#"{"texts": [{"name": "n"}]}"#, &["field `texts`", "`contents`"]),
        (
            r#"{"texts": [{"name": 5, "contents": ["a"]}]}"#,
            &["texts.name", "expected a string, found a number"],
        ),
        (r#"{"texts": "a"}"#, &["field `texts`", "expected a list, found a string"]),
        (r#"{"text": 5}"#, &["field `text`", "expected a string, found a number"]),
        (r#"{"text": "a", "timestamp": 5, "delay": 5}"#, &["`timestamp` and `delay` exclude each other"]),
        (r#"{"text": "a", "timestamp": true}"#, &["field `timestamp`", "found a boolean"]),
        (r#"{"text": "a", "delay": -5}"#, &["field `delay`", "0 or more", "-5"]),
        (r#"{"text": "a", "timestamp": 1e999}"#, &["field `timestamp`", "finite"]),
        (r#"{"text": "a", "output_length": 0}"#, &["field `output_length`", "above 0"]),
        (r#"{"text": "a", "output_length": 2.5}"#, &["field `output_length`", "has a fraction"]),
        (r#"{"text": "a", "output_length": true}"#, &["field `output_length`", "found a boolean"]),
        (r#"{"text": "a", "output_length": [3]}"#, &["field `output_length`", "found a list"]),
        (r#"{"text": "a", "session_id": 5}"#, &["field `session_id`", "found a number"]),
        (r#"{"text": "a", "role": 5}"#, &["field `role`"]),
        (r#"{"text": "a", "extra": []}"#, &["field `extra`", "expected an object, found a list"]),
        (r#"{"text": "a", "type": "multi_turn"}"#, &["field `type`", "multi_turn", "--custom-dataset-type"]),
        (r#"{"text": "a\ud800"}"#, &["field `text`", "surrogate"]),
        (r#"{"image": "no/such.png"}"#, &["field `image`", "no/such.png", "data: URL"]),
        (r#"{"image": "http://a", "image_uuids": ["u"]}"#, &["field `image_uuids`", "not with `image`"]),
        (r#"{"images": ["http://a"], "image_uuids": ["u", "v"]}"#, &["field `image_uuids`", "as many"]),
        (r#"{"images": ["http://a"], "image_uuids": [""]}"#, &["field `image_uuids`", "not empty"]),
        (r#"{"text": "a", "image_uuids": []}"#, &["field `image_uuids`", "not be an empty list"]),
        (
            r#"{"images": [{"contents": ["http://a"]}], "image_uuids": ["u"]}"#,
            &["field `image_uuids`", "list of strings"],
        ),
    ];
    for (record, parts) in cases {
        refused(FileFormat::SingleTurn, &[GOOD, record], &[&["d.jsonl:2: "], *parts].concat());
        // The turns of a conversation follow the same rules, but for the session id, which has no effect there.
        if !record.contains("session_id") && !record.contains("\"type\"") {
            let turns = format!(r#"{{"turns": [{GOOD}, {record}]}}"#);
            refused(FileFormat::MultiTurn, &[&turns], &["d.jsonl:1: ", "turns[1]"]);
        }
    }
}

#[test]
fn multi_turn_needs_turns() {
    refused(
        FileFormat::MultiTurn,
        &[r#"{"session_id": "a"}"#],
        &["d.jsonl:1: ", "field `turns`", "is missing"],
    );
    refused(FileFormat::MultiTurn, &[r#"{"turns": []}"#], &["field `turns`", "must not be empty"]);
    refused(FileFormat::MultiTurn, &[r#"{"turns": {}}"#], &["field `turns`", "expected a list"]);
    refused(FileFormat::MultiTurn, &[r#"{"turns": [5]}"#], &["field `turns[0]`"]);
}

#[test]
fn random_pool_entries_are_texts_and_media_only() {
    refused(FileFormat::RandomPool, &[GOOD, "{}"], &["d.jsonl:2: ", "nothing to send"]);
    let uuids = r#"{"images": ["http://a"], "image_uuids": ["u"]}"#;
    refused(FileFormat::RandomPool, &[uuids], &["field `image_uuids`"]);
    refused(FileFormat::RandomPool, &[r#"{"text": "a", "type": "single_turn"}"#], &["field `type`"]);
}

#[test]
fn mooncake_rules_each_have_a_message() {
    let cases: &[(&str, &[&str])] = &[
        ("{}", &["none of `input_length`, `text_input`, `messages`, `payload`"]),
        (
            r#"{"input_length": 5, "text_input": "a"}"#,
            &["`input_length` and `text_input` exclude each other"],
        ),
        (r#"{"payload": {"a": 1}, "messages": [{"role": "user"}]}"#, &["`messages` and `payload`"]),
        (r#"{"text_input": "a", "hash_ids": [1]}"#, &["field `hash_ids`", "`input_length` only"]),
        (r#"{"text_input": "a", "tools": [{}]}"#, &["field `tools`", "`messages` only"]),
        (r#"{"messages": []}"#, &["field `messages`", "must not be empty"]),
        (r#"{"messages": [{"role": "user"}, {"content": "x"}]}"#, &["messages[1]", "`role` is missing"]),
        (r#"{"messages": [{"role": 5}]}"#, &["messages[0]", "`role` must be a string"]),
        (r#"{"messages": ["hello"]}"#, &["messages[0]", "expected an object, found a string"]),
        (r#"{"messages": [{"role": "user"}], "tools": []}"#, &["field `tools`", "not empty"]),
        (r#"{"payload": {}}"#, &["field `payload`", "not empty"]),
        (r#"{"payload": { }}"#, &["field `payload`", "not empty"]),
        (r#"{"payload": 5}"#, &["field `payload`"]),
        (r#"{"input_length": -1}"#, &["field `input_length`", "0 or more", "-1"]),
        (r#"{"input_length": 0, "hash_ids": [1]}"#, &["field `input_length`", "above 0"]),
        (r#"{"input_length": true}"#, &["field `input_length`", "found a boolean"]),
        (r#"{"input_length": 2.5}"#, &["field `input_length`", "has a fraction"]),
        (
            r#"{"input_length": 512, "hash_ids": [1, 2]}"#,
            &["2 blocks", "512", "would have 0", "--isl-block-size"],
        ),
        (r#"{"input_length": 5, "hash_ids": ["x"]}"#, &["field `hash_ids`", "expected an integer"]),
        (r#"{"input_length": 5, "hash_ids": 7}"#, &["field `hash_ids`", "expected a list"]),
        (r#"{"input_length": 5, "delay": -1}"#, &["field `delay`"]),
        (r#"{"input_length": 5, "message_mode": "delta"}"#, &["field `message_mode`", "not supported"]),
        (r#"{"input_length": 5, "type": "trace"}"#, &["field `type`", "mooncake_trace"]),
        (r#"{"input_length": 5, "output_length": "many"}"#, &["field `output_length`"]),
    ];
    for (record, parts) in cases {
        let good = r#"{"input_length": 5}"#;
        refused(FileFormat::MooncakeTrace, &[good, record], &[&["d.jsonl:2: "], *parts].concat());
    }
}

#[test]
fn a_block_at_two_sizes_is_an_error() {
    refused(
        FileFormat::MooncakeTrace,
        &[r#"{"input_length": 600, "hash_ids": [1, 2]}"#, r#"{"input_length": 1024, "hash_ids": [1, 2]}"#],
        &["d.jsonl:2: ", "block 2", "512 tokens", "88", "--isl-block-size"],
    );
    // Also for ids that are hashes.
    refused(
        FileFormat::MooncakeTrace,
        &[
            r#"{"input_length": 600, "hash_ids": [1, 8223372036854775807]}"#,
            r#"{"input_length": 513, "hash_ids": [-5, 8223372036854775807]}"#,
        ],
        &["d.jsonl:2: ", "block 8223372036854775807"],
    );
}

#[test]
fn sessions_do_not_mix_kinds_of_input() {
    refused(
        FileFormat::MooncakeTrace,
        &[
            r#"{"session_id": "s", "messages": [{"role": "user", "content": "a"}]}"#,
            r#"{"input_length": 5}"#,
            r#"{"session_id": "s", "payload": {"a": 1}}"#,
        ],
        &["d.jsonl:3: ", "session `s`", "`messages` and `payload`"],
    );
    refused(
        FileFormat::MooncakeTrace,
        &[
            r#"{"session_id": "s", "text_input": "a"}"#,
            r#"{"session_id": "s", "messages": [{"role": "user"}]}"#,
        ],
        &["d.jsonl:2: ", "session `s`"],
    );
}

#[test]
fn raw_payloads_need_messages_on_chat() {
    refused(
        FileFormat::RawPayload,
        &[r#"{"messages": []}"#, r#"{"prompt": "a"}"#],
        &["d.jsonl:2: ", "`messages`"],
    );
    refused(FileFormat::RawPayload, &[r#"{"messages": "a"}"#], &["d.jsonl:1: ", "expected a list"]);
}

#[test]
fn inputs_json_items_are_named_by_their_index() {
    let cases: &[(&str, &[&str])] = &[
        ("{}", &["field `data`", "is missing"]),
        (r#"{"data": {}}"#, &["field `data`", "expected a list"]),
        (r#"{"data": [{"session_id": "a", "payloads": [{}]}, 5]}"#, &["data[1]", "expected an object"]),
        (r#"{"data": [{"payloads": [{}]}]}"#, &["data[0]", "`session_id`", "is missing"]),
        (r#"{"data": [{"session_id": "a"}]}"#, &["data[0]", "`payloads`", "is missing"]),
        (r#"{"data": [{"session_id": "a", "payloads": []}]}"#, &["data[0]", "must not be empty"]),
        (r#"{"data": [{"session_id": "a", "payloads": [{}, 5]}]}"#, &["data[0]", "payloads[1]"]),
        (
            r#"{"data": [{"session_id": "a", "payloads": [{}]}, {"session_id": "a", "payloads": [{}]}]}"#,
            &["data[1]", "session `a` occurs twice"],
        ),
        (r#"{"data": []}"#, &["no sessions"]),
        (r#"{"data": ["#, &["not valid JSON"]),
    ];
    for (document, parts) in cases {
        refused(FileFormat::InputsJson, &[document], parts);
    }
}

#[test]
fn what_an_endpoint_cannot_send_fails_at_load() {
    let load_for = |name: &str, format, endpoint| common::load_for(data(name), format, endpoint);
    let message = load_for("mooncake_messages.jsonl", FileFormat::MooncakeTrace, EndpointKind::Completions)
        .err()
        .unwrap();
    let message = message.to_string();
    assert!(
        message.contains("mooncake_trace row with messages") && message.contains("completions"),
        "{message}"
    );
    let message =
        load_for("multi_turn.jsonl", FileFormat::MultiTurn, EndpointKind::Completions).err().unwrap();
    let message = message.to_string();
    for part in
        ["multi_turn.jsonl:1", "session `garden`", "multi_turn file has 4 turns", "completions", "chat"]
    {
        assert!(message.contains(part), "{message}");
    }
    let message =
        load_for("single_turn_media.jsonl", FileFormat::SingleTurn, EndpointKind::Embeddings).err().unwrap();
    assert!(message.to_string().contains("media, which the embeddings endpoint cannot carry"), "{message}");
    // A session without history is fine: its turns do not build on each other.
    assert!(load_for("single_turn.jsonl", FileFormat::SingleTurn, EndpointKind::Completions).is_ok());
}

#[test]
fn options_that_do_not_fit_the_format_are_refused_by_name() {
    let tokenizer = Tokenizer::builtin();
    let refuse = |source: FileDataset, sampling, fixed_schedule| {
        let mut config = config(DatasetSource::File(source));
        config.sampling = sampling;
        let context = OpenContext { fixed_schedule, ..context(&tokenizer) };
        open(&config, &context).err().unwrap().to_string()
    };
    let single = || file(data("single_turn_schedule.jsonl"), FileFormat::SingleTurn);
    let trace = || file(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace);
    let message = refuse(FileDataset { block_size: Some(16), ..single() }, Sampling::Sequential, false);
    assert!(message.contains("--isl-block-size") && message.contains("single_turn"), "{message}");
    let message = refuse(FileDataset { pool_batch: [2, 1, 1, 1], ..single() }, Sampling::Sequential, false);
    assert!(message.contains("--prompt-batch-size"), "{message}");
    let message = refuse(single(), Sampling::Shuffle, true);
    assert!(
        message.contains("--dataset-sampling-strategy") && message.contains("--no-fixed-schedule"),
        "{message}"
    );
    let message = refuse(FileDataset { ignore_trace_delays: true, ..trace() }, Sampling::Sequential, true);
    assert!(message.contains("--ignore-trace-delays") && message.contains("--fixed-schedule"), "{message}");
    let message = refuse(file(data("inputs.json"), FileFormat::InputsJson), Sampling::Sequential, true);
    assert!(message.contains("inputs_json") && message.contains("--no-fixed-schedule"), "{message}");
    let message = refuse(FileDataset { entries: Some(0), ..single() }, Sampling::Sequential, false);
    assert!(message.contains("--num-dataset-entries"), "{message}");
    // A detected type without blocks ignores the block size.
    let source = FileDataset { block_size: Some(16), detected: true, ..single() };
    assert!(open(&config(DatasetSource::File(source)), &context(&tokenizer)).is_ok());
}

#[test]
fn prompts_of_a_length_need_a_tokenizer_when_the_file_is_opened() {
    let tokenizer = Tokenizer::builtin();
    let context = OpenContext { tokenizer: None, ..context(&tokenizer) };
    let source = |name: &str| config(DatasetSource::File(file(data(name), FileFormat::MooncakeTrace)));
    let message = open(&source("mooncake_hash.jsonl"), &context).err().unwrap().to_string();
    assert!(message.contains("mooncake_hash.jsonl:1") && message.contains("--tokenizer"), "{message}");
    assert!(open(&source("mooncake_payload.jsonl"), &context).is_ok());
}

#[test]
fn an_input_that_no_memory_holds_is_refused_by_its_line() {
    let message =
        refusal(FileFormat::MooncakeTrace, &[r#"{"input_length": 4}"#, r#"{"input_length": 1000000000000}"#]);
    assert!(
        message.contains(":2") && message.contains("input_length") && message.contains("20000000"),
        "{message}"
    );
}

#[test]
fn what_data_are_packed_in_is_named_with_the_next_step() {
    let compressed = |bytes: &[u8]| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    let cases: [(Vec<u8>, &str); 10] = [
        (
            b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46".to_vec(),
            "it is xz-compressed, and gzip, Zstandard or plain files are read",
        ),
        (b"BZh91AY&SY\x01\x02".to_vec(), "it is bzip2-compressed"),
        (b"\x04\x22\x4d\x18\x64\x40".to_vec(), "it is LZ4-compressed"),
        (b"PK\x03\x04\x14\0".to_vec(), "it is a zip archive; unpack it"),
        (b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(), "it is a 7z archive"),
        (pointer.to_vec(), "it is a Git LFS pointer and not the data; run `git lfs pull`"),
        (gzip(&gzip(GOOD.as_bytes())), "it is compressed twice; decompress it once"),
        (compressed(&gzip(GOOD.as_bytes())), "it is compressed twice"),
        (gzip(&compressed(GOOD.as_bytes())), "it is compressed twice"),
        (gzip(pointer), "it is a Git LFS pointer"),
    ];
    for (bytes, told) in cases {
        let (_folder, path) = written("d.jsonl", &bytes);
        for message in [
            load(&path, FileFormat::SingleTurn).err().unwrap().to_string(),
            aiperf_dataset::detect(&path, &aiperf_config::InputColumns::default()).unwrap_err().to_string(),
        ] {
            assert!(message.contains("cannot read ") && message.contains("d.jsonl"), "{message}");
            assert!(message.contains(told), "{message}");
        }
    }
    // Letters that a text may begin with are no mark.
    let (_folder, path) = written("d.jsonl", "BZh9 is how it begins\n");
    let message = load(&path, FileFormat::SingleTurn).err().unwrap().to_string();
    assert!(!message.contains("bzip2"), "{message}");
}
