//! Traces of chats, of tables and of captured calls, and the questions of SPEED-Bench.

mod common;

use aiperf_config::{DatasetSource, EndpointKind, FileDataset, FileFormat};
use aiperf_dataset::{Dataset, DatasetError, Note, OpenContext, open};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, ContextMode};
use common::*;

fn encode(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    Tokenizer::builtin().encode(text, &mut tokens);
    tokens
}

fn tokens(text: &str) -> usize {
    encode(text).len()
}

/// Opens a file as a schedule with more than its format set.
fn scheduled(file: FileDataset) -> Result<std::sync::Arc<dyn Dataset>, DatasetError> {
    let tokenizer = Tokenizer::builtin();
    let context = OpenContext { fixed_schedule: true, ..context(&tokenizer) };
    open(&config(DatasetSource::File(file)), &context)
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn first_times(dataset: &dyn Dataset) -> Vec<(String, f64)> {
    (0..dataset.len().known())
        .map(|index| {
            let time = dataset.outline(index).first_timestamp_ms().unwrap();
            (dataset.build(index).unwrap().id.to_string(), time)
        })
        .collect()
}

#[test]
fn a_first_row_without_a_time_that_leaves_a_run_without_schedule_is_told() {
    let told = |lines: &[&str], no_schedule: bool| -> Vec<String> {
        let (_folder, path) = written("d.jsonl", lines.join("\n"));
        let file = FileDataset { no_schedule, ..file(&path, FileFormat::MooncakeTrace) };
        let tokenizer = Tokenizer::builtin();
        let dataset = open(&config(DatasetSource::File(file)), &context(&tokenizer)).unwrap();
        dataset
            .notes()
            .iter()
            .map(|note| note.to_string().replace(&path.display().to_string(), "d"))
            .collect()
    };
    let (untimed, timed) = ("{\"input_length\":4}", "{\"input_length\":4,\"timestamp\":5}");
    let notes = told(&["", untimed, timed], false);
    assert!(
        notes.len() == 1 && notes[0].starts_with("d:2: field `timestamp`: the first record"),
        "{notes:?}"
    );
    for (lines, no_schedule) in
        [(&[untimed, timed][..], true), (&[untimed, untimed], false), (&[timed, untimed], false)]
    {
        assert_eq!(told(lines, no_schedule), Vec::<String>::new(), "{lines:?}");
    }
}

#[test]
fn bailian_chats_form_chains_from_their_roots() {
    let dataset = schedule(data("bailian.jsonl"), FileFormat::BailianTrace).unwrap();
    let all = build_all(&*dataset);
    let turns: Vec<(&str, usize)> = all.iter().map(|one| (&*one.id, one.turns.len())).collect();
    assert_eq!(turns, [("501", 3), ("502", 1), ("505", 1)]);
    let times: Vec<f64> =
        all.iter().flat_map(|one| &one.turns).map(|turn| turn.timestamp_ms.unwrap()).collect();
    for (time, expected) in times.iter().zip([12_100.0, 12_400.0, 12_600.0, 12_180.0, 12_300.0]) {
        assert!((time - expected).abs() < 1e-6, "{times:?}");
    }
    let limits: Vec<u64> =
        all.iter().flat_map(|one| &one.turns).map(|turn| turn.max_tokens.unwrap()).collect();
    assert_eq!(limits, [6, 5, 3, 4, 2]);
    let lengths: Vec<usize> = all.iter().flat_map(|one| &one.turns).map(|turn| tokens(text(turn))).collect();
    assert_eq!(lengths, [40, 56, 16, 32, 20]);
    // Blocks of 16: the second request begins with the two full blocks of the first, 502 with one of them.
    let ids = |turn| encode(text(turn));
    let (first, second) = (ids(&all[0].turns[0]), ids(&all[0].turns[1]));
    assert_eq!(first[..32], second[..32]);
    assert_ne!(first[32..40], second[32..40]);
    assert_eq!(first[..16], ids(&all[1].turns[0])[..16]);
}

#[test]
fn bailian_prompts_that_repeat_the_history_are_sent_alone_and_counted() {
    let dataset = load(data("bailian.jsonl"), FileFormat::BailianTrace).unwrap();
    assert_eq!(dataset.build(0).unwrap().context_mode, ContextMode::MessageArrayWithResponses);
    assert!(dataset.notes().contains(&Note::Histories { repeated: 1, added: 0 }));
    let lines = [
        r#"{"chat_id": 1, "timestamp": 0, "input_length": 32, "output_length": 1, "hash_ids": [1, 2]}"#,
        r#"{"chat_id": 2, "parent_chat_id": 1, "timestamp": 1, "input_length": 16, "output_length": 1, "hash_ids": [3]}"#,
        r#"{"chat_id": 3, "timestamp": 0, "input_length": 8, "output_length": 1, "hash_ids": [4]}"#,
        r#"{"chat_id": 4, "parent_chat_id": 3, "timestamp": 1, "input_length": 16, "output_length": 1, "hash_ids": [5]}"#,
    ];
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    let dataset = load(&path, FileFormat::BailianTrace).unwrap();
    assert_eq!(dataset.build(0).unwrap().context_mode, ContextMode::DeltasWithoutResponses);
    assert_eq!(dataset.build(1).unwrap().context_mode, ContextMode::DeltasWithoutResponses);
    assert!(dataset.notes().contains(&Note::Histories { repeated: 0, added: 2 }));
}

#[test]
fn bailian_rows_of_a_session_go_by_turn_and_ties_by_their_place() {
    let row = |chat: i64, parent: i64, turn: i64, output: u64| {
        format!(
            r#"{{"chat_id": {chat}, "parent_chat_id": {parent}, "timestamp": 1, "input_length": 1, "output_length": {output}, "turn": {turn}}}"#
        )
    };
    let lines = [row(9, 8, 3, 1), row(8, 7, 2, 2), row(20, -1, 1, 9), row(7, -1, 1, 3), row(8, 7, 2, 4)];
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    let all = build_all(&*load(&path, FileFormat::BailianTrace).unwrap());
    let limits =
        |index: usize| all[index].turns.iter().map(|turn| turn.max_tokens.unwrap()).collect::<Vec<_>>();
    assert_eq!((&*all[0].id, limits(0)), ("7", vec![3, 2, 4, 1]));
    assert_eq!((&*all[1].id, limits(1)), ("20", vec![9]));
}

#[test]
fn bailian_parents_outside_the_window_are_missing_parents() {
    let dataset =
        schedule_within(data("bailian.jsonl"), FileFormat::BailianTrace, (Some(12_180.0), Some(12_400.0)))
            .unwrap();
    let ids: Vec<String> = build_all(&*dataset).iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids, ["502", "503", "505"]);
    assert!(dataset.notes().contains(&Note::OutsideWindow { rows: 2 }));
}

#[test]
fn bailian_rules_name_field_and_line() {
    for (line, expected) in [
        (r#"{"timestamp": 1, "input_length": 1, "output_length": 1}"#, "field `chat_id`: is missing"),
        (r#"{"chat_id": 1, "input_length": 1, "output_length": 1}"#, "field `timestamp`: is missing"),
        (r#"{"chat_id": 1, "timestamp": 1, "input_length": 1}"#, "field `output_length`: is missing"),
        (
            r#"{"chat_id": 1, "timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": null}"#,
            "field `hash_ids`: must be a list, is null",
        ),
        (
            r#"{"chat_id": 1, "timestamp": 1, "input_length": 40, "output_length": 1, "hash_ids": [1, 2, 3, 4]}"#,
            "4 blocks of 16 tokens do not fit an input of 40 tokens",
        ),
        (
            r#"{"chat_id": 1, "timestamp": 1, "input_length": -4, "output_length": 1}"#,
            "field `input_length`: must be 0 or more, is -4",
        ),
    ] {
        let message = refusal(FileFormat::BailianTrace, &[line]);
        assert!(message.starts_with("d.jsonl:1: ") && message.contains(expected), "{message}");
    }
    let message = refusal(
        FileFormat::BailianTrace,
        &[
            r#"{"chat_id": 1, "timestamp": 1, "input_length": 16, "output_length": 1, "hash_ids": [7]}"#,
            r#"{"chat_id": 2, "timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [7]}"#,
        ],
    );
    assert!(
        message.contains("d.jsonl:2: ") && message.contains("block 7 has 9 tokens here and 16"),
        "{message}"
    );
}

#[test]
fn bailian_sessions_of_several_turns_need_an_endpoint_that_takes_them() {
    let lines = [
        r#"{"chat_id": 1, "timestamp": 0, "input_length": 8, "output_length": 1}"#,
        r#"{"chat_id": 2, "parent_chat_id": 1, "timestamp": 1, "input_length": 16, "output_length": 1}"#,
    ];
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    let error =
        load_for(&path, FileFormat::BailianTrace, EndpointKind::Completions).err().unwrap().to_string();
    assert!(error.contains("session `1`") && error.contains("completions"), "{error}");
    // Prompts that repeat the history are requests of their own.
    load_for(data("bailian.jsonl"), FileFormat::BailianTrace, EndpointKind::Completions).unwrap();
}

#[test]
fn recorded_outputs_below_1_become_1_in_every_trace() {
    let (_folder, path) =
        written("d.jsonl", r#"{"chat_id": 1, "timestamp": 0, "input_length": 8, "output_length": -3}"#);
    let bailian = load(&path, FileFormat::BailianTrace).unwrap();
    let (_folder, path) = written("d.csv", "Timestamp,Request tokens,Response tokens\n1,5,0\n");
    let burst = load(&path, FileFormat::BurstGptTrace).unwrap();
    let azure = load(data("azure_llm.csv"), FileFormat::AzureLlmTrace).unwrap();
    for (dataset, index) in [(bailian, 0), (burst, 0), (azure, 1)] {
        assert_eq!(dataset.build(index).unwrap().turns[0].max_tokens, Some(1));
        assert!(dataset.notes().contains(&Note::OutputLengthRaised { turns: 1 }), "{:?}", dataset.notes());
    }
}

#[test]
fn burst_gpt_rows_are_requests_and_rows_that_are_no_numbers_are_counted() {
    let dataset = schedule(data("burst_gpt.csv"), FileFormat::BurstGptTrace).unwrap();
    let all = build_all(&*dataset);
    assert_eq!(all.iter().map(|one| tokens(text(&one.turns[0]))).collect::<Vec<_>>(), [30, 18, 25, 22]);
    assert_eq!(all.iter().map(|one| one.turns[0].max_tokens.unwrap()).collect::<Vec<_>>(), [4, 2, 3, 6]);
    let times: Vec<f64> = first_times(&*dataset).iter().map(|(_, time)| *time).collect();
    assert_eq!(times, [5000.0, 5120.0, 5120.0, 5450.0]);
    assert!(dataset.notes().contains(&Note::RowsOfTable { read: 5, kept: 4, skipped: 1, first: 5 }));
}

#[test]
fn tables_may_be_quoted_reordered_and_have_windows_line_ends() {
    let text = "\u{feff}\"Response tokens\",\"Model, big\",Timestamp,Request tokens\r\n3,\"a, \"\"b\"\"\",1.5,5.0\r\n\r\n4,x,2,\r\n";
    let (_folder, path) = written("d.csv", text);
    assert_eq!(detect(&path).unwrap().format, FileFormat::BurstGptTrace);
    let dataset = schedule(&path, FileFormat::BurstGptTrace).unwrap();
    assert_eq!(dataset.len().known(), 1);
    assert_eq!(dataset.build(0).unwrap().turns[0].max_tokens, Some(3));
    assert!(dataset.notes().contains(&Note::RowsOfTable { read: 2, kept: 1, skipped: 1, first: 4 }));
}

#[test]
fn a_table_without_a_column_or_without_a_row_of_numbers_says_so() {
    let message = refusal(FileFormat::BurstGptTrace, &["Timestamp,Request tokens,Total", "1,2,3"]);
    assert!(message.contains("field `Response tokens`: the file has no such column"), "{message}");
    let message = refusal(FileFormat::AzureLlmTrace, &["TIMESTAMP,GeneratedTokens", "1,2,3"]);
    assert!(message.contains("field `ContextTokens`"), "{message}");
    let header = "Timestamp,Request tokens,Response tokens";
    for (row, found) in [
        (
            "x,2,3",
            "field `Timestamp`: expected a number of seconds, found x; none of the 2 row(s) can be read",
        ),
        ("inf,2,3", "field `Timestamp`: expected a number of seconds, found inf;"),
        ("1,2.5,3", "field `Request tokens`: expected a whole number of tokens, found 2.5;"),
        ("1,2,many", "field `Response tokens`: expected a whole number of tokens, found many;"),
        ("1,2,", "field `Response tokens`: there is no value"),
        ("1;2;3", "field `Timestamp`: there is no value: the cell is empty, or the row has other cells"),
    ] {
        let message = refusal(FileFormat::BurstGptTrace, &[header, row, "y,z,"]);
        assert!(message.contains("d.jsonl:2: ") && message.contains(found), "{message}");
        assert!(
            message.contains("correct the file, or name its type with --custom-dataset-type"),
            "{message}"
        );
    }
    let columns = "TIMESTAMP,ContextTokens,GeneratedTokens";
    let message = refusal(FileFormat::AzureLlmTrace, &[columns, "yesterday,1,2"]);
    assert!(
        message.contains("field `TIMESTAMP`: expected a date with a time of day, found yesterday"),
        "{message}"
    );
    let message = refusal(FileFormat::BurstGptTrace, &["Timestamp,Request tokens,Response tokens", "1,-2,3"]);
    assert!(message.contains("d.jsonl:2: field `Request tokens`: must be 0 or more, is -2"), "{message}");
}

#[test]
fn azure_times_count_from_the_earliest_row_and_keep_their_fractions() {
    let dataset = schedule(data("azure_llm.csv"), FileFormat::AzureLlmTrace).unwrap();
    let times: Vec<f64> = first_times(&*dataset).iter().map(|(_, time)| *time).collect();
    for (time, expected) in times.iter().zip([500.5, 0.0, 2000.5, 4250.5]) {
        assert!((time - expected).abs() < 1e-6, "{times:?}");
    }
    let lengths: Vec<usize> = build_all(&*dataset).iter().map(|one| tokens(text(&one.turns[0]))).collect();
    assert_eq!(lengths, [31, 12, 40, 20]);
    assert!(dataset.notes().contains(&Note::RowsOfTable { read: 5, kept: 4, skipped: 1, first: 5 }));
    // The window is on the same clock.
    let file = FileDataset {
        window: (Some(500.5), Some(2000.5)),
        ..file(data("azure_llm.csv"), FileFormat::AzureLlmTrace)
    };
    let dataset = scheduled(file).unwrap();
    assert_eq!(dataset.len().known(), 2);
    assert!(dataset.notes().contains(&Note::OutsideWindow { rows: 2 }));
    // Without a schedule there are no times to wait for.
    let dataset = load(data("azure_llm.csv"), FileFormat::AzureLlmTrace).unwrap();
    assert_eq!(dataset.outline(0).first_timestamp_ms(), None);
}

#[test]
fn captured_calls_go_by_their_time_with_messages_tools_and_limit() {
    let dataset = schedule(data("sagemaker_capture.jsonl"), FileFormat::SagemakerDataCapture).unwrap();
    let times: Vec<f64> = first_times(&*dataset).iter().map(|(_, time)| *time).collect();
    assert_eq!(times, [0.0, 250.0, 400.0]);
    let all = build_all(&*dataset);
    let limits: Vec<Option<u64>> = all.iter().map(|one| one.turns[0].max_tokens).collect();
    assert_eq!(limits, [Some(4), Some(6), None]);
    let parts: Vec<(usize, bool)> = all
        .iter()
        .map(|one| match &one.turns[0].content {
            Content::Messages { messages, tools } => (messages.len(), tools.is_some()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(parts, [(2, false), (1, false), (1, true)]);
    // What else was asked for is asked for again.
    let extra = serde_json::to_string(all[0].turns[0].extra_body.as_ref().unwrap()).unwrap();
    assert_eq!(extra, r#"{"temperature":0.5}"#);
    assert!(all[1].turns[0].extra_body.is_none());
    assert!(dataset.notes().contains(&Note::ParametersReplayed { names: vec!["temperature".into()] }));
}

#[test]
fn captured_calls_of_all_files_of_a_folder_are_on_one_clock() {
    let lines = std::fs::read_to_string(data("sagemaker_capture.jsonl")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (number, line) in lines.lines().enumerate() {
        let hour = folder.path().join(format!("hour{number}"));
        std::fs::create_dir(&hour).unwrap();
        std::fs::write(hour.join("calls.jsonl"), line).unwrap();
    }
    std::fs::write(folder.path().join("README.md"), "no calls").unwrap();
    let dataset = schedule(folder.path(), FileFormat::SagemakerDataCapture).unwrap();
    let times: Vec<f64> = first_times(&*dataset).iter().map(|(_, time)| *time).collect();
    assert_eq!(times, [0.0, 250.0, 400.0]);
}

#[test]
fn errors_of_captured_calls_name_the_event() {
    let call = |data: &str, encoding: &str, time: &str| {
        format!(
            r#"{{"captureData": {{"endpointInput": {{"data": {data}, "encoding": "{encoding}"}}}}, "eventMetadata": {{"eventId": "evt-9", "inferenceTime": "{time}"}}}}"#
        )
    };
    let noon = "2026-02-03T12:00:00Z";
    for (line, expected) in [
        (call(r#""{}""#, "JSON", noon), "`captured request.messages`: is missing"),
        (call(r#""[1]""#, "JSON", noon), "must be a JSON object, found a list"),
        (call(r#""%%%""#, "BASE64", noon), "not valid BASE64"),
        (call(r#""{}""#, "CSV", noon), "must be JSON or BASE64, is CSV"),
        (call(r#""{}""#, "JSON", "noon"), "expected an ISO 8601 time"),
    ] {
        let message = refusal(FileFormat::SagemakerDataCapture, &[&line]);
        assert!(message.contains(expected) && message.contains("(event evt-9)"), "{message}");
    }
    let message = load_for(
        data("sagemaker_capture.jsonl"),
        FileFormat::SagemakerDataCapture,
        EndpointKind::Completions,
    )
    .err()
    .unwrap()
    .to_string();
    assert!(message.contains("sagemaker_data_capture") && message.contains("completions"), "{message}");
}

#[test]
fn questions_of_speed_bench_are_conversations_of_their_messages() {
    let path = data("speed_bench/qualitative.jsonl");
    let all = build_all(&*load(&path, FileFormat::SpeedBenchQualitative).unwrap());
    let ids: Vec<&str> = all.iter().map(|one| &*one.id).collect();
    assert_eq!(ids[0], "0123456789abcdef0123456789abcdef");
    assert_eq!(all.iter().map(|one| one.turns.len()).collect::<Vec<_>>(), [2, 2, 1]);
    // A leading system message is a request like any other.
    assert_eq!(all[0].turns[0].role.as_deref(), Some("system"));
    assert!(all[0].system_message.is_none());
    assert_eq!(all[0].context_mode, ContextMode::DeltasWithoutResponses);
    let coding = build_all(&*load(&path, FileFormat::SpeedBenchCoding).unwrap());
    assert_eq!(coding.len(), 2);
    let error = load(&path, FileFormat::SpeedBenchRag).err().unwrap().to_string();
    assert!(
        error.contains("nothing is left to send") && error.contains("3 row(s) are of another category"),
        "{error}"
    );
}

#[test]
fn rules_of_speed_bench_name_the_message() {
    let row = |id: &str, messages: &str| {
        format!(r#"{{"question_id": "{id}", "category": "qa", "messages": {messages}}}"#)
    };
    let id = "0".repeat(32);
    let fetch = r#"[{"role": "user", "content": "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"}]"#;
    for (line, expected) in [
        (row("short", r#"[{"role": "user", "content": "a"}]"#), "must have 32 characters, has 5"),
        (row(&id, "[]"), "`messages`: must not be empty"),
        (row(&id, r#"[{"role": "user", "content": " "}]"#), "`messages[0].content`: must not be blank"),
        (
            row(&id, r#"[{"role": "user", "content": "a"}, {"content": "b"}]"#),
            "`messages[1].role`: is missing",
        ),
        (row(&id, fetch), "fetch the full data"),
    ] {
        let message = refusal(FileFormat::SpeedBenchQualitative, &[&line]);
        assert!(message.contains("d.jsonl:1: ") && message.contains(expected), "{message}");
    }
    let line = row(&id, r#"[{"role": "user", "content": "a"}]"#);
    let message = refusal(FileFormat::SpeedBenchQualitative, &[&line, &line]);
    assert!(message.contains("d.jsonl:2: ") && message.contains("occurs twice"), "{message}");
}

#[test]
fn the_first_conversations_are_the_first_of_the_whole_file() {
    // 70 chats, then the second turn of the first.
    let mut lines: Vec<String> = (0..70)
        .map(|chat| {
            format!(r#"{{"chat_id": {chat}, "timestamp": {chat}, "input_length": 1, "output_length": 1}}"#)
        })
        .collect();
    lines.push(
        r#"{"chat_id": 900, "parent_chat_id": 0, "timestamp": 99, "input_length": 1, "output_length": 1, "turn": 2}"#
            .into(),
    );
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    let first = |path: &std::path::Path, format| {
        scheduled(FileDataset { entries: Some(1), ..file(path, format) }).unwrap()
    };
    let bailian = first(&path, FileFormat::BailianTrace);
    assert_eq!((bailian.len().known(), bailian.build(0).unwrap().turns.len()), (1, 2));
    let captured = first(&data("sagemaker_capture.jsonl"), FileFormat::SagemakerDataCapture);
    assert_eq!(captured.build(0).unwrap().turns[0].max_tokens, Some(4));
    // The earliest row counts though it is not among them.
    let mut rows = vec!["2024-05-10 00:00:09,1,1".to_owned(); 70];
    rows.insert(0, "TIMESTAMP,ContextTokens,GeneratedTokens".into());
    rows.push("2024-05-10 00:00:01,1,1".into());
    let (_folder, path) = written("d.csv", rows.join("\n"));
    let azure = first(&path, FileFormat::AzureLlmTrace);
    assert_eq!(azure.outline(0).first_timestamp_ms(), Some(8000.0));
}

#[test]
fn a_long_table_without_a_schedule_is_read_beside_the_run() {
    let mut text = "Timestamp,Request tokens,Response tokens\n".to_owned();
    for row in 0..5000 {
        text.push_str(if row == 4000 { "x,1,1\n" } else { "1,2,3\n" });
    }
    let (_folder, path) = written("d.csv", text);
    let dataset = load(&path, FileFormat::BurstGptTrace).unwrap();
    assert_eq!(dataset.wait_for(u64::MAX).known(), 4999);
    assert_eq!(dataset.total_turns(), Some(4999));
    assert!(dataset.notes().contains(&Note::RowsOfTable { read: 5000, kept: 4999, skipped: 1, first: 4002 }));
}

#[test]
fn an_input_of_no_tokens_is_told_and_one_with_blocks_is_not() {
    for (row, turns) in [
        (r#"{"input_length": 0, "output_length": 3, "hash_ids": []}"#, Some(1)),
        (r#"{"input_length": 0, "output_length": 3}"#, Some(1)),
        (r#"{"input_length": 5, "output_length": 3}"#, None),
    ] {
        let (_folder, path) = written("d.jsonl", row);
        let notes = load(&path, FileFormat::MooncakeTrace).unwrap().notes();
        let expected: Vec<Note> = turns.map(|turns| Note::InputLengthRaised { turns }).into_iter().collect();
        assert_eq!(notes, expected, "{row}");
    }
}

#[test]
fn outputs_that_a_multiplier_makes_longer_than_any_answer_are_refused() {
    let (_folder, path) = written("d.jsonl", r#"{"input_length": 5, "output_length": 3}"#);
    let mut file = file(&path, FileFormat::MooncakeTrace);
    file.synthesis.output_len = 1e300;
    let tokenizer = Tokenizer::builtin();
    let opened = open(&config(DatasetSource::File(file.clone())), &context(&tokenizer));
    let message = opened.err().unwrap().to_string();
    assert!(
        message.contains("d.jsonl:1: ") && message.contains("--synthesis-output-len-multiplier"),
        "{message}"
    );
    file.synthesis.max_osl = Some(7);
    assert!(open(&config(DatasetSource::File(file.clone())), &context(&tokenizer)).is_ok());
    // What makes outputs shorter makes none too long.
    let (_folder, path) = written("d.jsonl", r#"{"input_length": 5, "output_length": 60000000}"#);
    file.path = path;
    (file.synthesis.max_osl, file.synthesis.output_len) = (None, 0.5);
    assert!(open(&config(DatasetSource::File(file.clone())), &context(&tokenizer)).is_ok());
    // The column is named as the file names it.
    let (_folder, path) =
        written("d.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,5,3\n");
    (file.path, file.format, file.synthesis.output_len) = (path, FileFormat::AzureLlmTrace, 1e300);
    let opened = open(&config(DatasetSource::File(file)), &context(&tokenizer));
    let message = opened.err().unwrap().to_string();
    assert!(message.contains("d.csv:2: ") && message.contains("GeneratedTokens"), "{message}");
}
