//! Entry points for hostile bytes: whatever a file holds, opening it, looking at it and building from it gives an
//! answer or an error, never a panic.

use std::path::Path;
use std::sync::Arc;

use aiperf_config::{DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, Synthesis};
use aiperf_tokenize::Tokenizer;

use crate::media::picture::Picture;
use crate::media::sound::Sound;
use crate::parquet::{Cells, Table, Writer};
use crate::source::{Records, SourceFile};
use crate::{Files, Len, OpenContext, PhaseChoice, Survey, open};

/// Opens a file of `bytes` as `format`, builds some of what is in it, and looks at it the way analyses do.
///
/// # Panics
/// When what was indexed cannot be built (prompts of a damaged columnar file excepted), or is told otherwise than it is
/// built: that is the finding.
pub fn fuzz_format(format: FileFormat, bytes: &[u8], fixed_schedule: bool, endpoint: EndpointKind) {
    let ending = match crate::format(format).files {
        Files::Jsonl => ".jsonl",
        Files::Json => ".json",
        Files::Csv => ".csv",
        Files::Parquet => ".parquet",
    };
    with_file(bytes, ending, |path| {
        let tokenizer = Tokenizer::builtin();
        let context = OpenContext {
            seed: 1,
            seed_given: true,
            tokenizer: Some(&tokenizer),
            endpoint,
            extra_inputs: None,
            streaming: true,
            fixed_schedule,
            apply_chat_template: false,
            survey: None,
        };
        let source = FileDataset { window: (Some(0.0), Some(100.0)), ..FileDataset::new(path, format) };
        let config = DatasetConfig::new(DatasetSource::File(source));
        if let Ok(dataset) = open(&config, &context) {
            let len = dataset.wait_for(u64::MAX);
            assert!(matches!(len, Len::Exact(1..)), "{len:?}");
            for index in 0..(len.known() + dataset.children()).min(20) {
                let outline = dataset.outline(index);
                let spine = dataset.branches(index).is_some_and(|plan| plan.spine.is_some());
                let requests = if spine { 0 } else { outline.turns() as usize };
                match dataset.build(index) {
                    Ok(conversation) => assert_eq!(conversation.turns.len(), requests),
                    // The prompts of a columnar file are not read before they are built.
                    Err(error) if ending == ".parquet" => drop(error.to_string()),
                    Err(error) => panic!("indexed and not built: {error}"),
                }
            }
        }
        let survey = Survey::new(3);
        let Ok(dataset) = open(&config, &OpenContext::survey(&survey, false)) else { return };
        for index in 0..dataset.wait_for(u64::MAX).known().min(20) {
            let turns = dataset.outline(index).turns();
            let _ = (dataset.place(index, turns - 1), dataset.position(index, turns - 1));
            match dataset.facts(index, 0..turns) {
                Ok(facts) => assert_eq!(facts.len(), turns as usize),
                Err(error) => panic!("indexed and not told: {error}"),
            }
        }
    });
}

/// Looks for the format of a file of `bytes`.
pub fn fuzz_detect(bytes: &[u8]) {
    // A columnar file is known by its first bytes whatever its name, and by the same reader for every format; that takes
    // up to half a second of a footer which claims lists without an end.
    let columnar = bytes.starts_with(b"PAR1");
    let endings: &[&str] = if columnar { &[".parquet"] } else { &[".jsonl", ".json", ".parquet"] };
    for ending in endings {
        with_file(bytes, ending, |path| {
            let _ = crate::detect(path);
            for format in FileFormat::ALL {
                if !columnar || matches!(format, FileFormat::BasetenTrace | FileFormat::MooncakeTrace) {
                    let _ = crate::first_record_timing(path, *format);
                }
            }
        });
    }
}

/// Reads the records of a file of `bytes`, as lines and as rows below a header.
///
/// # Panics
/// When a record is another one when it is read again at its place.
pub fn fuzz_records(bytes: &[u8]) {
    with_file(bytes, ".txt", |path| {
        for file in [SourceFile::open(path, true), SourceFile::open_table(path)] {
            let Ok(file) = file else { continue };
            let Ok(mut records) = Records::new(&file) else { continue };
            let mut last = None;
            while let Ok(Some(record)) = records.next(&file) {
                assert!(last < Some(record.position), "records go on");
                last = Some(record.position);
                if let Ok(text) = record.text {
                    let again = file.record(record.position, record.length);
                    assert!(matches!(again, Ok(Ok(again)) if again == text), "{text}");
                }
            }
        }
    });
}

/// Opens a trace of `bytes` as `format`, with everything about it changed, and builds some of what is in it.
///
/// # Panics
/// When what was indexed cannot be built: that is the finding.
pub fn fuzz_changed(format: FileFormat, bytes: &[u8], factor: f64) {
    with_file(bytes, ".jsonl", |path| {
        let tokenizer = Tokenizer::builtin();
        let survey = Survey::default();
        let context =
            OpenContext { tokenizer: Some(&tokenizer), survey: None, ..OpenContext::survey(&survey, true) };
        let synthesis = Synthesis {
            speedup: factor,
            prefix_len: factor,
            prefix_root: 3,
            prompt_len: factor,
            output_len: factor,
            max_isl: Some(500),
            max_osl: Some(9),
        };
        let source = FileDataset { synthesis, block_size: Some(16), ..FileDataset::new(path, format) };
        let Ok(dataset) = open(&DatasetConfig::new(DatasetSource::File(source)), &context) else { return };
        for index in 0..dataset.wait_for(u64::MAX).known().min(20) {
            if let Err(error) = dataset.build(index) {
                panic!("indexed and not built: {error}");
            }
        }
    });
}

/// Reads a columnar file of `bytes`: all rows in order, and some in another order.
pub fn fuzz_columns(bytes: &[u8]) {
    with_file(bytes, ".parquet", |path| {
        let Ok(table) = Table::open(path).map(Arc::new) else { return };
        if table.check_json().is_err() {
            return;
        }
        let all: Vec<usize> = (0..table.schema().fields().len()).collect();
        let writer = Writer::new(table.schema().fields());
        let mut text = String::new();
        if let Ok(batches) = table.batches(&all, 0) {
            for batch in batches.take(50) {
                let Ok((_, batch)) = batch else { break };
                for row in 0..batch.num_rows() {
                    text.clear();
                    let _ = writer.row(&batch, row, &mut text);
                }
            }
        }
        let cells = Cells::of(&table, &all);
        let rows = table.rows();
        for row in [rows / 2, rows / 3, 0, rows.saturating_sub(1), rows].into_iter().chain(0..rows.min(20)) {
            if let Ok(cell) = cells.row(0, row) {
                let (batch, index) = cell.in_batch();
                text.clear();
                let _ = writer.row(batch, index, &mut text);
            }
        }
    });
}

/// Converts `bytes` as if a run had recorded them, and opens what comes of it.
///
/// # Panics
/// When a trace that was written does not load.
pub fn fuzz_from_run(bytes: &[u8]) {
    with_file(bytes, ".jsonl", |path| {
        let mut trace = Vec::new();
        let Ok(converted) = crate::from_run(path, PhaseChoice::All, &mut trace, Path::new("trace")) else {
            return;
        };
        with_file(&trace, ".jsonl", |path| {
            let survey = Survey::new(1);
            let source = DatasetSource::File(FileDataset::new(path, FileFormat::MooncakeTrace));
            let dataset = match open(&DatasetConfig::new(source), &OpenContext::survey(&survey, true)) {
                Ok(dataset) => dataset,
                Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&trace)),
            };
            assert_eq!(survey.faults().0, []);
            assert_eq!(dataset.total_turns(), Some(converted.requests));
        });
    });
}

/// A span of a recorded session, as JSON text.
///
/// # Panics
/// When what it becomes is no list of messages and tools.
pub fn fuzz_span(text: &str) {
    crate::public::fuzz_span(text);
}

/// The rows of a shard of a public data set, and what several converters make of them.
///
/// # Panics
/// When what was kept is not what is handed out.
pub fn fuzz_rows(bytes: &[u8]) {
    use crate::public::{Job, Reading, Shard, find, read};

    with_file(bytes, "rows", |path| {
        let names =
            ["aimo", "blazedit_5k", "spec_bench", "spec_al_mtbench", "mmvu"].map(|name| (name, false));
        // One conversation of a session, and one of each of its calls.
        for (name, fixed_schedule) in names.into_iter().chain([("exgentic", false), ("exgentic_v2", true)]) {
            let Some((set, make)) = find(name).and_then(|set| match set.reading {
                Reading::Rows(make) => Some((set, make)),
                Reading::Traces => None,
            }) else {
                continue;
            };
            let Ok(shard) = Shard::local("rows", path) else { return };
            let job = Job {
                set,
                origin: "here",
                filters: &[],
                bound: Some(20),
                tokenizer: None,
                fixed_schedule,
                context_limit: Some(1_000),
            };
            let store = path.with_extension(name);
            let summary = make(job).and_then(|mut converter| {
                read(&job, &mut *converter, &mut std::iter::once(Ok(shard)), &store, &|| false)
            });
            if let Ok(summary) = summary {
                let config = DatasetConfig::new(DatasetSource::Stored(store.clone()));
                let survey = Survey::default();
                let opened = open(&config, &OpenContext::survey(&survey, false));
                assert!(opened.is_ok(), "what was kept opens");
                let Ok(dataset) = opened else { return };
                assert_eq!(dataset.len(), Len::Exact(summary.conversations), "every conversation is kept");
                for index in 0..summary.conversations {
                    let turns = dataset.build(index).map(|built| built.turns.len() as u32);
                    assert_eq!(turns, Ok(dataset.outline(index).turns()), "every turn is kept");
                }
            }
            let _ = std::fs::remove_file(store);
        }
    });
}

/// Reads a picture, and writes it anew in another size.
///
/// # Panics
/// When a picture that was read is not one that can be written.
pub fn fuzz_picture(bytes: &[u8]) {
    let head = Picture::check_head(bytes);
    let Ok(picture) = Picture::decode(bytes) else { return };
    assert_eq!(head, Ok(()), "what can be read has a head that can be read");
    let small = picture.resized(picture.width.min(40), 3);
    assert!(small.jpeg().is_ok());
    assert_eq!(Picture::decode(&small.stored_png()), Ok(small));
}

/// Reads a clip, and writes it anew.
///
/// # Panics
/// When a clip is longer than was asked for, or is another one when it is read again.
pub fn fuzz_sound(bytes: &[u8]) {
    const LONGEST: f64 = 2.0;
    let Ok(sound) = Sound::decode(bytes.to_vec(), LONGEST) else { return };
    assert!(sound.seconds() <= LONGEST);
    assert_eq!(Sound::decode(sound.wav(), LONGEST), Ok(sound));
}

fn with_file(bytes: &[u8], ending: &str, read: impl FnOnce(&Path)) {
    let Ok(file) = tempfile::Builder::new().suffix(ending).tempfile() else { return };
    if std::fs::write(file.path(), bytes).is_ok() {
        read(file.path());
    }
}

#[cfg(test)]
mod tests {
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
            field(
                "turns",
                list(object(vec![field("text", DataType::Utf8), field("delay", DataType::Float64)])),
            ),
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
        let names = [
            "rgb.png",
            "pal8.png",
            "rgba16.png",
            "interlaced.png",
            "yuv420.jpg",
            "progressive.jpg",
            "cmyk.jpg",
        ]
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
        let names =
            ["flac", "mp3", "opus"].map(|name| format!("crates/dataset/tests/data/public/tone.{name}"));
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
}
