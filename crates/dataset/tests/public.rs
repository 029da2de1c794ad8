//! Rows of public data sets become conversations.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;

use aiperf_config::{DatasetConfig, DatasetSource};
use aiperf_dataset::open;
use aiperf_dataset::public::{Fault, Job, Reading, Shard, Summary, find, read};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, Conversation, MediaKind, Turn};
use serde_json::{Value, json};

/// What the set makes of the rows of a file.
fn made(
    set: &str,
    file: &Path,
    bound: Option<u64>,
    tokenizer: &Tokenizer,
) -> Result<(Summary, Vec<Conversation>), Fault> {
    let set = find(set).unwrap();
    let Reading::Rows(make) = set.reading else { panic!("{} has no rows", set.name) };
    let job =
        Job { set, origin: "here", filters: &[], bound, tokenizer: Some(tokenizer), fixed_schedule: false };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut shards = std::iter::once(Ok(Shard::local("rows", file).unwrap()));
    let summary = read(&job, &mut *make(job)?, &mut shards, &store, &|| false)?;
    let config = DatasetConfig::new(DatasetSource::Stored(store));
    let dataset = open(&config, &common::context(tokenizer)).unwrap();
    let built: Vec<Conversation> =
        (0..dataset.len().known()).map(|index| dataset.build(index).unwrap()).collect();
    assert_eq!((summary.conversations, Some(summary.turns)), (built.len() as u64, dataset.total_turns()));
    Ok((summary, built))
}

fn rows(rows: &[Value]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    std::fs::write(file.path(), text).unwrap();
    file
}

fn text(content: &Content) -> &str {
    let Content::Parts { texts, .. } = content else { panic!("{content:?}") };
    &texts[0].contents[0]
}

/// A turn as the sample has it.
fn shown(turn: &Turn) -> Value {
    let Content::Parts { media, .. } = &turn.content else { panic!("{turn:?}") };
    let mut shown = json!({"text": text(&turn.content)});
    for (kind, key) in
        [(MediaKind::Image, "images"), (MediaKind::Audio, "audios"), (MediaKind::Video, "videos")]
    {
        let items: Vec<&str> =
            media.iter().filter(|item| item.kind == kind).map(|item| item.content.as_ref()).collect();
        if !items.is_empty() {
            shown[key] = json!(items);
        }
    }
    shown
}

#[test]
fn a_row_of_each_kind_becomes_its_turns() {
    let sample = std::fs::read(common::data("public/public_rows_sample.json")).unwrap();
    let sample: Vec<Value> = serde_json::from_slice(&sample).unwrap();
    let mut seen = 0;
    for case in sample {
        let name = case["dataset"].as_str().unwrap();
        // Rows with files in them are in columns: the program's tests of every set have such.
        if case["row"].to_string().contains(" bytes") {
            continue;
        }
        seen += 1;
        let file = rows(&[case["row"].clone()]);
        match made(name, file.path(), None, &Tokenizer::builtin()) {
            Ok((_, built)) => {
                let turns: Vec<Value> = built[0].turns.iter().map(shown).collect();
                assert_eq!(Value::from(turns), case["turns"], "{name}");
                assert!(built[0].turns.iter().all(|turn| turn.max_tokens.is_none()));
            }
            Err(fault) => {
                assert!(case["turns"].is_null(), "{name}: {fault}");
                assert!(fault.what.contains("no conversations"), "{fault}");
            }
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn pairs_of_sharegpt_are_those_of_the_sample() {
    let expected = std::fs::read(common::data("public/sharegpt_sample_expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let file = common::data("public/sharegpt_sample.json");
    let (summary, built) = made("sharegpt", &file, None, &Tokenizer::builtin()).unwrap();
    assert_eq!((summary.rows, summary.conversations), (15, 8));
    for (conversation, expected) in built.iter().zip(expected["kept"].as_array().unwrap()) {
        assert_eq!(*conversation.id, *expected["session_id"].as_str().unwrap());
        let turns: Vec<Value> = conversation
            .turns
            .iter()
            .map(|turn| {
                json!({
                    "prompt_chars": text(&turn.content).chars().count(),
                    "prompt_tokens": turn.text_tokens,
                    "max_tokens": turn.max_tokens,
                })
            })
            .collect();
        assert_eq!(Value::from(turns), expected["turns"]);
    }
    // Nothing is read or counted beyond the bound: the third row that is kept is the third of all.
    let (summary, _) = made("sharegpt", &file, Some(3), &Tokenizer::builtin()).unwrap();
    assert_eq!((summary.rows, summary.conversations), (3, 3));
}

#[test]
fn rows_that_become_nothing_do_not_count_towards_the_bound() {
    let file = rows(&[" ", "one", "\n", "two", "three"].map(|text| json!({ "problem": text })));
    let (summary, built) = made("aimo", file.path(), Some(2), &Tokenizer::builtin()).unwrap();
    assert_eq!(summary.rows, 4);
    assert_eq!(built.iter().map(|one| text(&one.turns[0].content)).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(summary.notes, ["2 row(s) left out: blank prompt"]);
}

#[test]
fn rows_of_json_are_read_from_lines_arrays_and_compressed_files() {
    let lines =
        b"\xef\xbb\xbf{\"problem\": \"a\\\"}{\"}\n\n{\"problem\": 5,\n \"x\": {\"y\": [{}]}}".to_vec();
    let array = b" [ {\"problem\": \"a\\\"}{\"} ,\n{\"problem\": 5}]".to_vec();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &lines).unwrap();
    for bytes in [lines.clone(), array, gzip.finish().unwrap(), zstd::encode_all(&lines[..], 0).unwrap()] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let (_, built) = made("aimo", file.path(), None, &Tokenizer::builtin()).unwrap();
        assert_eq!(built.iter().map(|one| text(&one.turns[0].content)).collect::<Vec<_>>(), ["a\"}{", "5"]);
    }
    for (bytes, fault) in [
        (&b"[{\"problem\": \"a\"}"[..], "ends in the middle of its array"),
        (b"{\"problem\": \"a\"}\n{\"pro", "row 2 ends in the middle"),
        (b"{\"problem\": \"a\"}\n3", "row 2 is no JSON object"),
        (b"{\"problem\" \"a\"}", "row 1 is not valid JSON"),
        (b"", "no conversations"),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let found = made("aimo", file.path(), None, &Tokenizer::builtin()).unwrap_err();
        assert!(found.what.contains(fault), "{found}");
    }
}
