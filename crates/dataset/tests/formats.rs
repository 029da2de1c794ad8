//! What each format's records become.

mod common;

use aiperf_config::{DatasetSource, EndpointKind, FileDataset, FileFormat};
use aiperf_dataset::{DatasetError, Len, Note, OpenContext, open};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, ContextMode, MediaKind};
use common::*;

/// <https://github.com/vllm-project/vllm/issues/28104>: a dataset's name vanished where an optional package was missing.
#[test]
fn vllm_28104_every_format_that_has_a_name_is_in_the_program() {
    for format in FileFormat::ALL {
        let error = load(std::path::Path::new("no-such-file"), *format).err().unwrap();
        assert!(matches!(error, DatasetError::Missing { .. }), "{}: {error}", format.name());
    }
}

/// Commands refuse to overwrite these.
#[test]
fn the_files_of_a_folder_are_those_that_its_format_reads() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    for name in ["a.jsonl", "b.json", "c.txt", "below/d.jsonl", "below/e.json"] {
        std::fs::write(folder.path().join(name), "{}").unwrap();
    }
    let shards = tempfile::tempdir().unwrap();
    for name in ["t-00000-of-00001.parquet", "README.md"] {
        std::fs::write(shards.path().join(name), "").unwrap();
    }
    let read = |folder: &std::path::Path, format| {
        let files = aiperf_dataset::format(format).files_read(folder);
        files.iter().map(|file| file.strip_prefix(folder).unwrap().display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(read(folder.path(), FileFormat::RawPayload), ["a.jsonl"]);
    assert_eq!(read(folder.path(), FileFormat::RandomPool), ["a.jsonl", "b.json", "c.txt"]);
    assert_eq!(read(folder.path(), FileFormat::WekaTrace), ["b.json"]);
    assert_eq!(read(folder.path(), FileFormat::SagemakerDataCapture), ["a.jsonl", "below/d.jsonl"]);
    assert!(read(folder.path(), FileFormat::BurstGptTrace).is_empty());
    assert_eq!(read(shards.path(), FileFormat::MooncakeTrace), ["t-00000-of-00001.parquet"]);
    assert_eq!(read(&folder.path().join("c.txt"), FileFormat::SingleTurn), [""]);
}

/// As Python's parser has it, which whoever wrote such a record has most likely seen it with.
#[test]
fn of_two_equal_keys_in_a_record_the_last_counts() {
    let (_folder, path) = written("d.jsonl", r#"{"text": "first", "output_length": 3, "text": "last"}"#);
    let dataset = load(&path, FileFormat::SingleTurn).unwrap();
    assert_eq!(text(&dataset.build(0).unwrap().turns[0]), "last");
}

#[test]
fn single_turn_records_are_requests_and_sessions_have_no_history() {
    let dataset = load(data("single_turn.jsonl"), FileFormat::SingleTurn).unwrap();
    assert_eq!(dataset.len(), Len::Exact(4));
    assert_eq!(dataset.total_turns(), Some(5));
    let all = build_all(&*dataset);
    let ids: Vec<&str> = all.iter().map(|conversation| &*conversation.id).collect();
    assert_eq!(ids, ["session_000000", "session_000001", "session_000002", "harbour-1"]);
    assert!(
        all.iter().all(|conversation| conversation.context_mode == ContextMode::MessageArrayWithResponses)
    );

    assert_eq!(text(&all[0].turns[0]), "Name three minerals that float on mercury.");
    assert_eq!(all[0].turns[0].max_tokens, Some(12));
    let extra = all[1].turns[0].extra_body.as_ref().unwrap();
    assert_eq!(serde_json::to_string(extra).unwrap(), r#"{"temperature":0.3,"seed":11}"#);
    assert_eq!(texts(&all[2].turns[0]), ["Left panel: a red kite.", "Right panel: a blue kite."]);
    assert_eq!(all[3].turns.len(), 2);
    assert_eq!(text(&all[3].turns[1]), "Now list them again in local time.");
    assert_eq!(all[3].turns[1].delay_ms, Some(40.0));
    assert_eq!(all[3].turns[1].role.as_deref(), Some("user"));
}

#[test]
fn single_turn_media_keep_their_order_urls_and_uuids() {
    let dataset = load(data("single_turn_media.jsonl"), FileFormat::SingleTurn).unwrap();
    let media: Vec<Vec<(MediaKind, String, Option<String>)>> = build_all(&*dataset)
        .iter()
        .map(|conversation| match &conversation.turns[0].content {
            Content::Parts { media, .. } => media
                .iter()
                .map(|item| {
                    (item.kind, item.content.to_string(), item.uuid.as_ref().map(ToString::to_string))
                })
                .collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(media[0], [(MediaKind::Image, "https://img.invalid/kite.png".into(), None)]);
    assert_eq!(
        media[1],
        [
            (MediaKind::Image, "data:image/png;base64,iVBORw0KGgo=".into(), Some("u-1".into())),
            (MediaKind::Image, "https://img.invalid/b.png".into(), Some("u-2".into()))
        ]
    );
    assert_eq!(media[2], [(MediaKind::Audio, "wav,UklGRgAAAAA=".into(), None)]);
    assert_eq!(media[3], [(MediaKind::Video, "https://vid.invalid/clip.mp4".into(), None)]);
}

#[test]
fn local_media_are_embedded_when_the_turn_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("a.png");
    std::fs::write(&image, b"\x89PNG\r\n\x1a\n").unwrap();
    let path = folder.path().join("d.jsonl");
    std::fs::write(&path, format!("{{\"image\": \"{}\"}}\n", image.display())).unwrap();
    let all = build_all(&*load(&path, FileFormat::SingleTurn).unwrap());
    let Content::Parts { media, .. } = &all[0].turns[0].content else { panic!() };
    assert_eq!(&*media[0].content, "data:image/png;base64,iVBORw0KGgo=");
}

#[test]
fn images_may_be_uuids_alone() {
    let (_folder, path) = written("d.jsonl", r#"{"text": "again", "image_uuids": ["u-1", "u-2"]}"#);
    let all = build_all(&*load(&path, FileFormat::SingleTurn).unwrap());
    let Content::Parts { media, .. } = &all[0].turns[0].content else { panic!() };
    let found: Vec<_> = media.iter().map(|image| (&*image.content, image.uuid.as_deref())).collect();
    assert_eq!(found, [("", Some("u-1")), ("", Some("u-2"))]);
}

#[test]
fn an_image_is_sent_once_per_session_when_asked_for() {
    let rows = r#"
        {"session_id": "s", "images": ["data:image/png;base64,AA==", "data:image/png;base64,AA=="], "image_uuids": ["u", "u"]}
        {"session_id": "s", "images": ["data:image/png;base64,AA==", "data:image/png;base64,BB=="], "image_uuids": ["u", "v"]}
        {"session_id": "t", "images": ["data:image/png;base64,AA=="], "image_uuids": ["u"]}"#;
    let (_folder, path) = written("d.jsonl", rows.trim());
    let sent = |uuid_and_strip| {
        let source = FileDataset { uuid_and_strip, ..file(&path, FileFormat::SingleTurn) };
        let all =
            build_all(&*open(&config(DatasetSource::File(source)), &context(&Tokenizer::builtin())).unwrap());
        let turns = all.iter().flat_map(|conversation| &conversation.turns);
        let images = turns.map(|turn| {
            let Content::Parts { media, .. } = &turn.content else { panic!() };
            media
                .iter()
                .map(|image| (image.content.len(), image.uuid.as_deref().unwrap().to_owned()))
                .collect()
        });
        images.collect::<Vec<Vec<_>>>()
    };
    let image = |length, uuid: &str| (length, uuid.to_owned());
    let whole =
        [vec![image(26, "u"), image(26, "u")], vec![image(26, "u"), image(26, "v")], vec![image(26, "u")]];
    assert_eq!(sent(false), whole);
    let [first, _, other] = whole;
    assert_eq!(sent(true), [first, vec![image(0, "u"), image(26, "v")], other]);
}

#[test]
fn multi_turn_hoists_a_plain_leading_system_turn_on_chat() {
    let dataset = load(data("multi_turn.jsonl"), FileFormat::MultiTurn).unwrap();
    assert_eq!(dataset.total_turns(), Some(6));
    let all = build_all(&*dataset);
    let ids: Vec<&str> = all.iter().map(|conversation| &*conversation.id).collect();
    assert_eq!(ids, ["garden", "session_000000", "kiln"]);
    assert!(all.iter().all(|conversation| conversation.context_mode == ContextMode::DeltasWithoutResponses));
    assert_eq!(all[0].system_message.as_deref(), Some("You are a laconic gardener."));
    let turns: Vec<_> =
        all[0].turns.iter().map(|turn| (text(turn), turn.delay_ms, turn.max_tokens)).collect();
    assert_eq!(
        turns,
        [
            ("When do I prune a quince?", None, Some(6)),
            ("And a medlar?", Some(60.0), Some(6)),
            ("Summarise both.", Some(30.0), None)
        ]
    );
    let Content::Parts { texts, .. } = &all[2].turns[0].content else { panic!() };
    assert_eq!(texts[0].name.as_deref(), Some("recipe"));
    assert_eq!(texts[0].contents.len(), 2);
}

#[test]
fn multi_turn_leaves_other_system_turns_where_they_are() {
    let system = |extra: &str| format!(r#"{{"role": "system", "text": "s"{extra}}}"#);
    let user = r#"{"text": "u"}"#;
    let hoisted = |turns: &[&str]| {
        let (_folder, path) = written("d.jsonl", format!("{{\"turns\": [{}]}}", turns.join(",")));
        build_all(&*load(&path, FileFormat::MultiTurn).unwrap())[0].system_message.is_some()
    };
    assert!(hoisted(&[&system(""), user]));
    assert!(!hoisted(&[&system("")]), "the only turn");
    assert!(!hoisted(&[&system(""), &system(""), user]), "the next turn is system too");
    for extra in
        [r#", "delay": 1"#, r#", "timestamp": 0"#, r#", "output_length": 3"#, r#", "extra": {"a": 1}"#]
    {
        assert!(!hoisted(&[&system(extra), user]), "{extra}");
    }
    assert!(!hoisted(&[user, &system("")]));
}

#[test]
fn multi_turn_lines_of_a_session_are_put_together_in_file_order() {
    let (_folder, path) = written(
        "d.jsonl",
        r#"{"session_id": "a", "turns": [{"role": "system", "text": "s1"}]}
{"turns": [{"text": "x"}]}
{"session_id": "a", "turns": [{"text": "one", "session_id": "ignored"}, {"text": "two"}]}"#,
    );
    let all = build_all(&*load(&path, FileFormat::MultiTurn).unwrap());
    assert_eq!(all.len(), 2);
    assert_eq!(&*all[0].id, "a");
    assert_eq!(all[0].system_message.as_deref(), Some("s1"));
    assert_eq!(all[0].turns.iter().map(text).collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn generated_ids_avoid_recorded_ones() {
    let (_folder, path) =
        written("d.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"session_id\": \"session_000000\"}\n");
    let all = build_all(&*load(&path, FileFormat::SingleTurn).unwrap());
    assert_eq!((&*all[0].id, &*all[1].id), ("session_000001", "session_000000"));
}

#[test]
fn an_empty_session_id_is_none() {
    let (_folder, path) = written(
        "d.jsonl",
        "{\"text\": \"a\", \"session_id\": \"\"}\n{\"text\": \"b\", \"session_id\": \"\"}\n",
    );
    assert_eq!(load(&path, FileFormat::SingleTurn).unwrap().len(), Len::Exact(2));
}

#[test]
fn random_pool_of_a_folder_draws_one_entry_of_every_pool() {
    let tokenizer = Tokenizer::builtin();
    let source = FileDataset { entries: Some(40), ..file(data("random_pool_dir"), FileFormat::RandomPool) };
    let dataset = open(&config(DatasetSource::File(source)), &context(&tokenizer)).unwrap();
    let mut seen = std::collections::HashSet::new();
    for conversation in build_all(&*dataset) {
        let Content::Parts { texts, .. } = &conversation.turns[0].content else { panic!() };
        let names: Vec<_> = texts.iter().map(|group| group.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["passages", "queries"]);
        seen.insert(common::texts(&conversation.turns[0]).join("|"));
    }
    assert_eq!(seen.len(), 4, "every pair of two and two entries comes up: {seen:?}");
}

#[test]
fn random_pool_draws_a_hundred_unless_told() {
    let dataset = load(data("random_pool.jsonl"), FileFormat::RandomPool).unwrap();
    assert_eq!(dataset.len(), Len::Exact(100));
    let first = build_all(&*dataset);
    let again = build_all(&*load(data("random_pool.jsonl"), FileFormat::RandomPool).unwrap());
    for (one, other) in first.iter().zip(&again) {
        assert_eq!(texts(&one.turns[0]), texts(&other.turns[0]));
    }
}

#[test]
fn random_pool_batches_draw_single_items() {
    let tokenizer = Tokenizer::builtin();
    let source = FileDataset {
        entries: Some(200),
        pool_batch: [3, 1, 1, 1],
        ..file(data("random_pool.jsonl"), FileFormat::RandomPool)
    };
    let dataset = open(&config(DatasetSource::File(source)), &context(&tokenizer)).unwrap();
    let mut counts = std::collections::HashMap::new();
    for conversation in build_all(&*dataset) {
        assert_eq!(texts(&conversation.turns[0]).len(), 3);
        for text in texts(&conversation.turns[0]) {
            *counts.entry(text.to_owned()).or_insert(0u32) += 1;
        }
    }
    // Four items, two of them in one entry: all equally likely.
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|count| (110..190).contains(count)), "{counts:?}");
}

#[test]
fn random_pool_refuses_batches_where_pairings_have_names() {
    let tokenizer = Tokenizer::builtin();
    let refuse = |path: &std::path::Path, batch| {
        let source = FileDataset { pool_batch: batch, ..file(path, FileFormat::RandomPool) };
        open(&config(DatasetSource::File(source)), &context(&tokenizer)).err().unwrap().to_string()
    };
    let message = refuse(&data("random_pool_dir"), [2, 1, 1, 1]);
    assert!(message.contains("--prompt-batch-size") && message.contains("a folder"), "{message}");
    let (_folder, path) = written("p.jsonl", r#"{"texts": [{"name": "query", "contents": ["a"]}]}"#);
    let message = refuse(&path, [2, 1, 1, 1]);
    assert!(message.contains("named groups") && message.contains('p'), "{message}");
    let message = refuse(&data("random_pool.jsonl"), [0, 1, 1, 1]);
    for flag in ["--prompt-batch-size", "--image-batch-size", "--audio-batch-size", "--video-batch-size"] {
        assert!(message.contains(flag), "{message}");
    }
}

#[test]
fn mooncake_hash_prompts_have_the_recorded_lengths_and_share_leading_blocks() {
    for endpoint in [EndpointKind::Chat, EndpointKind::Completions] {
        let dataset = load_for(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace, endpoint).unwrap();
        let all = build_all(&*dataset);
        let tokenizer = Tokenizer::builtin();
        let tokens: Vec<Vec<u32>> = all
            .iter()
            .map(|conversation| {
                let mut tokens = Vec::new();
                tokenizer.encode(text(&conversation.turns[0]), &mut tokens);
                let known = conversation.turns[0].text_tokens;
                assert!(known.is_none_or(|known| known == tokens.len() as u64));
                tokens
            })
            .collect();
        assert_eq!(tokens.iter().map(Vec::len).collect::<Vec<_>>(), [1100, 1536, 700, 40, 1100]);
        assert_eq!(text(&all[0].turns[0]), text(&all[4].turns[0]));
        let shared = |one: &[u32], other: &[u32]| one.iter().zip(other).take_while(|(a, b)| a == b).count();
        assert!(shared(&tokens[0], &tokens[1]) >= 1024);
        assert!((512..600).contains(&shared(&tokens[0], &tokens[2])));
        assert!(shared(&tokens[0], &tokens[3]) < 40);
        assert_eq!(
            all.iter().map(|c| c.turns[0].max_tokens).collect::<Vec<_>>(),
            [Some(8), Some(5), Some(1), Some(3), None]
        );
    }
}

#[test]
fn mooncake_sessions_accumulate_and_keep_their_times() {
    let dataset = load(data("mooncake_sessions.jsonl"), FileFormat::MooncakeTrace).unwrap();
    let at = |time| (Some(time), None);
    assert_eq!(
        times(&*dataset),
        [
            ("s-a".into(), vec![at(0.0), (None, Some(70.0)), at(400.0)]),
            ("s-b".into(), vec![at(50.0)]),
            ("session_000000".into(), vec![at(150.0)])
        ]
    );
    let all = build_all(&*dataset);
    assert_eq!(all[0].context_mode, ContextMode::DeltasWithoutResponses);
    assert_eq!(text(&all[0].turns[1]), "Read the second line aloud.");
    assert_eq!(all[0].turns[2].extra_body.as_ref().unwrap()["priority"], 3);
    let tokenizer = Tokenizer::builtin();
    assert_eq!(tokenizer.count(text(&all[2].turns[0])), 24);
}

#[test]
fn mooncake_messages_are_spliced_as_authored() {
    let dataset = load(data("mooncake_messages.jsonl"), FileFormat::MooncakeTrace).unwrap();
    let all = build_all(&*dataset);
    assert_eq!(
        all.iter().map(|c| c.context_mode).collect::<Vec<_>>(),
        [ContextMode::MessageArrayWithResponses; 2]
    );
    let Content::Messages { messages, tools } = &all[0].turns[1].content else { panic!() };
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[3].get(), r#"{"role": "user", "content": "And about rain?"}"#);
    assert!(tools.is_none());
    let Content::Messages { tools, .. } = &all[1].turns[0].content else { panic!() };
    assert!(tools.as_ref().unwrap().get().starts_with(r#"[{"type": "function""#));
    assert_eq!(all[1].turns[0].extra_body.as_ref().unwrap()["tool_choice"], "auto");
}

#[test]
fn mooncake_payloads_are_sent_alone_and_their_extra_is_noted() {
    let dataset = load(data("mooncake_payload.jsonl"), FileFormat::MooncakeTrace).unwrap();
    let all = build_all(&*dataset);
    assert_eq!(payload(&all[1].turns[0]), r#"{"prompt": "Verbatim two", "max_tokens": 4}"#);
    assert!(all.iter().all(|c| c.turns[0].max_tokens.is_none() && c.turns[0].extra_body.is_none()));
    assert_eq!(dataset.notes(), [Note::ExtraBesidePayload { rows: 1 }]);
}

#[test]
fn raw_payloads_keep_every_byte() {
    let dataset = load(data("raw_payload.jsonl"), FileFormat::RawPayload).unwrap();
    let all = build_all(&*dataset);
    let source = std::fs::read_to_string(data("raw_payload.jsonl")).unwrap();
    let lines: Vec<&str> = source.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(all.iter().map(|c| payload(&c.turns[0])).collect::<Vec<_>>(), lines);
    let odd = r#"{"messages":[],"a":1e3,"b":0.10,"c":123456789012345678901234567890,"d":"\u00e9\/"}"#;
    let (_folder, path) = written("d.jsonl", format!("  {odd}  \n"));
    assert_eq!(payload(&build_all(&*load(&path, FileFormat::RawPayload).unwrap())[0].turns[0]), odd);
}

#[test]
fn raw_payload_files_of_a_folder_are_conversations_named_after_them() {
    let dataset = load(data("raw_payload_dir"), FileFormat::RawPayload).unwrap();
    let all = build_all(&*dataset);
    let found: Vec<_> = all.iter().map(|c| (&*c.id, c.turns.len())).collect();
    assert_eq!(found, [("a_first", 2), ("b_second", 1)]);
    assert_eq!(all[0].context_mode, ContextMode::MessageArrayWithResponses);
}

#[test]
fn bodies_of_other_apis_are_raw_payloads_off_chat() {
    let (_folder, path) = written("d.jsonl", r#"{"prompt": "x"}"#);
    assert!(load(&path, FileFormat::RawPayload).is_err());
    assert!(load_for(&path, FileFormat::RawPayload, EndpointKind::Completions).is_ok());
    let (_folder, path) = written("d.jsonl", r#"{"input": ["x"]}"#);
    assert!(load_for(&path, FileFormat::RawPayload, EndpointKind::Embeddings).is_ok());
}

#[test]
fn bodies_that_do_not_stream_are_noted_once() {
    let tokenizer = Tokenizer::builtin();
    let streaming = OpenContext { streaming: true, ..context(&tokenizer) };
    for (name, format) in [
        ("raw_payload.jsonl", FileFormat::RawPayload),
        ("inputs.json", FileFormat::InputsJson),
        ("mooncake_payload.jsonl", FileFormat::MooncakeTrace),
    ] {
        let dataset = open(&config(DatasetSource::File(file(data(name), format))), &streaming).unwrap();
        assert_eq!(
            dataset.notes().iter().filter(|note| **note == Note::PayloadNotStreaming).count(),
            1,
            "{name}"
        );
    }
}

#[test]
fn inputs_json_sessions_keep_their_bodies_byte_for_byte() {
    let dataset = load(data("inputs.json"), FileFormat::InputsJson).unwrap();
    assert_eq!((dataset.len(), dataset.total_turns()), (Len::Exact(2), Some(3)));
    let all = build_all(&*dataset);
    assert_eq!(all.iter().map(|c| &*c.id).collect::<Vec<_>>(), ["ferry", "tram"]);
    assert!(
        payload(&all[0].turns[1])
            .starts_with(r#"{"messages": [{"role": "user", "content": "When is the last"#)
    );
    assert_eq!(payload(&all[1].turns[0]), r#"{"prompt": "Tram map please", "max_tokens": 4}"#);
}

#[test]
fn the_first_conversations_are_kept_when_a_number_is_given() {
    let tokenizer = Tokenizer::builtin();
    for (name, format, kept) in [
        ("single_turn.jsonl", FileFormat::SingleTurn, 3),
        ("multi_turn.jsonl", FileFormat::MultiTurn, 2),
        ("mooncake_sessions.jsonl", FileFormat::MooncakeTrace, 1),
        ("raw_payload.jsonl", FileFormat::RawPayload, 2),
        ("inputs.json", FileFormat::InputsJson, 1),
    ] {
        let all = times(&*load(data(name), format).unwrap());
        let source = FileDataset { entries: Some(kept), ..file(data(name), format) };
        let some = open(&config(DatasetSource::File(source)), &context(&tokenizer)).unwrap();
        assert_eq!(some.len(), Len::Exact(kept), "{name}");
        assert_eq!(times(&*some), all[..kept as usize], "{name}");
    }
}

#[test]
fn fewer_conversations_do_not_change_their_texts() {
    let tokenizer = Tokenizer::builtin();
    let source =
        FileDataset { entries: Some(1), ..file(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace) };
    let one = open(&config(DatasetSource::File(source)), &context(&tokenizer)).unwrap().build(0).unwrap();
    let all = load(data("mooncake_hash.jsonl"), FileFormat::MooncakeTrace).unwrap().build(0).unwrap();
    assert_eq!(text(&one.turns[0]), text(&all.turns[0]));
}

#[test]
fn missing_output_limits_are_drawn_and_recorded_ones_win() {
    let tokenizer = Tokenizer::builtin();
    let mut config = config(DatasetSource::File(file(data("single_turn.jsonl"), FileFormat::SingleTurn)));
    config.osl = Some(constant(33.0));
    let all = build_all(&*open(&config, &context(&tokenizer)).unwrap());
    let limits: Vec<_> = all.iter().flat_map(|c| &c.turns).map(|turn| turn.max_tokens).collect();
    assert_eq!(limits, [Some(12), Some(33), Some(8), Some(33), Some(33)]);
    let mut config =
        common::config(DatasetSource::File(file(data("raw_payload.jsonl"), FileFormat::RawPayload)));
    config.osl = Some(constant(33.0));
    let all = build_all(&*open(&config, &context(&tokenizer)).unwrap());
    assert!(all.iter().all(|c| c.turns[0].max_tokens.is_none()));
}

#[test]
fn a_system_prompt_goes_before_the_recorded_one() {
    let tokenizer = Tokenizer::builtin();
    let mut config = config(DatasetSource::File(file(data("multi_turn.jsonl"), FileFormat::MultiTurn)));
    config.system_prompt = Some("Be brief.".into());
    let all = build_all(&*open(&config, &context(&tokenizer)).unwrap());
    assert_eq!(all[0].system_message.as_deref(), Some("Be brief.\n\nYou are a laconic gardener."));
    assert_eq!(all[1].system_message.as_deref(), Some("Be brief."));
}

#[test]
fn recorded_output_lengths_below_one_become_one_with_a_note() {
    let (_folder, path) = written(
        "d.jsonl",
        "{\"input_length\": 5, \"output_length\": 0}\n{\"input_length\": 5, \"output_length\": -3}\n\
         {\"input_length\": 5, \"output_length\": 2}\n",
    );
    let dataset = load(&path, FileFormat::MooncakeTrace).unwrap();
    let limits: Vec<_> = build_all(&*dataset).iter().map(|c| c.turns[0].max_tokens).collect();
    assert_eq!(limits, [Some(1), Some(1), Some(2)]);
    assert_eq!(dataset.notes(), [Note::OutputLengthRaised { turns: 2 }]);
}

#[test]
fn ids_without_a_seed_are_uuids_that_stay_the_same_in_a_run() {
    let tokenizer = Tokenizer::builtin();
    let unseeded = OpenContext { seed_given: false, ..context(&tokenizer) };
    let source = || config(DatasetSource::File(file(data("raw_payload.jsonl"), FileFormat::RawPayload)));
    let dataset = open(&source(), &unseeded).unwrap();
    let id = dataset.build(1).unwrap().id;
    assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'));
    assert_eq!(dataset.build(1).unwrap().id, id);
    assert_ne!(open(&source(), &OpenContext { seed: 7, ..unseeded }).unwrap().build(1).unwrap().id, id);
}

#[test]
fn numbers_come_as_integral_floats_and_strings_and_unknown_keys_are_skipped() {
    let (_folder, path) = written(
        "d.jsonl",
        r#"{"input_length": "24.0", "output_length": 3.0, "timestamp": "5", "nobody": [1, {"knows": null}], "delay": null}"#,
    );
    let dataset = load(&path, FileFormat::MooncakeTrace).unwrap();
    let turn = &dataset.build(0).unwrap().turns[0];
    assert_eq!(
        (turn.text_tokens, turn.max_tokens, turn.timestamp_ms, turn.delay_ms),
        (Some(24), Some(3), Some(5.0), None)
    );
}
