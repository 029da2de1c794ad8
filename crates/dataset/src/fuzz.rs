//! Entry points for hostile bytes: whatever a file holds, opening it, looking at it and building from it gives an
//! answer or an error, never a panic.

use std::path::Path;

use aiperf_config::{
    DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, Sampling, TraceReplay,
};
use aiperf_tokenize::Tokenizer;

use crate::{Len, OpenContext, open};

/// Opens a file of `bytes` as `format` and builds some of what is in it.
///
/// # Panics
/// When what was indexed cannot be built: that is the finding.
pub fn fuzz_format(format: FileFormat, bytes: &[u8], fixed_schedule: bool, endpoint: EndpointKind) {
    with_file(bytes, |path| {
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
        let source = FileDataset {
            path: path.to_owned(),
            format,
            detected: false,
            entries: None,
            block_size: None,
            ignore_trace_delays: false,
            uuid_and_strip: false,
            window: (Some(0.0), Some(100.0)),
            pool_batch: [1; 4],
            replay: TraceReplay::default(),
        };
        let config = DatasetConfig {
            source: DatasetSource::File(source),
            sampling: Sampling::Sequential,
            inter_turn_delay_cap: None,
            osl: None,
            system_prompt: None,
            corpus: None,
        };
        let Ok(dataset) = open(&config, &context) else { return };
        let len = dataset.wait_for(u64::MAX);
        assert!(matches!(len, Len::Exact(1..)), "{len:?}");
        for index in 0..len.known().min(20) {
            let outline = dataset.outline(index);
            match dataset.build(index) {
                Ok(conversation) => assert_eq!(conversation.turns.len(), outline.turns() as usize),
                Err(error) => panic!("indexed and not built: {error}"),
            }
        }
    });
}

/// Looks for the format of a file of `bytes`.
pub fn fuzz_detect(bytes: &[u8]) {
    with_file(bytes, |path| {
        let _ = crate::detect(path);
        for format in FileFormat::ALL {
            let _ = crate::first_record_timing(path, *format);
        }
    });
}

fn with_file(bytes: &[u8], read: impl FnOnce(&Path)) {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
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
            with_file(text.as_bytes(), |path| {
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
