//! Entry points for hostile bytes: whatever a file holds, opening it, looking at it and building from it gives an
//! answer or an error, never a panic.

use std::path::Path;
use std::sync::Arc;

use aiperf_config::{
    DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, InputColumns, Synthesis,
};
use aiperf_tokenize::Tokenizer;

use crate::media::picture::Picture;
use crate::media::sound::Sound;
use crate::parquet::{Cells, Table, Writer};
use crate::source::{Records, SourceFile};
use crate::{Files, Len, OpenContext, PhaseChoice, Survey, open};

/// Opens a file of `bytes` as `format`, builds some of what is in it, and looks at it the way analyses do.
///
/// # Panics
/// When what was indexed cannot be built or told (cells of a damaged columnar file excepted), or is told otherwise than
/// it is built: that is the finding.
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
                // Nor are its hashes, which no schedule needs, before they are told.
                Err(error) if ending == ".parquet" => drop(error.to_string()),
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
            let _ = crate::detect(path, &InputColumns::default());
            for format in FileFormat::ALL {
                if !columnar || matches!(format, FileFormat::BasetenTrace | FileFormat::MooncakeTrace) {
                    let _ = crate::first_record_timing(path, *format, &InputColumns::default());
                }
            }
        });
    }
}

/// Reads the records of a file of `bytes`, as lines, as lines with other keys, and as rows below a header.
///
/// # Panics
/// When a record is another one when it is read again at its place.
pub fn fuzz_records(bytes: &[u8]) {
    with_file(bytes, ".txt", |path| {
        let names = InputColumns::new([("text", "prompt"), ("a", "text")]).unwrap_or_default();
        for file in [
            SourceFile::open(path, true),
            SourceFile::open(path, true).map(|file| file.with_names(&names)),
            SourceFile::open_table(path, &InputColumns::default()),
        ] {
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
            let job =
                Job { set, origin: "here", filters: &[], bound: Some(20), tokenizer: None, fixed_schedule };
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
    let recorded = crate::media::recorded::media_type(bytes);
    let Ok(picture) = Picture::decode(bytes) else { return };
    assert_eq!(recorded, None, "what is decoded is not sent as it was recorded");
    assert_eq!(head, Ok(()), "what can be read has a head that can be read");
    let small = picture.resized(picture.width.min(40), 3);
    assert!(small.jpeg(&crate::Stop::default()).is_ok());
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
mod tests;
