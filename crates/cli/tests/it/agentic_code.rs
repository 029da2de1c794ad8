//! `aiperf synthesize agentic-code`, as the shell sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::interrupted;

fn aiperf(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aiperf"))
        .env_clear()
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn synthesize(arguments: &[&str], directory: &Path) -> PathBuf {
    let before: BTreeSet<PathBuf> = folders(directory);
    let output = aiperf(&[&["synthesize", "agentic-code"], arguments].concat(), directory);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    folders(directory).difference(&before).next().unwrap().clone()
}

fn folders(directory: &Path) -> BTreeSet<PathBuf> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The keys below a value, with their paths; of lists the first item stands for all.
fn keys(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                keys(value, &path, into);
                into.insert(path);
            }
        }
        Value::Array(items) => {
            if let Some(item) = items.first() {
                keys(item, &format!("{path}[]"), into);
            }
        }
        _ => {}
    }
}

const FILES: [&str; 8] = [
    "cache_explorer.html",
    "cache_structure.json",
    "comparison.txt",
    "dataset.jsonl",
    "manifest.json",
    "quality.json",
    "report.html",
    "simulation.html",
];

/// The layout of the reference: every key that its files have, ours have.
#[test]
fn the_folder_has_the_files_and_keys_of_the_reference() {
    let directory = tempfile::tempdir().unwrap();
    let folder = synthesize(&["--num-sessions", "20"], directory.path());
    let name = folder.file_name().unwrap().to_str().unwrap();
    let time = name.strip_prefix("default_20s_seed42_").unwrap();
    assert!(time.len() == 15 && time.as_bytes()[8] == b'-', "{name}");
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, FILES);

    let recorded = include_str!("../data/agentic_code_keys.txt");
    let mut ours = BTreeSet::new();
    for file in ["manifest.json", "quality.json", "cache_structure.json"] {
        keys(&json(&folder.join(file)), file, &mut ours);
    }
    let missing: Vec<&str> = recorded.lines().filter(|key| !ours.contains(*key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let more: Vec<&String> = ours
        .iter()
        .filter(|key| !recorded.lines().any(|known| known == **key) && !key.contains("cache_stats"))
        .collect();
    assert_eq!(more, ["manifest.json.requested_sessions"]);

    let rows = rows(&folder.join("dataset.jsonl"));
    let of = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let kinds: BTreeSet<String> = rows.iter().map(of).collect();
    let expected = [
        "session_id input_length output_length hash_ids delay",
        "session_id input_length output_length hash_ids timestamp group_id",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let manifest = json(&folder.join("manifest.json"));
    assert_eq!((&manifest["config_name"], &manifest["num_sessions"]), (&"builtin".into(), &20.into()));
}

/// Whether a summary says count, mean, deviation of the whole, and percentiles between neighbours of these values.
fn assert_summary(found: &Value, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let std = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let percentile = |share: f64| {
        let place = share * (count - 1.0);
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    let mut expected = vec![("count", count), ("mean", mean), ("std", std), ("median", percentile(0.5))];
    for (key, share) in [("p05", 0.05), ("p25", 0.25), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99)] {
        expected.push((key, percentile(share)));
    }
    for (key, value) in &expected {
        let said = found[key].as_f64().unwrap();
        assert!((said - value).abs() < 0.0051, "{key}: {said} is said, {value} is there");
    }
    assert_eq!(found.as_object().unwrap().len(), expected.len());
}

/// The figures are those of the rows, and the blocks of the first fifty sessions add up to their contexts.
#[test]
fn the_reports_say_what_is_in_the_trace() {
    let directory = tempfile::tempdir().unwrap();
    let folder = synthesize(&["--num-sessions", "60"], directory.path());
    let rows = rows(&folder.join("dataset.jsonl"));
    let of = |key: &str, first: bool| -> Vec<f64> {
        let wanted = rows.iter().filter(|row| row.get("timestamp").is_some() == first);
        wanted.map(|row| row[key].as_f64().unwrap()).collect()
    };
    let quality = json(&folder.join("quality.json"));
    let observed = |key: &str| &quality["observed_vs_target"][key]["observed"];
    assert_summary(observed("initial_context"), of("input_length", true));
    assert_summary(observed("new_tokens_per_turn"), of("input_length", false));
    assert_summary(observed("inter_turn_delay_ms"), of("delay", false));
    let outputs = rows.iter().map(|row| row["output_length"].as_f64().unwrap()).collect();
    assert_summary(observed("generation_length"), outputs);
    // 103 whole blocks that are shared, and what a session starts with.
    let initial = &quality["observed_vs_target"]["initial_context"];
    let targets = ["target_mean", "target_median"].map(|key| initial[key].as_f64());
    assert_eq!(targets, [Some(62_736.0), Some(57_736.0)]);

    let structure = json(&folder.join("cache_structure.json"));
    let sessions = structure["sessions"].as_array().unwrap();
    assert_eq!(
        (sessions.len(), &structure["l1_blocks"], &structure["l15_blocks"]),
        (50, &63.into(), &40.into())
    );
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap();
    for (index, session) in sessions.iter().enumerate() {
        let mut context = 0;
        for (turn, at) in session["turns"].as_array().unwrap().iter().zip(0..) {
            context += number(turn, "input_length");
            assert_eq!((number(turn, "turn_index"), number(turn, "num_blocks")), (at, context.div_ceil(512)));
            let mut next = 0;
            for segment in turn["segments"].as_array().unwrap() {
                assert_eq!(number(segment, "start"), next, "{turn}");
                next += number(segment, "count");
                let cached = segment["status"] == "cached";
                match segment["layer"].as_str().unwrap() {
                    // The first session of all finds nothing, and no later turn has to bring the layers again.
                    "L1" => assert_eq!(cached, index > 0 || at > 0, "{turn}"),
                    "L1.5" => assert!(cached || at == 0, "{turn}"),
                    "L2" => assert_eq!(cached, at > 0, "{turn}"),
                    layer => assert!(layer == "L3" && !cached && at > 0, "{turn}"),
                }
            }
            assert_eq!(next, number(turn, "num_blocks"), "{turn}");
            context += number(turn, "output_length");
        }
    }
}

#[test]
fn what_is_said_names_the_files_and_shows_the_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["synthesize", "agentic-code", "--num-sessions", "5", "--output", "a/b"];
    let output = aiperf(&arguments, directory.path());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let folder = folders(&directory.path().join("a/b")).pop_first().unwrap();
    for file in FILES {
        assert!(
            said.contains(&format!("{}/{file}", folder.file_name().unwrap().to_str().unwrap())),
            "{file}"
        );
    }
    let comparison = std::fs::read_to_string(folder.join("comparison.txt")).unwrap();
    assert!(said.ends_with(&comparison) && said.contains("Validated:       mooncake_trace, "));
}

#[test]
fn the_same_arguments_give_the_same_files() {
    let directory = tempfile::tempdir().unwrap();
    let one = synthesize(&["--num-sessions", "60", "--config", "agentic-200k"], directory.path());
    let two = synthesize(&["--num-sessions", "60", "--config", "1k_sessions_200k_ctx"], directory.path());
    for file in FILES.iter().filter(|file| !file.ends_with("html") && **file != "manifest.json") {
        assert_eq!(std::fs::read(one.join(file)).unwrap(), std::fs::read(two.join(file)).unwrap(), "{file}");
    }
}

#[test]
fn a_manifest_makes_its_trace_again() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--num-sessions", "80", "--seed", "7", "--config", "agentic-200k", "--max-osl", "900"];
    let one = synthesize(&arguments, directory.path());
    let manifest = one.join("manifest.json");
    assert_eq!(json(&manifest)["requested_sessions"], 80);
    assert!(json(&manifest)["num_sessions"].as_u64().unwrap() > 80);
    let manifest = manifest.display().to_string();
    let two = synthesize(&["--num-sessions", "80", "--seed", "7", "--config", &manifest], directory.path());
    let trace = |folder: &Path| std::fs::read(folder.join("dataset.jsonl")).unwrap();
    assert_eq!(trace(&one), trace(&two));
    assert!(rows(&one.join("dataset.jsonl")).iter().all(|row| row["output_length"].as_u64().unwrap() <= 900));
}

#[test]
fn what_is_wrong_is_said_in_one_line_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("bad.json", "{\"block_size\": -3}");
    write("schema.json", "{\"$schema\": \"x\", \"type\": \"object\", \"properties\": {}}");
    write("list.json", "[]");
    let before = std::fs::read_dir(directory.path()).unwrap().count();
    for (arguments, part) in [
        (&["--num-sessions", "0"][..], "--num-sessions"),
        (&["--num-sessions", "2000000000"], "--num-sessions 2000000000 is more than 1000000"),
        (&["--seed", "-1"], "--seed"),
        (&["--seed", "1.5"], "--seed"),
        (&["--config", "missing"], "default, agentic-200k"),
        (&["--config", "bad.json"], "`block_size`"),
        (&["--config", "schema.json"], "schema"),
        (&["--config", "list.json"], "object"),
        (&["--max-isl", "52737"], "max_prompt_tokens"),
        (&["--max-osl", "0"], "--max-osl"),
    ] {
        let output = aiperf(&[&["synthesize", "agentic-code"], arguments].concat(), directory.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(part), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), before, "{arguments:?}");
    }
    write("typo.json", "{\"block_sice\": 16, \"cache\": {\"layer1\": 2}}");
    let arguments = ["synthesize", "agentic-code", "--num-sessions", "2", "--config", "typo.json"];
    let output = aiperf(&arguments, directory.path());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(said.contains("`block_sice`") && said.contains("`cache.layer1`"), "{said}");
}

#[test]
fn an_interrupt_leaves_no_half_written_folder() {
    let directory = tempfile::tempdir().unwrap();
    interrupted(&["synthesize", "agentic-code", "--num-sessions", "1000000"], directory.path());
    let nested = ["synthesize", "agentic-code", "--num-sessions", "1000000", "--output", "made/for it"];
    interrupted(&nested, directory.path());
}

#[test]
fn a_folder_that_cannot_be_made_is_a_failure_that_names_output() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let output =
        aiperf(&["synthesize", "agentic-code", "--num-sessions", "2", "--output", "file"], directory.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--output"));
}

/// Characters that two texts begin with alike.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The messages of every request, in the order of the trace: session, turn, texts.
fn sent(raw: &Path, trace: &Path) -> Vec<Vec<Vec<String>>> {
    let mut order: Vec<String> =
        rows(trace).iter().map(|row| row["session_id"].as_str().unwrap().into()).collect();
    order.dedup();
    let mut sessions: BTreeMap<String, BTreeMap<u64, Vec<String>>> = BTreeMap::new();
    for record in rows(raw) {
        let metadata = &record["metadata"];
        let texts = record["payload"]["messages"].as_array().unwrap();
        let texts = texts.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect();
        let session = metadata["conversation_id"].as_str().unwrap().to_owned();
        sessions.entry(session).or_default().insert(metadata["turn_index"].as_u64().unwrap(), texts);
    }
    order.iter().map(|id| sessions[id].values().cloned().collect()).collect()
}

/// Contexts are cut short to keep the test quick; the layers that sessions share are whole.
#[test]
fn every_bundled_trace_replays_and_shows_the_reuse_it_claims() {
    for config in ["", "default", "agentic-200k"] {
        let directory = tempfile::tempdir().unwrap();
        let mut arguments = vec!["--num-sessions", "20", "--max-isl", "70000", "--max-osl", "300"];
        if !config.is_empty() {
            arguments.extend(["--config", config]);
        }
        let folder = synthesize(&arguments, directory.path());
        let trace = folder.join("dataset.jsonl");
        let quality = json(&folder.join("quality.json"));
        let (sessions, requests) = (
            quality["session_end_stats"]["total_sessions"].to_string(),
            quality["observed_vs_target"]["generation_length"]["observed"]["count"].as_u64().unwrap(),
        );
        let output =
            aiperf(
                &[
                    &[
                        "profile",
                        "--model",
                        "m",
                        "--url",
                        "mock://?ttft=0ms&itl=0ms",
                        "--tokenizer",
                        "builtin",
                    ][..],
                    &["--input-file", trace.to_str().unwrap(), "--custom-dataset-type", "mooncake_trace"],
                    &["--no-fixed-schedule", "--concurrency", "4", "--num-conversations", &sessions],
                    &[
                        "--inter-turn-delay-cap-seconds",
                        "0.01",
                        "--export-level",
                        "raw",
                        "--artifact-dir",
                        "run",
                    ],
                    &["--random-seed", "1", "--ui", "none"],
                ]
                .concat(),
                directory.path(),
            );
        assert_eq!(output.status.code(), Some(0), "{config}: {}", String::from_utf8_lossy(&output.stderr));
        let summary = json(&directory.path().join("run/profile_export_aiperf.json"));
        assert_eq!(summary["request_count"]["avg"].as_f64(), Some(requests as f64), "{config}");
        assert!(summary.get("error_request_count").is_none_or(|errors| errors["avg"] == 0.0));

        let sessions = sent(&directory.path().join("run/profile_export_raw.jsonl"), &trace);
        let (mut hit, mut all) = (0, 0);
        for (index, turns) in sessions.iter().enumerate() {
            let shared =
                sessions[..index].iter().map(|other| common(turns[0][0].as_bytes(), other[0][0].as_bytes()));
            let shared = shared.max().unwrap_or(0);
            assert!(index == 0 || shared > 32_000, "{config}: only {shared} characters are shared");
            for (turn, texts) in turns.iter().enumerate() {
                let length: usize = texts.iter().map(String::len).sum();
                all += length;
                hit += if turn == 0 {
                    shared
                } else {
                    let before = &turns[turn - 1];
                    assert_eq!(texts[..before.len()], before[..], "{config}");
                    before.iter().map(String::len).sum()
                };
            }
        }
        let (sent, claimed) =
            (hit as f64 / all as f64, quality["cache_stats"]["hit_ratio"].as_f64().unwrap());
        assert!((sent - claimed).abs() < 0.02, "{config}: {sent} was sent, {claimed} is claimed");
    }
}
