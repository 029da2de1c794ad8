use std::io::Write as _;

use proptest::prelude::*;

use super::*;
use crate::columnar;

/// JSON-like text of the keys that matter, so that more than the parser is reached.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"text\"".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\"system\"".to_owned()),
        Just("1e999".to_owned()),
        Just("[1, 2, 3]".to_owned()),
        (-3i64..70).prop_map(|number| number.to_string()),
        (0.0f64..200.0).prop_map(|number| number.to_string()),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((key(), inner), 0..5).prop_map(|entries| object(&entries)),
        ]
    })
}

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "text",
        "text",
        "text",
        "turns",
        "input_length",
        "texts",
        "image",
        "images",
        "image_uuids",
        "role",
        "contents",
        "name",
        "session_id",
        "turns",
        "timestamp",
        "delay",
        "output_length",
        "input_length",
        "text_input",
        "messages",
        "payload",
        "hash_ids",
        "tools",
        "extra",
        "type",
        "data",
        "payloads",
        "prompt",
        "stream",
        "id",
        "models",
        "block_size",
        "requests",
        "t",
        "in",
        "out",
        "agent_id",
        "spawns",
        "forks",
        "children",
        "join_at",
        "orchestrator",
        "rounds",
        "timing_events",
        "event_type",
        "tool_name",
    ])
}

fn object(entries: &[(&'static str, String)]) -> String {
    let entries: Vec<String> = entries.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", entries.join(","))
}

fn record() -> impl Strategy<Value = String> {
    prop::collection::vec((key(), value()), 0..5).prop_map(|entries| object(&entries))
}

/// A value for a field: one that fits, or any.
fn mostly(fits: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    prop_oneof![12 => fits.boxed(), 1 => value().boxed()]
}

fn number(range: std::ops::Range<i64>) -> impl Strategy<Value = String> {
    mostly(range.prop_map(|number| number.to_string()))
}

fn chat() -> impl Strategy<Value = String> {
    let ids = prop::collection::vec(0i64..6, 0..4).prop_map(|ids| format!("{ids:?}"));
    (number(0..9), number(-1..9), number(0..90), number(0..60), number(0..9), mostly(ids)).prop_map(
        |(chat, parent, time, input, output, ids)| {
            format!(
                r#"{{"chat_id":{chat},"parent_chat_id":{parent},"timestamp":{time},"input_length":{input},"output_length":{output},"hash_ids":{ids}}}"#
            )
        },
    )
}

fn row() -> impl Strategy<Value = String> {
    let cell = prop_oneof![
        (-1i64..90).prop_map(|number| number.to_string()),
        Just("2024-05-10 00:00:01.5".to_owned()),
        Just("\"7\"".to_owned()),
        Just("\"".to_owned()),
        "[ -~]{0,6}",
    ];
    prop::collection::vec(cell, 2..5).prop_map(|cells| cells.join(","))
}

fn call() -> impl Strategy<Value = String> {
    let messages = mostly(Just(r#"[{"role":"user","content":"a"}]"#.to_owned()));
    (messages, record(), number(0..9), number(0..60)).prop_map(|(messages, other, limit, second)| {
        let request = format!(r#"{{"messages":{messages},"max_tokens":{limit},"x":{other}}}"#);
        let data = serde_json::Value::from(request);
        format!(
            r#"{{"captureData":{{"endpointInput":{{"data":{data},"encoding":"JSON"}}}},"eventMetadata":{{"inferenceTime":"2026-02-03T10:00:{second:0>2}Z"}}}}"#
        )
    })
}

fn question() -> impl Strategy<Value = String> {
    let id = prop::sample::select(vec!["0".repeat(32), "1".repeat(32), "short".to_owned()]);
    let message = prop_oneof![
        4 => Just(r#"{"role":"user","content":"a"}"#.to_owned()),
        1 => record(),
    ];
    (id, prop::collection::vec(message, 0..3)).prop_map(|(id, messages)| {
        format!(r#"{{"question_id":"{id}","category":"qa","messages":[{}]}}"#, messages.join(","))
    })
}

/// Files that are nearly right.
fn near_trace() -> impl Strategy<Value = (FileFormat, Vec<u8>)> {
    let lines = |format: FileFormat, row: BoxedStrategy<String>, head: &'static str| {
        prop::collection::vec(row, 1..8)
            .prop_map(move |rows| (format, format!("{head}{}", rows.join("\n")).into_bytes()))
            .boxed()
    };
    prop_oneof![
        lines(FileFormat::BailianTrace, chat().boxed(), ""),
        lines(FileFormat::BurstGptTrace, row().boxed(), "Timestamp,Request tokens,Response tokens\n"),
        lines(FileFormat::AzureLlmTrace, row().boxed(), "TIMESTAMP,ContextTokens,GeneratedTokens\n"),
        lines(FileFormat::SagemakerDataCapture, call().boxed(), ""),
        lines(FileFormat::SpeedBenchQa, question().boxed(), ""),
    ]
}

fn document() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(record(), 1..4).prop_map(|lines| lines.join("\n").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|tail| [&[0x1f, 0x8b, 8, 0][..], &tail].concat()),
    ]
}

/// Parquet and Arrow files of a few rows, written in several ways.
fn columnar_files() -> Vec<Vec<u8>> {
    use arrow_schema::DataType;
    use columnar::{field, list, object};
    use parquet::basic::Compression;
    use parquet::file::properties::{WriterProperties, WriterVersion};

    let schema = columnar::schema(vec![
        field("text", DataType::Utf8),
        field("hash_ids", list(DataType::Int64)),
        field("turns", list(object(vec![field("text", DataType::Utf8), field("delay", DataType::Float64)]))),
    ]);
    let rows: Vec<serde_json::Value> = (0..60)
        .map(|row| serde_json::json!({"text": format!("{}", row % 7), "hash_ids": [row, 2], "turns": [{"text": "a"}, null]}))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let small = || WriterProperties::builder().set_data_page_row_count_limit(10).set_write_batch_size(5);
    let mut files = Vec::new();
    for properties in [
        small().set_compression(Compression::SNAPPY),
        small().set_offset_index_disabled(true).set_dictionary_enabled(false),
        small().set_writer_version(WriterVersion::PARQUET_2_0).set_offset_index_disabled(true),
        small().set_compression(Compression::LZ4_RAW).set_max_row_group_row_count(Some(20)),
    ] {
        columnar::write(&path, &schema, &rows, properties.build());
        files.push(std::fs::read(&path).unwrap());
    }
    columnar::write_arrow(&path, &schema, &rows, 20);
    files.push(std::fs::read(&path).unwrap());
    files
}

/// Some bytes of a file changed, or its end cut off.
fn damaged(
    mut bytes: Vec<u8>,
    changes: &[(prop::sample::Index, u8)],
    cut: Option<prop::sample::Index>,
) -> Vec<u8> {
    for (place, value) in changes {
        let place = place.index(bytes.len());
        bytes[place] = *value;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    bytes
}

fn changes() -> impl Strategy<Value = (Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>)> {
    (
        prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4),
        prop::option::weighted(0.1, any::<prop::sample::Index>()),
    )
}

#[test]
fn no_damage_to_a_columnar_file_brings_its_reader_down() {
    let files = columnar_files();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(400));
    runner
        .run(&(0..files.len(), changes()), |(file, (changes, cut))| {
            let bytes = damaged(files[file].clone(), &changes, cut);
            fuzz_columns(&bytes);
            fuzz_rows(&bytes);
            Ok(())
        })
        .unwrap();
}

/// Files below the root of the repository.
fn files(names: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    names.iter().map(|name| std::fs::read(root.join(name)).unwrap()).collect()
}

#[test]
fn no_damage_to_a_picture_brings_its_reader_down() {
    let names =
        ["rgb.png", "pal8.png", "rgba16.png", "interlaced.png", "yuv420.jpg", "progressive.jpg", "cmyk.jpg"]
            .map(|name| format!("fuzz/corpus/picture/{name}"));
    let files = files(&names.each_ref().map(String::as_str));
    for file in &files {
        assert!(Picture::decode(file).is_ok());
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(600));
    runner
        .run(&(0..files.len(), changes()), |(file, (changes, cut))| {
            fuzz_picture(&damaged(files[file].clone(), &changes, cut));
            Ok(())
        })
        .unwrap();
}

#[test]
fn no_damage_to_a_clip_brings_its_reader_down() {
    let names = ["flac", "mp3", "opus"].map(|name| format!("crates/dataset/tests/data/public/tone.{name}"));
    let mut files = files(&names.each_ref().map(String::as_str));
    files.push(Sound::decode(files[0].clone(), 1.0).unwrap().wav());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    runner
        .run(&(0..files.len(), changes()), |(file, (changes, cut))| {
            fuzz_sound(&damaged(files[file].clone(), &changes, cut));
            Ok(())
        })
        .unwrap();
}

#[test]
fn no_damage_to_compressed_lines_brings_their_reader_down() {
    let text = "{\"text\": \"some words that repeat\"}\n".repeat(300);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let files = [gzip.finish().unwrap(), zstd::encode_all(text.as_bytes(), 3).unwrap()];
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(500));
    runner
        .run(&(0..files.len(), changes()), |(file, (changes, cut))| {
            let bytes = damaged(files[file].clone(), &changes, cut);
            fuzz_records(&bytes);
            fuzz_rows(&bytes);
            Ok(())
        })
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rows_of_a_table_are_found_again(text in "([a\" ,\r\n\u{e9}]|\"\"|,|\n){0,40}") {
        fuzz_records(text.as_bytes());
    }

    #[test]
    fn records_are_found_again(bytes in document()) {
        fuzz_records(&bytes);
    }

    #[test]
    fn no_file_brings_a_loader_down(bytes in document(), format in 0..FileFormat::ALL.len(), fixed: bool, chat: bool) {
        let endpoint = if chat { EndpointKind::Chat } else { EndpointKind::Completions };
        fuzz_format(FileFormat::ALL[format], &bytes, fixed, endpoint);
    }

    #[test]
    fn no_nearly_right_trace_brings_a_loader_down(
        (format, bytes) in near_trace(),
        fixed: bool,
        factor in prop::sample::select(vec![0.3, 1.0, 2.5]),
    ) {
        fuzz_format(format, &bytes, fixed, EndpointKind::Chat);
        fuzz_changed(format, &bytes, factor);
    }

    #[test]
    fn no_shard_brings_a_public_data_set_down(bytes in document()) {
        fuzz_rows(&bytes);
    }

    #[test]
    fn no_file_brings_detection_down(bytes in document()) {
        fuzz_detect(&bytes);
    }

    #[test]
    fn no_line_is_lost_whatever_ends_it(lines in prop::collection::vec("[ -~]{0,12}", 0..20), crlf: bool) {
        let kept: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        let text = lines.join(if crlf { "\r\n" } else { "\n" });
        with_file(text.as_bytes(), ".jsonl", |path| {
            // Two bytes are no gzip and no other coding, so every text here is plain.
            let file = crate::source::SourceFile::open(path, true).unwrap();
            let mut found = Vec::new();
            let mut reader = crate::source::Lines::new(&file).unwrap();
            while let Some(line) = reader.next(&file).unwrap() {
                assert_eq!(file.line_of(line.offset), line.number);
                found.push(String::from_utf8(line.bytes.to_vec()).unwrap());
            }
            assert_eq!(found, kept);
        });
    }
}
