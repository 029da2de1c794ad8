//! `input_config` and the command line of the results, against the reference's own.

use aiperf_cli::environment::Environment;
use aiperf_cli::settle::settle;
use aiperf_cli::typed::Typed;
use serde_json::{Map, Value, json};

use crate::support::{Told, data, path};

fn load(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path(&format!("tests/data/{name}"))).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Files are named in the data without their folder.
fn in_place(argument: &str) -> String {
    let is_there = path("tests/data/files").join(argument).exists() && !argument.is_empty();
    if is_there { data(argument) } else { argument.to_owned() }
}

/// Settles, and gives what was made of it with the folder of the files left out again.
fn ours(arguments: &[String], scheduled: Option<u64>) -> (Value, String) {
    let arguments: Vec<String> = arguments.iter().map(|argument| in_place(argument)).collect();
    let settled = Typed::parse(&arguments)
        .and_then(|typed| settle(&typed, &Environment::default(), &Told::default()))
        .unwrap_or_else(|error| panic!("{arguments:?}: {}", error.report()));
    let mut config = settled.config;
    if let Some(turns) = scheduled {
        config.note_scheduled_turns(turns);
    }
    let folder = data("");
    let text = config.input_config.to_string().replace(&folder, "");
    (serde_json::from_str(&text).unwrap(), config.cli_command.replace(&folder, ""))
}

/// Flags of a golden command that are not there yet, with the number of their values, and where their trace is.
const LATER: &[(&str, usize, &str)] = &[
    ("--export-outputs-json", 0, "/artifacts/export_outputs_json"),
    ("--slice-duration", 1, "/artifacts/slice_duration"),
    ("--goodput", 1, "/slos"),
    ("--gpu-telemetry", 1, "/gpu_telemetry"),
    ("--server-metrics-formats", 4, "/server_metrics"),
];

fn remove(value: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    if let Some(Value::Object(parent)) = value.pointer_mut(parent) {
        parent.shift_remove(key);
    }
}

#[test]
fn the_golden_commands_give_their_input_config() {
    let cases = load("golden.json");
    assert_eq!(cases.as_object().unwrap().len(), 13);
    for (name, case) in cases.as_object().unwrap() {
        let mut arguments = texts(&case["command"]);
        let mut expected = case["input_config"].clone();
        let mut removed = Vec::new();
        for (flag, values, pointer) in LATER {
            if let Some(at) = arguments.iter().position(|argument| argument == flag) {
                arguments.drain(at..=at + values);
                remove(&mut expected, pointer);
                removed.push(*pointer);
            }
        }
        // What was written for these two without their flags: nothing is collected yet.
        let (mut ours, _) = ours(&arguments, Some(8));
        for pointer in removed {
            remove(&mut ours, pointer);
        }
        assert_eq!(ours, expected, "{name}");
        // Key order too: readers of CSV-like tools see it.
        assert_eq!(ours.to_string(), expected.to_string(), "{name}");
    }
}

#[test]
fn the_golden_commands_are_recorded_as_the_reference_records_them_but_for_changed_words() {
    for (name, case) in load("golden.json").as_object().unwrap() {
        let arguments = texts(&case["command"]);
        if LATER.iter().any(|(flag, ..)| arguments.iter().any(|argument| argument == flag)) {
            continue;
        }
        let (_, command) = ours(&arguments, None);
        // The reference prints the word `none` as `None`.
        let expected = case["cli_command"].as_str().unwrap().replace("--ui None", "--ui 'none'");
        assert_eq!(command, expected, "{name}");
    }
}

/// Where ours says something else on purpose: run, pointer, our value (`null` removes the key).
fn on_purpose(name: &str) -> Vec<(&'static str, Value)> {
    let mut changes = Vec::new();
    match name {
        // Collectors that are not there yet are not on.
        "b_def" => {
            changes.push(("/gpu_telemetry", json!({"enabled": false})));
            changes.push(("/server_metrics", json!({"enabled": false})));
        }
        // A view that was chosen stays.
        "verb2" | "b_ver" => changes.push(("/runtime/ui", json!("none"))),
        // How many requests are sent says nothing of how many conversations are read.
        "st" | "mt" | "d_raw" | "c_fsend" => changes.push(("/datasets/0/entries", Value::Null)),
        // Ours is honoured for generated text too, and so it is written.
        "synth" => changes.push(("/datasets/0/inter_turn_delay_cap_seconds", json!(2.0))),
        _ => {}
    }
    changes
}

/// Runs that ours refuses on purpose, with what the refusal says.
const REFUSED: &[(&str, &str)] =
    &[("synth2", "--isl-block-size needs a data file"), ("b_synth", "--isl-block-size needs a data file")];

#[test]
fn other_commands_give_what_the_reference_gave() {
    for run in load("input-config.json").as_array().unwrap() {
        let name = run["name"].as_str().unwrap();
        let arguments = texts(&run["arguments"]);
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            let arguments: Vec<String> = arguments.iter().map(|argument| in_place(argument)).collect();
            let error = Typed::parse(&arguments)
                .and_then(|typed| settle(&typed, &Environment::default(), &Told::default()))
                .unwrap_err();
            assert!(error.report().contains(reason), "{name}: {}", error.report());
            continue;
        }
        let mut expected = run["reference"].clone();
        for (pointer, value) in on_purpose(name) {
            if value.is_null() {
                remove(&mut expected, pointer);
                continue;
            }
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            expected.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().insert(key.into(), value);
        }
        if name == "fs6" {
            // The reference promotes all the same, and reads only as many conversations as requests.
            let phase = expected.pointer_mut("/phases/0").and_then(Value::as_object_mut).unwrap();
            phase.insert("type".into(), json!("concurrency"));
            remove(&mut expected, "/datasets/0/entries");
        }
        let (ours, _) = ours(&arguments, Some(5));
        assert_eq!(ours, expected, "{name}");
        if name != "synth" {
            assert_eq!(ours.to_string(), expected.to_string(), "{name}");
        }
    }
}

#[test]
fn secrets_are_not_in_the_input_config() {
    let arguments: Vec<String> = [
        "profile",
        "--model",
        "m",
        "--api-key",
        "planted1",
        "-H",
        "Authorization: planted2",
        "-H",
        "{\"X-Api-Key\":\"planted3\"}",
        "--url",
        "http://me:planted4@h/v1?sig=planted5",
    ]
    .map(str::to_owned)
    .to_vec();
    let (config, command) = ours(&arguments, None);
    assert!(!format!("{config} {command}").contains("planted"), "{config} {command}");
    let headers: Map<String, Value> = serde_json::from_value(config["endpoint"]["headers"].clone()).unwrap();
    assert_eq!(headers["Authorization"], "<redacted>");
    let settled = Typed::parse(&arguments)
        .and_then(|typed| settle(&typed, &Environment::default(), &Told::default()))
        .unwrap();
    assert!(!format!("{:?}", settled.config).contains("planted"));
}

/// As the reference wrote it for this command: at the end of the endpoint, after what was typed of it.
#[test]
fn uuid_and_strip_stands_with_the_endpoint() {
    let line = "profile --model demo --url http://127.0.0.1:8000 --endpoint-type chat --custom-dataset-type single_turn \
                --input-file single_turn.jsonl --uuid-and-strip --tokenizer builtin --ui none --request-count 1";
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (config, _) = ours(&arguments, None);
    let endpoint = json!({"urls": ["http://127.0.0.1:8000"], "type": "chat", "uuid_and_strip": true});
    assert_eq!(config["endpoint"].to_string(), endpoint.to_string());
    assert_eq!(config["datasets"][0]["format"], "single_turn");
}
