//! What the tests of datasets have in common.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "helpers of tests, of which each test binary uses its part"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::{
    DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, InputColumns, Normal,
    SyntheticDataset,
};
use aiperf_dataset::{Dataset, DatasetError, Detected, OpenContext, Timing, open};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, Conversation, Turn};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Looks at a file whose fields have their own names.
pub fn detect(path: &Path) -> Result<Detected, DatasetError> {
    aiperf_dataset::detect(path, &InputColumns::default())
}

/// As [`detect`], for the times of a first record.
pub fn first_record_timing(path: &Path, format: FileFormat) -> Result<Timing, DatasetError> {
    aiperf_dataset::first_record_timing(path, format, &InputColumns::default())
}

/// What is found where fields have their own names.
pub fn detected(format: FileFormat, timed: bool) -> Detected {
    Detected { format, timed, columns: InputColumns::default() }
}

pub fn config(source: DatasetSource) -> DatasetConfig {
    DatasetConfig::new(source)
}

pub fn file(path: impl AsRef<Path>, format: FileFormat) -> FileDataset {
    FileDataset::new(path.as_ref(), format)
}

pub fn constant(mean: f64) -> Normal {
    Normal { mean, stddev: 0.0 }
}

pub fn synthetic(entries: u64, isl: Normal) -> SyntheticDataset {
    SyntheticDataset::new(entries, isl)
}

/// Every format.
pub fn every_format() -> impl Iterator<Item = FileFormat> {
    aiperf_dataset::formats().iter().map(|format| format.format)
}

/// A run with seed 42 on the chat endpoint, closed loop.
pub fn context(tokenizer: &Tokenizer) -> OpenContext<'_> {
    OpenContext {
        seed: 42,
        seed_given: true,
        tokenizer: Some(tokenizer),
        endpoint: EndpointKind::Chat,
        extra_inputs: None,
        streaming: false,
        fixed_schedule: false,
        apply_chat_template: false,
        survey: None,
    }
}

/// Opens a file with everything else at its default.
pub fn load(path: impl AsRef<Path>, format: FileFormat) -> Result<Arc<dyn Dataset>, DatasetError> {
    open(&config(DatasetSource::File(file(path, format))), &context(&Tokenizer::builtin()))
}

/// As [`load`], for another endpoint.
pub fn load_for(
    path: impl AsRef<Path>,
    format: FileFormat,
    endpoint: EndpointKind,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let tokenizer = Tokenizer::builtin();
    let context = OpenContext { endpoint, ..context(&tokenizer) };
    open(&config(DatasetSource::File(file(path, format))), &context)
}

/// As [`load`], as a fixed schedule.
pub fn schedule(path: impl AsRef<Path>, format: FileFormat) -> Result<Arc<dyn Dataset>, DatasetError> {
    schedule_within(path, format, (None, None))
}

pub fn schedule_within(
    path: impl AsRef<Path>,
    format: FileFormat,
    window: (Option<f64>, Option<f64>),
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let tokenizer = Tokenizer::builtin();
    let context = OpenContext { fixed_schedule: true, ..context(&tokenizer) };
    let file = FileDataset { window, ..file(path, format) };
    open(&config(DatasetSource::File(file)), &context)
}

/// Text of a file of these lines, opened and expected to fail; the message without the folder.
pub fn refusal(format: FileFormat, lines: &[&str]) -> String {
    let (folder, path) = written("d.jsonl", lines.join("\n"));
    let error = load(&path, format).err().unwrap_or_else(|| panic!("accepted: {lines:?}"));
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

/// A temporary file with this text.
pub fn written(name: &str, text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

pub fn build_all(dataset: &dyn Dataset) -> Vec<Conversation> {
    (0..dataset.len().known()).map(|index| dataset.build(index).unwrap()).collect()
}

/// All texts of a turn.
pub fn texts(turn: &Turn) -> Vec<&str> {
    match &turn.content {
        Content::Parts { texts, .. } => {
            texts.iter().flat_map(|group| &group.contents).map(AsRef::as_ref).collect()
        }
        other => panic!("not parts: {other:?}"),
    }
}

/// The one text of a turn.
pub fn text(turn: &Turn) -> &str {
    match texts(turn).as_slice() {
        [one] => one,
        many => panic!("{} texts", many.len()),
    }
}

pub fn payload(turn: &Turn) -> &str {
    match &turn.content {
        Content::Payload(body) => body.get(),
        other => panic!("not a payload: {other:?}"),
    }
}

/// Id, then per turn: timestamp, delay.
pub type Times = (String, Vec<(Option<f64>, Option<f64>)>);

/// Ids and outlines, checked against what is built.
pub fn times(dataset: &dyn Dataset) -> Vec<Times> {
    (0..dataset.len().known())
        .map(|index| {
            let conversation = dataset.build(index).unwrap();
            let outline = dataset.outline(index);
            assert_eq!(outline.turns() as usize, conversation.turns.len());
            let turns = conversation.turns.iter().enumerate().map(|(number, turn)| {
                let line = outline.turn(number as u32).unwrap();
                assert_eq!((line.timestamp_ms, line.delay_ms), (turn.timestamp_ms, turn.delay_ms));
                (line.timestamp_ms, line.delay_ms)
            });
            (conversation.id.to_string(), turns.collect())
        })
        .collect()
}
