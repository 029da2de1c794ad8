//! Recorded agent sessions become conversations.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aiperf_config::{DatasetConfig, DatasetSource, EndpointKind};
use aiperf_dataset::public::{
    Fault, Job, LocalShard, Reading, Shard, ShardBytes, Summary, beyond_context, find, read,
};
use aiperf_dataset::{OpenContext, open};
use aiperf_types::{Content, ContextMode, Conversation};
use serde_json::{Value, json};

const VERSIONS: [(&str, &str); 2] =
    [("exgentic", "exgentic_v1_sample.parquet"), ("exgentic_v2", "exgentic_v2_sample.parquet")];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/public").join(name)
}

/// What is asked for.
#[derive(Default)]
struct Ask<'a> {
    filters: &'a [(&'a str, &'a str)],
    bound: Option<u64>,
    fixed_schedule: bool,
}

fn made_of(set: &str, shards: Vec<Shard>, ask: &Ask<'_>) -> Result<(Summary, Vec<Conversation>), Fault> {
    let set = find(set).unwrap();
    let Reading::Rows(make) = set.reading else { panic!("{} has no rows", set.name) };
    let filters: Vec<_> =
        ask.filters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let job = Job {
        set,
        origin: "here",
        filters: &filters,
        bound: ask.bound,
        tokenizer: None,
        fixed_schedule: ask.fixed_schedule,
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let summary = read(&job, &mut *make(job)?, &mut shards.into_iter().map(Ok), &store, &|| false)?;
    let config = DatasetConfig::new(DatasetSource::Stored(store));
    let context = OpenContext {
        seed: 1,
        seed_given: true,
        tokenizer: None,
        endpoint: EndpointKind::Chat,
        extra_inputs: None,
        streaming: false,
        fixed_schedule: ask.fixed_schedule,
        apply_chat_template: false,
        survey: None,
    };
    let dataset = open(&config, &context).unwrap();
    let all = (0..dataset.len().known()).map(|index| dataset.build(index).unwrap()).collect();
    Ok((summary, all))
}

fn made(set: &str, file: &Path, ask: &Ask<'_>) -> Result<(Summary, Vec<Conversation>), Fault> {
    made_of(set, vec![Shard::local("data/train.parquet", file).unwrap()], ask)
}

/// Sessions of one object a line, as exports without columns have them.
fn lines(rows: &[Value]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    file
}

fn made_of_rows(rows: &[Value], ask: &Ask<'_>) -> Result<(Summary, Vec<Conversation>), Fault> {
    let file = lines(rows);
    made_of("exgentic_v2", vec![Shard::local("train.jsonl", file.path()).unwrap()], ask)
}

fn ids(made: Result<(Summary, Vec<Conversation>), Fault>) -> Vec<String> {
    made.unwrap().1.iter().map(|conversation| conversation.id.to_string()).collect()
}

/// A conversation as the recordings of what is expected have it.
fn as_expected(conversation: &Conversation) -> Value {
    assert_eq!(conversation.context_mode, ContextMode::MessageArrayWithResponses);
    let turns: Vec<Value> = conversation
        .turns
        .iter()
        .map(|turn| {
            let Content::Messages { messages, tools } = &turn.content else { panic!("{turn:?}") };
            let mut keys = json!({
                "max_tokens": turn.max_tokens,
                "messages": messages.iter().map(|one| serde_json::from_str(one.get()).unwrap()).collect::<Vec<Value>>(),
                "headers": {"x-dynamo-session-id": conversation.source_session},
            });
            let mut set = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    keys[key] = value;
                }
            };
            set("timestamp_ms", turn.timestamp_ms.map(Value::from));
            set("delay_ms", turn.delay_ms.map(Value::from));
            set("tools", tools.as_ref().map(|tools| serde_json::from_str(tools.get()).unwrap()));
            set("extra_body", turn.extra_body.clone().map(Value::Object));
            keys
        })
        .collect();
    json!({"session_id": conversation.id, "context_mode": "message_array_with_responses", "turns": turns})
}

#[test]
fn both_versions_give_the_expected_conversations_in_a_closed_loop_and_on_a_schedule() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(data("exgentic_sample_expected.json")).unwrap()).unwrap();
    for (set, file) in VERSIONS {
        for (key, fixed_schedule) in [("closed_loop", false), ("fixed_schedule", true)] {
            let ask = Ask { bound: Some(100), fixed_schedule, ..Ask::default() };
            let (summary, all) = made(set, &data(file), &ask).unwrap();
            let all: Vec<Value> = all.iter().map(as_expected).collect();
            let expected = expected[key].as_array().unwrap();
            for (one, other) in all.iter().zip(expected) {
                assert_eq!(one, other, "{set} {key}");
            }
            assert_eq!(all.len(), expected.len());
            assert_eq!((summary.rows, summary.turns), (6, 10));
            assert_eq!(
                summary.notes[0],
                "5 recorded session(s), 10 request(s); left out: 2 failed, 1 non_llm, 1 zero_token; \
                 overlapping_calls: 1"
            );
        }
    }
}

#[test]
fn filters_choose_sessions_and_the_bound_counts_those_that_yield_something() {
    let v1 = data(VERSIONS[0].1);
    let ask = |filters| Ask { filters, bound: Some(100), ..Ask::default() };
    assert_eq!(ids(made("exgentic", &v1, &ask(&[("harness", "CLAUDE_CODE")]))), ["aa11_0001", "aa11_0006"]);
    assert_eq!(ids(made("exgentic", &v1, &ask(&[("source_model", "azure/deepseek-v3.2")]))), ["aa11_0001"]);
    let v2 = data(VERSIONS[1].1);
    assert_eq!(ids(made("exgentic_v2", &v2, &ask(&[("benchmark", "swebench")]))), ["aa11_0001"]);
    for (bound, count, rows) in [(2, 2, 2), (4, 4, 5), (5, 5, 6)] {
        // The fourth row yields nothing and counts for nothing.
        let (summary, all) = made("exgentic", &v1, &Ask { bound: Some(bound), ..Ask::default() }).unwrap();
        assert_eq!((all.len(), summary.rows), (count, rows));
    }
}

#[test]
fn a_filter_that_nothing_matches_names_the_pairs_of_the_rows_that_were_read() {
    for (set, file) in VERSIONS {
        let filters = &[("harness", "tool_calling"), ("source_model", "Kimi-K2.5")];
        let fault = made(set, &data(file), &Ask { filters, bound: Some(1), ..Ask::default() }).unwrap_err();
        assert_eq!(
            fault.what,
            "no session has harness=tool_calling, source_model=Kimi-K2.5; available combinations: \
             claude_code/DeepSeek-V3.2, claude_code/gpt-5.2-2025-12-11, openai_solo/Kimi-K2.5, \
             smolagents_code/Kimi-K2.5, tool_calling/claude-opus-4-5, \
             tool_calling_with_shortlisting/gemini-3-pro-preview"
        );
    }
}

#[test]
fn sessions_that_match_and_hold_no_call_are_another_error_than_none_that_matches() {
    let filters = &[("harness", "smolagents_code")];
    let fault = made("exgentic", &data(VERSIONS[0].1), &Ask { filters, ..Ask::default() }).unwrap_err();
    assert!(fault.what.contains("none of the 1 session(s) of harness=smolagents_code has a"), "{fault}");
}

/// A session of these spans.
fn session(id: &str, spans: &[Value]) -> Value {
    json!({"session_id": id, "harness": "tool_calling", "models": ["Kimi-K2.5"], "benchmark": "swebench", "spans": spans})
}

/// A call from second `start` to `end`, with these changes at JSON pointers.
fn call(start: f64, end: f64, changes: &[(&str, Value)]) -> Value {
    let time = |seconds: f64| format!("2026-03-01T10:00:{seconds:09.6}");
    let mut span = json!({
        "type": "llm_call",
        "start_time": time(start),
        "end_time": time(end),
        "status": {"code": 1},
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 7,
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        },
    });
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        span.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    span
}

fn delays(all: &[Conversation]) -> Vec<Option<f64>> {
    all.iter().flat_map(|one| &one.turns).map(|turn| turn.delay_ms).collect()
}

#[test]
fn attributes_are_read_in_every_layout() {
    let span = call(0.0, 1.0, &[("/attributes/gen_ai.request.temperature", json!(0.5))]);
    let as_text = {
        let mut span = span.clone();
        span["attributes"] = span["attributes"].to_string().into();
        span
    };
    let as_pairs = {
        let mut span = span.clone();
        let pairs: Vec<Value> = span["attributes"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                json!({"key": key, "value": text})
            })
            .collect();
        span["attributes"] = pairs.into();
        span
    };
    let rows = [
        session("a", std::slice::from_ref(&span)),
        session("b", &[as_text]),
        session("c", &[as_pairs]),
        session("d", &[Value::from(span.to_string())]),
        {
            let mut row = session("e", &[]);
            row["spans"] = json!([span]).to_string().into();
            row
        },
    ];
    let (_, all) = made_of_rows(&rows, &Ask::default()).unwrap();
    let turns: Vec<String> = all.iter().map(|one| format!("{:?}", one.turns)).collect();
    assert_eq!(turns.len(), 5);
    assert!(turns.iter().all(|other| *other == turns[0]), "{turns:#?}");
}

#[test]
fn status_codes_of_every_export_tell_a_failed_call() {
    for (status, kept) in [
        (json!({"code": 2}), false),
        (json!({"code": "ERROR"}), false),
        (json!({"code": "STATUS_CODE_ERROR"}), false),
        (json!("STATUS_CODE_ERROR"), false),
        (json!("{\"code\": 2}"), false),
        (json!({"code": 1}), true),
        (json!({"code": "STATUS_CODE_UNSET"}), true),
        (json!({"code": 0, "message": "ERROR"}), true),
        (json!(null), true),
    ] {
        let row = session("a", &[call(0.0, 1.0, &[]), call(1.0, 2.0, &[("/status", status.clone())])]);
        let (summary, _) = made_of_rows(&[row], &Ask::default()).unwrap();
        assert_eq!(summary.turns == 2, kept, "{status}");
    }
}

#[test]
fn a_span_without_a_type_is_a_call_when_its_operation_is_chat() {
    let of = |kind: Value, operation: &str| {
        let changes = [("/type", kind), ("/attributes/gen_ai.operation.name", json!(operation))];
        let row = session("a", &[call(0.0, 1.0, &[]), call(1.0, 2.0, &changes)]);
        made_of_rows(&[row], &Ask::default()).unwrap().0.turns
    };
    assert_eq!(of(json!(null), "chat"), 2);
    assert_eq!(of(json!(null), "execute_tool"), 1);
    assert_eq!(of(json!("llm_call"), "text_completion"), 2);
    assert_eq!(of(json!("tool_call"), "chat"), 1);
}

#[test]
fn bad_calls_name_the_session_and_the_span() {
    for (pointer, value, says) in [
        ("/attributes/gen_ai.usage.input_tokens", json!(null), "gen_ai.usage.input_tokens: is missing"),
        (
            "/attributes/gen_ai.usage.output_tokens",
            json!(1.5),
            "gen_ai.usage.output_tokens: expected an integer",
        ),
        ("/attributes/gen_ai.request.max_tokens", json!(0), "gen_ai.request.max_tokens: is 0"),
        (
            "/attributes/gen_ai.request.max_tokens",
            json!("x"),
            "gen_ai.request.max_tokens: expected an integer",
        ),
        ("/start_time", json!("2026-03-01T10:00:02"), "end_time: is before start_time"),
        ("/start_time", json!("yesterday"), "start_time: yesterday is no ISO 8601 time"),
        ("/end_time", json!(null), "end_time: is missing"),
        ("/attributes/gen_ai.input.messages", json!([]), "gen_ai.input.messages: has no message"),
        (
            "/attributes/gen_ai.request.temperature",
            json!("hot"),
            "gen_ai.request.temperature: expected a number",
        ),
    ] {
        let row = session("s1", &[call(0.0, 0.5, &[]), call(0.0, 1.0, &[(pointer, value)])]);
        let fault = made_of_rows(&[row], &Ask::default()).unwrap_err();
        let expected = format!("train.jsonl: row 1: session s1.span 1.{says}");
        assert!(fault.what.starts_with(&expected), "{} instead of {expected}", fault.what);
    }
    // What is left out is not looked at.
    let broken = call(1.0, 0.0, &[("/status", json!({"code": 2}))]);
    assert_eq!(
        made_of_rows(&[session("s", &[call(0.0, 1.0, &[]), broken])], &Ask::default()).unwrap().0.turns,
        1
    );
}

#[test]
fn a_session_that_occurs_twice_is_an_error_unless_the_bound_ends_before_it() {
    let row = session("s1", &[call(0.0, 1.0, &[])]);
    let empty = session("s1", &[]);
    let fault = made_of_rows(&[row.clone(), empty.clone(), row.clone()], &Ask::default()).unwrap_err();
    assert_eq!(fault.what, "train.jsonl: row 3: session s1 occurs twice");
    let ask = Ask { bound: Some(1), ..Ask::default() };
    assert_eq!(ids(made_of_rows(&[row.clone(), row.clone()], &ask)), ["s1"]);
    // Only sessions that are kept are compared.
    assert_eq!(ids(made_of_rows(&[empty, row], &Ask::default())), ["s1"]);
}

#[test]
fn a_call_that_overlaps_the_one_before_waits_for_nothing_and_is_counted() {
    let row = session("s", &[call(0.0, 5.0, &[]), call(1.0, 2.0, &[]), call(2.5, 3.0, &[])]);
    let (summary, all) = made_of_rows(&[row], &Ask::default()).unwrap();
    assert_eq!(delays(&all), [None, Some(0.0), Some(500.0)]);
    assert!(summary.notes[0].ends_with("overlapping_calls: 1"), "{:?}", summary.notes);
}

#[test]
fn calls_that_the_target_does_not_hold_are_counted_by_their_recorded_tokens() {
    let longer = call(1.0, 2.0, &[("/attributes/gen_ai.request.max_tokens", json!(6))]);
    let row = session("s", &[call(0.0, 1.0, &[]), longer]);
    let (summary, _) = made_of_rows(&[row], &Ask::default()).unwrap();
    let warning = |limit| beyond_context(&summary.request_tokens, limit);
    assert_eq!(warning(12), None);
    assert!(
        warning(11)
            .unwrap()
            .starts_with("1 of 2 recorded call(s) have more input and output tokens than the 11 that")
    );
    assert!(warning(0).unwrap().starts_with("2 of 2 "));
}

#[test]
fn controls_without_a_body_key_are_named_once() {
    let changes = [
        ("/attributes/gen_ai.request.choice.count", json!(1)),
        ("/attributes/gen_ai.request.x\u{1b}", json!(2)),
    ];
    let row = session("s", &[call(0.0, 1.0, &changes), call(1.0, 2.0, &changes[..1])]);
    let (summary, _) = made_of_rows(&[row], &Ask::default()).unwrap();
    assert_eq!(
        summary.notes[1],
        "3 recorded request control(s) have no body key and are not sent: choice.count, x\\u{1b}"
    );
}

#[test]
fn low_reuse_of_prefixes_is_nothing_to_speak_of() {
    let filters = &[("harness", "tool_calling_with_shortlisting")];
    let (summary, _) = made("exgentic", &data(VERSIONS[0].1), &Ask { filters, ..Ask::default() }).unwrap();
    assert_eq!(summary.notes.len(), 1);
}

/// A shard that remembers what of it was asked for.
#[derive(Debug)]
struct Watched {
    bytes: LocalShard,
    expected: Mutex<Vec<Range<u64>>>,
    asked: Mutex<Vec<Range<u64>>>,
}

impl ShardBytes for Watched {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at(&self, start: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.asked.lock().unwrap().push(start..start + buffer.len() as u64);
        self.bytes.read_at(start, buffer)
    }

    fn expect(&self, ranges: &[Range<u64>]) -> std::io::Result<()> {
        self.expected.lock().unwrap().extend(ranges.iter().cloned());
        Ok(())
    }

    fn here(&self, start: u64) -> u64 {
        let expected = self.expected.lock().unwrap();
        expected
            .iter()
            .filter(|range| range.contains(&start))
            .map(|range| range.end - start)
            .max()
            .unwrap_or(0)
    }
}

#[test]
fn spans_are_read_only_of_row_groups_with_a_session_that_is_asked_for() {
    use parquet::file::metadata::ColumnChunkMetaData;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    for (set, file) in VERSIONS {
        let path = data(file);
        let metadata = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let spans: Vec<Range<u64>> = metadata
            .metadata()
            .row_groups()
            .iter()
            .map(|group| {
                let chunks: Vec<_> = group
                    .columns()
                    .iter()
                    .filter(|chunk| chunk.column_path().string().starts_with("spans."))
                    .map(ColumnChunkMetaData::byte_range)
                    .collect();
                chunks[0].0..chunks.last().map(|(start, length)| start + length).unwrap()
            })
            .collect();
        let watched = Arc::new(Watched {
            bytes: LocalShard::open(&path).unwrap(),
            expected: Mutex::default(),
            asked: Mutex::default(),
        });
        let shard =
            Shard { name: "data/train.parquet".into(), bytes: Arc::clone(&watched) as Arc<dyn ShardBytes> };
        let filters = &[("harness", "openai_solo")];
        let ask = Ask { filters, bound: Some(1), ..Ask::default() };
        assert_eq!(ids(made_of(set, vec![shard], &ask)), ["aa11_0003"]);
        let asked = watched.asked.lock().unwrap();
        let read: Vec<bool> = spans
            .iter()
            .map(|spans| asked.iter().any(|asked| asked.start < spans.end && spans.start < asked.end))
            .collect();
        assert_eq!(read, [false, true, false], "{set}");
    }
}
