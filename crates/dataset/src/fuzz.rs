//! Entry points for hostile bytes: whatever a file holds, opening it, looking at it and building from it gives an
//! answer or an error, never a panic.

use std::path::Path;

use aiperf_config::{DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat};
use aiperf_tokenize::Tokenizer;

use crate::source::{Records, SourceFile};
use crate::{Files, Len, OpenContext, PhaseChoice, Survey, open};

/// Opens a file of `bytes` as `format`, builds some of what is in it, and looks at it the way analyses do.
///
/// # Panics
/// When what was indexed cannot be built, or is told otherwise than it is built: that is the finding.
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
            for index in 0..len.known().min(20) {
                let outline = dataset.outline(index);
                match dataset.build(index) {
                    Ok(conversation) => assert_eq!(conversation.turns.len(), outline.turns() as usize),
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
    for ending in [".jsonl", ".json", ".parquet"] {
        with_file(bytes, ending, |path| {
            let _ = crate::detect(path);
            for format in FileFormat::ALL {
                let _ = crate::first_record_timing(path, *format);
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

fn with_file(bytes: &[u8], ending: &str, read: impl FnOnce(&Path)) {
    let Ok(file) = tempfile::Builder::new().suffix(ending).tempfile() else { return };
    if std::fs::write(file.path(), bytes).is_ok() {
        read(file.path());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        ])
    }

    fn object(entries: &[(&'static str, String)]) -> String {
        let entries: Vec<String> = entries.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", entries.join(","))
    }

    fn record() -> impl Strategy<Value = String> {
        prop::collection::vec((key(), value()), 0..5).prop_map(|entries| object(&entries))
    }

    fn document() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => prop::collection::vec(record(), 1..4).prop_map(|lines| lines.join("\n").into_bytes()),
            1 => prop::collection::vec(any::<u8>(), 0..60),
            1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|tail| [&[0x1f, 0x8b, 8, 0][..], &tail].concat()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn no_file_brings_a_loader_down(bytes in document(), format in 0..FileFormat::ALL.len(), fixed: bool, chat: bool) {
            let endpoint = if chat { EndpointKind::Chat } else { EndpointKind::Completions };
            fuzz_format(FileFormat::ALL[format], &bytes, fixed, endpoint);
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
