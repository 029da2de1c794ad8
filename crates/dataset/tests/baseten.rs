//! Traces of completions: which row becomes which request, and when.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/columnar.rs"]
#[allow(unused_imports, reason = "helpers of tests, of which each test binary uses its part")]
mod columnar;
mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiperf_config::{
    DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, SessionColumn, TraceReplay,
};
use aiperf_dataset::{Dataset, DatasetError, Len, OpenContext, Survey, open};
use aiperf_types::{ContextMode, Turn};
use arrow_schema::{DataType, Schema};
use columnar::{field, list, schema, write, write_arrow};
use common::{config, context, data, file};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

const SAMPLE: &str = "baseten.parquet";

fn trace(path: impl AsRef<Path>, replay: TraceReplay) -> FileDataset {
    FileDataset { replay, ..file(path, FileFormat::BasetenTrace) }
}

fn completions() -> OpenContext<'static> {
    OpenContext {
        seed: 42,
        seed_given: true,
        tokenizer: None,
        endpoint: EndpointKind::Completions,
        extra_inputs: None,
        streaming: true,
        fixed_schedule: true,
        apply_chat_template: false,
        survey: None,
    }
}

fn opened(source: FileDataset) -> Result<Arc<dyn Dataset>, DatasetError> {
    open(&config(DatasetSource::File(source)), &completions())
}

fn replayed(name: &str, replay: TraceReplay) -> Arc<dyn Dataset> {
    opened(trace(data(name), replay)).unwrap()
}

fn ids(dataset: &dyn Dataset) -> Vec<String> {
    common::build_all(dataset).iter().map(|conversation| conversation.id.to_string()).collect()
}

/// Start or wait of every turn, conversation by conversation.
fn times(dataset: &dyn Dataset) -> Vec<Vec<(Option<f64>, Option<f64>)>> {
    common::build_all(dataset)
        .iter()
        .zip(0..)
        .map(|(conversation, index)| {
            let outline = dataset.outline(index);
            let turns: Vec<_> =
                conversation.turns.iter().map(|turn| (turn.timestamp_ms, turn.delay_ms)).collect();
            let outlined: Vec<_> = (0..outline.turns())
                .map(|turn| outline.turn(turn).unwrap())
                .map(|turn| (turn.timestamp_ms, turn.delay_ms))
                .collect();
            assert_eq!(turns, outlined);
            turns
        })
        .collect()
}

fn starts(dataset: &dyn Dataset) -> Vec<f64> {
    let mut all: Vec<f64> = times(dataset).concat().iter().filter_map(|turn| turn.0).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn turns(dataset: &dyn Dataset) -> Vec<Turn> {
    common::build_all(dataset).into_iter().flat_map(|conversation| conversation.turns).collect()
}

/// The turn with this prompt.
fn turn(dataset: &dyn Dataset, prompt: &str) -> Turn {
    turns(dataset).into_iter().find(|turn| common::texts(turn) == [prompt]).unwrap()
}

fn extra(turn: &Turn) -> Value {
    turn.extra_body.clone().map_or(Value::Null, Value::Object)
}

/// As in the sample: the columns of a full trace.
fn full_schema() -> Arc<Schema> {
    schema(vec![
        field("timestamp_start_unix_ms", DataType::Int64),
        field("prompt", DataType::Utf8),
        field("input_tokens", DataType::Int64),
        field("output_tokens", DataType::Int64),
        field("provided_session_id", DataType::Utf8),
        field("poor_man_session_id", DataType::Int64),
        field("total_hashes", list(DataType::Int64)),
        field("block_size", DataType::Int64),
        field("request_canceled", DataType::Int64),
        field("duration_e2e_ms", DataType::Int64),
        field("duration_ttft_ms", DataType::Float64),
        field("output_text", DataType::Utf8),
    ])
}

/// A complete row, with what is different about it.
fn row(changes: Value) -> Value {
    let mut row = json!({
        "timestamp_start_unix_ms": 1_700_000_000_000_i64,
        "prompt": "p",
        "input_tokens": 1,
        "output_tokens": 1,
    });
    let (Value::Object(row_map), Value::Object(changes)) = (&mut row, changes) else { unreachable!() };
    row_map.extend(changes);
    row
}

fn written(schema: &Arc<Schema>, rows: &[Value]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, schema, rows, WriterProperties::default());
    (folder, path)
}

fn refusal(schema: &Arc<Schema>, rows: &[Value]) -> String {
    let (_folder, path) = written(schema, rows);
    opened(trace(path, TraceReplay { open_loop: false, ..TraceReplay::default() })).err().unwrap().to_string()
}

#[test]
fn rows_are_grouped_by_the_column_whose_values_repeat_more() {
    assert_eq!(ids(replayed(SAMPLE, TraceReplay::default()).as_ref()), ["8", "7", "session_000000", "9"]);
}

#[test]
fn a_tie_of_the_session_columns_goes_to_the_provided_one() {
    assert_eq!(ids(replayed("baseten_tie.parquet", TraceReplay::default()).as_ref()), ["a", "b", "c"]);
}

#[test]
fn where_neither_column_repeats_every_row_has_a_fresh_session() {
    let dataset = replayed("baseten_no_repeat.parquet", TraceReplay::default());
    assert_eq!(ids(dataset.as_ref()), ["session_000000", "session_000001", "session_000002"]);
}

#[test]
fn a_session_column_can_be_named() {
    let replay = TraceReplay { session_column: Some(SessionColumn::Provided), ..TraceReplay::default() };
    assert_eq!(ids(replayed("baseten_no_repeat.parquet", replay.clone()).as_ref()), ["a", "b", "c"]);
    let error = opened(trace(data("baseten_minimal.parquet"), replay)).err().unwrap().to_string();
    assert!(error.contains("AIPERF_DATASET_BASETEN_SESSION_COLUMN"), "{error}");
}

#[test]
fn optional_columns_may_be_missing() {
    let dataset = replayed("baseten_minimal.parquet", TraceReplay::default());
    assert_eq!(dataset.len(), Len::Exact(3));
    let turn = turn(dataset.as_ref(), "Beta: name a kite.");
    assert_eq!((turn.max_tokens, extra(&turn)), (Some(3), json!({"min_tokens": 3})));
    assert_eq!(dataset.recorded_answer(0, 0).unwrap(), None);
}

#[test]
fn times_count_from_the_first_event_and_rows_of_a_session_are_in_their_order() {
    let dataset = replayed(SAMPLE, TraceReplay::default());
    let at = |ms| (Some(ms), None);
    let expected =
        [vec![at(0.0), at(260.0)], vec![at(100.0), at(300.0), at(700.0)], vec![at(420.0)], vec![at(3900.0)]];
    assert_eq!(times(dataset.as_ref()), expected);
    assert_eq!(dataset.total_turns(), Some(7));
}

#[test]
fn the_prompt_is_sent_as_it_is_without_history() {
    let dataset = replayed(SAMPLE, TraceReplay::default());
    let conversation = dataset.build(1).unwrap();
    assert_eq!(conversation.context_mode, ContextMode::MessageArrayWithResponses);
    let prompts: Vec<_> = conversation.turns.iter().map(common::texts).collect();
    assert_eq!(
        prompts,
        [
            ["Alpha: list two harbours."],
            ["Alpha: list two harbours. Quay, Mole. Now three."],
            ["Alpha: full transcript, then four."]
        ]
    );
}

#[test]
fn output_tokens_are_the_limit_and_the_least_and_zero_becomes_one() {
    let dataset = replayed(SAMPLE, TraceReplay::default());
    for (prompt, tokens) in [("Alpha: list two harbours.", 4), ("Beta: name a kite. Red kite. Again.", 1)] {
        let turn = turn(dataset.as_ref(), prompt);
        assert_eq!(turn.max_tokens, Some(tokens));
        assert_eq!(extra(&turn)["min_tokens"], json!(tokens));
    }
    let notes: Vec<String> = dataset.notes().iter().map(ToString::to_string).collect();
    assert!(
        notes.iter().any(|note| note.starts_with("1 turn(s) record an output length below 1")),
        "{notes:?}"
    );
}

#[test]
fn min_tokens_can_be_left_out() {
    let replay = TraceReplay { force_min_tokens: false, ..TraceReplay::default() };
    let turn = turn(replayed(SAMPLE, replay).as_ref(), "Alpha: list two harbours.");
    assert_eq!(turn.max_tokens, Some(4));
    assert_eq!(extra(&turn), json!({"hash_ids": [101, 102], "block_size": 16}));
}

#[test]
fn cache_hints_of_a_row_are_forwarded_where_it_has_some() {
    let dataset = replayed(SAMPLE, TraceReplay { speedup: 7.0, ..TraceReplay::default() });
    for (prompt, expected) in [
        ("Alpha: list two harbours.", json!({"min_tokens": 4, "hash_ids": [101, 102], "block_size": 16})),
        ("Alpha: full transcript, then four.", json!({"min_tokens": 6, "hash_ids": [101, 102, 103, 104]})),
        ("Solo request with no session.", json!({"min_tokens": 2})),
        ("Late arrival after dead air.", json!({"min_tokens": 7, "block_size": 16})),
    ] {
        assert_eq!(extra(&turn(dataset.as_ref(), prompt)), expected, "{prompt}");
    }
}

#[test]
fn cache_hints_can_be_left_out_and_are_then_not_read() {
    let replay = TraceReplay { omit_kv_hints: true, ..TraceReplay::default() };
    let dataset = replayed(SAMPLE, replay.clone());
    assert!(
        turns(dataset.as_ref())
            .iter()
            .all(|turn| { turn.extra_body.as_ref().is_some_and(|extra| extra.keys().eq(["min_tokens"])) })
    );
    // A hint that would be refused is not looked at.
    let rows = [row(json!({"total_hashes": [-1], "block_size": 0}))];
    let (_folder, path) = written(&full_schema(), &rows);
    assert!(opened(trace(&path, TraceReplay::default())).is_err());
    opened(trace(&path, replay)).unwrap().build(0).unwrap();
}

#[test]
fn canceled_rows_are_sent_counted_and_told_apart() {
    let dataset = replayed(SAMPLE, TraceReplay::default());
    let notes: Vec<String> = dataset.notes().iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.starts_with("1 row(s) record a request that its client canceled")));
    let canceled = dataset.recorded_answer(0, 1).unwrap().unwrap();
    assert_eq!(canceled.canceled, Some(true));
    assert_eq!((canceled.time_to_first_token_ms, canceled.duration_ms), (None, Some(20.0)));
    let facts = dataset.facts(0, 0..2).unwrap();
    let shown: Vec<_> =
        facts.iter().map(|facts| (facts.input_tokens, facts.output_tokens, facts.cancelled)).collect();
    assert_eq!(shown, [(Some(5), Some(3), Some(false)), (Some(8), Some(0), Some(true))]);
    assert_eq!(facts[1].hash_ids, [201, 202]);
}

#[test]
fn recorded_answers_are_reachable_by_session_and_turn() {
    let dataset = replayed(SAMPLE, TraceReplay::default());
    assert_eq!(dataset.build(1).unwrap().id.as_ref(), "7");
    let answers: Vec<_> = (0..3).map(|turn| dataset.recorded_answer(1, turn).unwrap().unwrap()).collect();
    let texts: Vec<_> = answers.iter().map(|answer| answer.text.clone().unwrap()).collect();
    assert_eq!(texts, ["Quay, Mole", "Quay, Mole, Slip", "ok"]);
    assert_eq!(answers[1].time_to_first_token_ms, Some(12.0));
    assert_eq!(dataset.recorded_answer(1, 3).unwrap(), None);
}

#[test]
fn a_speed_up_divides_times_and_think_times() {
    let replay = TraceReplay { speedup: 10.0, ..TraceReplay::default() };
    assert_eq!(starts(replayed(SAMPLE, replay.clone()).as_ref()), [0.0, 10.0, 26.0, 30.0, 42.0, 70.0, 390.0]);
    let closed = TraceReplay { open_loop: false, ..replay };
    assert_eq!(
        times(replayed(SAMPLE, closed).as_ref())[1],
        [(Some(10.0), None), (None, Some(15.0)), (None, Some(34.0))]
    );
}

#[test]
fn a_closed_loop_thinks_for_the_recorded_gap_less_the_recorded_duration() {
    let closed = TraceReplay { open_loop: false, ..TraceReplay::default() };
    let expected = [
        vec![(Some(0.0), None), (None, Some(230.0))],
        vec![(Some(100.0), None), (None, Some(150.0)), (None, Some(340.0))],
        vec![(Some(420.0), None)],
        vec![(Some(3900.0), None)],
    ];
    assert_eq!(times(replayed(SAMPLE, closed.clone()).as_ref()), expected);
    let capped = DatasetConfig {
        inter_turn_delay_cap: Some(Duration::from_millis(200)),
        ..config(DatasetSource::File(trace(data(SAMPLE), closed)))
    };
    let dataset = open(&capped, &completions()).unwrap();
    assert_eq!(times(dataset.as_ref())[1][2], (None, Some(200.0)));
}

#[test]
fn aiperf_1129_gaps_are_closed_on_the_clock_of_the_replay() {
    let cap = Some(Duration::from_millis(20));
    let open_loop = TraceReplay { speedup: 10.0, idle_gap_cap: cap, ..TraceReplay::default() };
    assert_eq!(starts(replayed(SAMPLE, open_loop).as_ref()), [0.0, 10.0, 26.0, 30.0, 42.0, 62.0, 82.0]);
    let closed = TraceReplay {
        speedup: 10.0,
        idle_gap_cap: Some(Duration::from_millis(100)),
        open_loop: false,
        ..TraceReplay::default()
    };
    assert_eq!(starts(replayed(SAMPLE, closed).as_ref()), [0.0, 10.0, 42.0, 142.0]);
}

#[test]
fn strict_replay_has_one_conversation_for_each_row() {
    let replay = TraceReplay { strict: true, speedup: 10.0, ..TraceReplay::default() };
    let dataset = replayed(SAMPLE, replay);
    assert_eq!((dataset.len(), dataset.total_turns()), (Len::Exact(7), Some(7)));
    assert_eq!(starts(dataset.as_ref()), [0.0, 10.0, 26.0, 30.0, 42.0, 70.0, 390.0]);
    assert_eq!(ids(dataset.as_ref()), ["8#0", "8#1", "7#0", "7#1", "7#2", "session_000000#0", "9#0"]);
}

#[test]
fn a_share_of_the_sessions_is_kept_whole_and_the_same_with_a_seed() {
    let replay = TraceReplay { session_sample_ratio: Some(0.5), ..TraceReplay::default() };
    let all = replayed(SAMPLE, TraceReplay::default());
    let whole: Vec<_> = ids(all.as_ref()).into_iter().zip(times(all.as_ref())).collect();
    let mut sizes = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let some = || {
            let context = OpenContext { seed, ..completions() };
            open(&config(DatasetSource::File(trace(data(SAMPLE), replay.clone()))), &context).unwrap()
        };
        let kept: Vec<_> = ids(some().as_ref()).into_iter().zip(times(some().as_ref())).collect();
        assert!(kept.iter().all(|session| whole.contains(session)), "{kept:?}");
        assert_eq!(kept, ids(some().as_ref()).into_iter().zip(times(some().as_ref())).collect::<Vec<_>>());
        sizes.insert(kept.len());
    }
    assert!(sizes.len() > 2 && !sizes.contains(&0), "{sizes:?}");
}

#[test]
fn the_window_is_in_recorded_time() {
    let source = FileDataset {
        window: (Some(100.0), Some(420.0)),
        ..trace(data(SAMPLE), TraceReplay { speedup: 10.0, ..TraceReplay::default() })
    };
    assert_eq!(starts(opened(source.clone()).unwrap().as_ref()), [10.0, 26.0, 30.0, 42.0]);
    let nothing = FileDataset { window: (Some(5000.0), None), ..source };
    let error = opened(nothing).err().unwrap().to_string();
    assert!(
        error.contains("nothing is left to send: of 7 row(s)") && error.contains("7 are outside"),
        "{error}"
    );
}

#[test]
fn the_first_conversations_can_be_asked_for() {
    let source = FileDataset { entries: Some(2), ..trace(data(SAMPLE), TraceReplay::default()) };
    assert_eq!(ids(opened(source).unwrap().as_ref()), ["8", "7"]);
}

#[test]
fn ignored_trace_delays_leave_no_times() {
    let context = OpenContext { fixed_schedule: false, ..completions() };
    let source = FileDataset {
        ignore_trace_delays: true,
        ..trace(data(SAMPLE), TraceReplay { open_loop: false, ..TraceReplay::default() })
    };
    let dataset = open(&config(DatasetSource::File(source)), &context).unwrap();
    assert!(times(dataset.as_ref()).concat().iter().all(|turn| *turn == (None, None)));
}

#[test]
fn keys_of_the_user_that_a_row_sets_are_named_once_and_a_limit_below_the_least_is_refused() {
    let with = |extra: Value, replay: TraceReplay| {
        let Value::Object(extra) = extra else { unreachable!() };
        let extra: Map<String, Value> = extra;
        let context = OpenContext { extra_inputs: Some(&extra), ..completions() };
        open(&config(DatasetSource::File(trace(data(SAMPLE), replay))), &context)
    };
    let notes = |extra: Value, replay: TraceReplay| -> Vec<String> {
        with(extra, replay).unwrap().notes().iter().map(ToString::to_string).collect()
    };
    let taken = |notes: Vec<String>| notes.iter().filter(|note| note.contains("--extra-inputs")).count();
    let extra = json!({"min_tokens": 2, "block_size": 4, "hash_ids": [], "seed": 1});
    assert_eq!(taken(notes(extra.clone(), TraceReplay::default())), 3);
    let left = TraceReplay { omit_kv_hints: true, force_min_tokens: false, ..TraceReplay::default() };
    assert_eq!(taken(notes(extra, left.clone())), 0);

    let error = with(json!({"max_tokens": 6}), TraceReplay::default()).err().unwrap().to_string();
    for part in ["row 7", "--synthesis-max-osl", "--no-force-min-tokens", "`max_tokens` to 6"] {
        assert!(error.contains(part), "{error}");
    }
    with(json!({"max_tokens": 7}), TraceReplay::default()).unwrap();
    with(json!({"max_tokens": 6}), left).unwrap();
}

#[test]
fn a_folder_a_missing_column_and_another_kind_of_file_are_refused() {
    let error = opened(trace(data("."), TraceReplay::default())).err().unwrap().to_string();
    assert!(error.contains("one file"), "{error}");
    let missing = schema(vec![
        field("timestamp_start_unix_ms", DataType::Int64),
        field("prompt", DataType::Utf8),
        field("input_tokens", DataType::Int64),
    ]);
    let error = refusal(&missing, &[row(json!({}))]);
    assert!(error.contains("column `output_tokens` is missing"), "{error}");
    let error = opened(trace(data("single_turn.jsonl"), TraceReplay::default())).err().unwrap().to_string();
    assert!(error.contains("not a parquet file"), "{error}");
    let error = opened(trace(data("absent.parquet"), TraceReplay::default())).err().unwrap().to_string();
    assert!(error.contains("absent.parquet") && error.contains("baseten_trace"), "{error}");
    let error = refusal(&full_schema(), &[]);
    assert!(error.contains("no rows"), "{error}");
}

#[test]
fn a_bad_cell_is_refused_with_its_row_and_column() {
    for (column, value, rule) in [
        ("timestamp_start_unix_ms", json!(null), "must not be null"),
        ("timestamp_start_unix_ms", json!(-1), "0 or more, is -1"),
        ("prompt", json!(null), "must not be null"),
        ("input_tokens", json!(null), "must not be null"),
        ("output_tokens", json!(-3), "0 or more, is -3"),
        ("output_tokens", json!(1_i64 << 40), "at most 4294967295"),
        ("total_hashes", json!([1, -2]), "element 2"),
        ("total_hashes", json!([null]), "element 1"),
        ("block_size", json!(0), "above 0"),
        ("request_canceled", json!(2), "true or false, 1 or 0"),
        ("duration_e2e_ms", json!(-1), "0 or more milliseconds"),
    ] {
        let rows = [row(json!({})), row(json!({ column: value }))];
        let error = refusal(&full_schema(), &rows);
        assert!(
            error.contains("t.parquet: row 2: ")
                && error.contains(&format!("column `{column}`"))
                && error.contains(rule),
            "{column}: {error}"
        );
    }
}

#[test]
fn a_column_of_another_type_is_refused_with_the_first_row() {
    let wrong = |name: &str, kind: DataType| {
        let fields = full_schema();
        let fields = fields
            .fields()
            .iter()
            .map(|old| if old.name() == name { field(name, kind.clone()) } else { old.as_ref().clone() });
        schema(fields.collect())
    };
    for (column, kind) in [
        ("prompt", DataType::Int64),
        ("input_tokens", DataType::Utf8),
        ("provided_session_id", DataType::Boolean),
        ("total_hashes", DataType::Int64),
        ("total_hashes", list(DataType::Utf8)),
        ("request_canceled", DataType::Utf8),
        ("output_text", DataType::Boolean),
    ] {
        let error = refusal(&wrong(column, kind), &[row(json!({}))]);
        assert!(
            error.contains("row 1: ") && error.contains(&format!("column `{column}`: must be")),
            "{error}"
        );
    }
}

#[test]
fn whole_numbers_may_be_of_any_width_or_floats_and_ids_of_either_kind() {
    let odd = schema(vec![
        field("timestamp_start_unix_ms", DataType::Float64),
        field("prompt", DataType::LargeUtf8),
        field("input_tokens", DataType::UInt8),
        field("output_tokens", DataType::Float32),
        field("provided_session_id", DataType::Null),
        field("poor_man_session_id", DataType::Float64),
        field("total_hashes", DataType::LargeList(Arc::new(field("element", DataType::UInt64)))),
        field("block_size", DataType::Int8),
        field("request_canceled", DataType::Boolean),
    ]);
    let rows = [
        row(json!({"poor_man_session_id": 7.0, "total_hashes": [u64::MAX], "request_canceled": true})),
        row(json!({"poor_man_session_id": 7.0, "block_size": 16, "total_hashes": null})),
    ];
    let (_folder, path) = written(&odd, &rows);
    let dataset = opened(trace(path, TraceReplay::default())).unwrap();
    assert_eq!(ids(dataset.as_ref()), ["7"]);
    let extras: Vec<Value> = turns(dataset.as_ref()).iter().map(extra).collect();
    assert_eq!(
        extras,
        [json!({"min_tokens": 1, "hash_ids": [u64::MAX]}), json!({"min_tokens": 1, "block_size": 16})]
    );
    let fraction = [row(json!({"output_tokens": 1.5}))];
    let error = refusal(&odd, &fraction);
    assert!(error.contains("row 1: column `output_tokens`: must be a whole number"), "{error}");
}

/// Many rows, some long, in sessions.
fn many() -> Vec<Value> {
    (0..700)
        .map(|n: i64| {
            row(json!({
                "timestamp_start_unix_ms": 1_700_000_000_000_i64 + n * 7919 % 5003,
                "prompt": format!("{n} {}", "lorem ".repeat((n * 37 % 400) as usize)),
                "output_tokens": n % 9,
                "poor_man_session_id": n * 13 % 90,
                "total_hashes": (0..n % 5).collect::<Vec<_>>(),
            }))
        })
        .collect()
}

fn bodies(dataset: &dyn Dataset) -> Vec<String> {
    common::build_all(dataset)
        .iter()
        .flat_map(|conversation| {
            conversation
                .turns
                .iter()
                .map(|turn| format!("{} {:?} {turn:?}", conversation.id, turn.timestamp_ms))
        })
        .collect()
}

#[test]
fn the_same_rows_are_the_same_requests_however_they_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let load = || bodies(opened(trace(&path, TraceReplay::default())).unwrap().as_ref());
    write(&path, &full_schema(), &many(), WriterProperties::default());
    let expected = load();
    assert_eq!(expected.len(), 700);
    for compression in
        [Compression::SNAPPY, Compression::ZSTD(parquet::basic::ZstdLevel::default()), Compression::LZ4_RAW]
    {
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_row_count(Some(64))
            .set_data_page_size_limit(4096)
            .build();
        write(&path, &full_schema(), &many(), properties);
        assert_eq!(load(), expected, "{compression:?}");
    }
    write_arrow(&path, &full_schema(), &many(), 50);
    assert_eq!(load(), expected);
}

#[test]
fn the_order_of_the_rows_in_the_file_changes_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let load = || {
        let mut all = bodies(opened(trace(&path, TraceReplay::default())).unwrap().as_ref());
        all.sort();
        all
    };
    write(&path, &full_schema(), &many(), WriterProperties::default());
    let expected = load();
    let mut shuffled = many();
    shuffled.sort_by_key(|row| row["prompt"].as_str().map_or(0, str::len));
    write(&path, &full_schema(), &shuffled, WriterProperties::default());
    assert_eq!(load(), expected);
}

#[test]
fn a_turn_made_by_itself_is_the_one_made_with_the_others() {
    for strict in [false, true] {
        let dataset = replayed(SAMPLE, TraceReplay { strict, open_loop: strict, ..TraceReplay::default() });
        assert!(dataset.makes_single_turns());
        for index in 0..dataset.len().known() {
            let whole = dataset.build(index).unwrap();
            for (turn, number) in whole.turns.iter().zip(0..) {
                let alone = dataset.build_turn(index, number).unwrap();
                assert_eq!((&alone.id, alone.turns.len()), (&whole.id, 1));
                assert_eq!(format!("{:?}", alone.turns[0]), format!("{turn:?}"));
            }
        }
    }
}

#[test]
fn a_survey_goes_on_after_bad_rows() {
    let rows = [row(json!({"output_tokens": -1})), row(json!({})), row(json!({"input_tokens": null}))];
    let (_folder, path) = written(&full_schema(), &rows);
    let survey = Survey::new(9);
    let context = OpenContext { survey: Some(&survey), ..completions() };
    let dataset = open(&config(DatasetSource::File(trace(path, TraceReplay::default()))), &context).unwrap();
    assert_eq!((dataset.total_turns(), dataset.position(0, 0)), (Some(1), 1));
    assert_eq!((survey.faults().1, survey.records()), (2, 3));
}

#[test]
fn on_a_chat_endpoint_the_prompt_is_a_message() {
    let tokenizer = aiperf_tokenize::Tokenizer::builtin();
    let dataset =
        open(&config(DatasetSource::File(trace(data(SAMPLE), TraceReplay::default()))), &context(&tokenizer))
            .unwrap();
    assert_eq!(turns(dataset.as_ref()).len(), 7);
}
