//! Every public data set, once, through the program: a tiny one in its real layout on a stub of the Hub.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_test_servers::{Answer, Server, StubHub, StubRepo, rows};
use serde_json::{Value, json};

use crate::exgentic::session;
use crate::machine::{Machine, files_below, stderr};
use crate::public_datasets::sent;

/// Sets that can be read.
const COUNT: usize = 42;

/// How the URL of an image begins that was encoded anew.
const JPEG: &str = "data:image/jpeg;base64,/9j/";

/// A PNG file of one grey pixel.
const PIXEL: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\x9cch\x00\x00\x00\x82\x00\x81w\xcdr\xb6\x00\x00\x00\x00IEND\xaeB`\x82";

/// A set, as `aiperf datasets` tells it.
struct Set(Value);

impl Set {
    /// All that can be read.
    fn all() -> Vec<Set> {
        let output = Machine::bare().aiperf(&["datasets", "--format", "json"]);
        let mut told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let Value::Array(sets) = told["public_datasets"].take() else { panic!("{told}") };
        assert_eq!(sets.len(), COUNT);
        sets.into_iter().map(Set).collect()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0[key].as_str()
    }

    fn name(&self) -> &str {
        self.text("name").unwrap()
    }

    fn is_traces(&self) -> bool {
        self.name().contains("weka")
    }

    /// Owner, name and file of its repository on the Hub.
    fn place(&self) -> Option<(String, Option<&str>)> {
        let place = self.text("source")?.strip_prefix("hf://datasets/")?;
        let mut parts = place.splitn(3, '/');
        Some((format!("{}/{}", parts.next()?, parts.next()?), parts.next()))
    }
}

/// Rows of a set, and the texts that a run of two requests sends.
struct Case {
    rows: Vec<Value>,
    texts: Vec<String>,
}

impl Case {
    fn of(column: &str) -> Case {
        let texts = ["first question", "second question"];
        let rows = texts.map(|text| json!({column: text, "answer": "x", "other": 1}));
        Case { rows: rows.into(), texts: texts.map(str::to_owned).into() }
    }

    fn edits() -> Case {
        let rows = vec![
            json!({"code": "x = 1", "change_request": "rename x to y"}),
            json!({"code": "z = 1", "change_request": "rename z to y"}),
        ];
        let text = |name: &str| {
            format!(
                "Given a code file, please apply the change requests and generate the new file.\n\nOriginal file:\n\
                 ```python\n{name} = 1\n```\n\nChange request:\nrename {name} to y\n\nPlease generate the new code file in \
                 the \"New file\" section below."
            )
        };
        Case { rows, texts: vec![text("x"), text("z")] }
    }

    fn lists(column: &str) -> Case {
        let rows = vec![json!({column: ["Write a haiku.", "Now rhyme it."], "category": "writing"})];
        Case { rows, texts: vec!["Now rhyme it.".into(), "Write a haiku.".into()] }
    }

    fn videos() -> Case {
        let choices = |first: &str| json!({"A": first, "B": "cool", "C": ""});
        let rows = vec![
            json!({"question": " Which step is next? ", "choices": choices("heat"), "video": "https://example.org/v.mp4"}),
            json!({"question": "And then?", "choices": choices("stir"), "video": "https://example.org/w.mp4"}),
        ];
        let said = |text: &str, video: &str| {
            json!([
                {"type": "text", "text": text},
                {"type": "video_url", "video_url": {"url": format!("https://example.org/{video}.mp4")}},
            ])
        };
        let texts = [said("And then? A.stir B.cool", "w"), said("Which step is next? A.heat B.cool", "v")];
        Case { rows, texts: texts.map(|text| text.to_string()).into() }
    }

    /// A question about an image.
    fn image() -> Case {
        let rows = vec![
            json!({"question": "What colour is it?", "image": {"bytes": rows::bytes(PIXEL), "path": null}}),
        ];
        Case { rows, texts: vec![with_image("What colour is it?"); 2] }
    }

    /// Conversations with images: the first of two can be read, the other has none.
    fn chats(messages: &str, role: &str, content: &str, image: &str) -> Case {
        let row = |text: &str, image_cell: Value| {
            let said = json!({role: "human", content: text});
            // Each message of one set is in a list of its own.
            let said = if content == "content" { json!([[said]]) } else { json!([said]) };
            json!({messages: said, image: image_cell})
        };
        let cell = |bytes: &[u8]| json!({"bytes": rows::bytes(bytes), "path": "a.png"});
        let cell = |bytes: &[u8]| if image == "images" { json!([cell(bytes)]) } else { cell(bytes) };
        Case {
            rows: vec![row("<image>\nWhat is shown?", cell(PIXEL)), row("Hello", cell(b"GIF89a"))],
            texts: vec!["Hello".into(), with_image("What is shown?")],
        }
    }

    /// Clips: one that is too long and one that is none are left out.
    fn speech() -> Case {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data/public");
        let row =
            |bytes: &[u8]| json!({"audio": {"bytes": rows::bytes(bytes), "path": "a"}, "text": "HELLO"});
        let files = ["silence-30.5s.flac", "tone.flac", "tone.mp3"];
        let mut rows: Vec<Value> = files.map(|name| row(&std::fs::read(data.join(name)).unwrap())).into();
        rows.insert(1, row(b"no sound"));
        let said = json!([
            {"type": "text", "text": "Transcribe this audio."},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        ]);
        Case { rows, texts: vec![said.to_string(); 2] }
    }

    fn pairs() -> Case {
        let said = |from: &str, value: &str| json!({"from": from, "value": value});
        let rows = vec![json!({"id": "a", "conversations": [
            said("human", "What is the capital of France?"), said("gpt", "The capital of France is Paris."),
            said("human", "And what is the one of Spain?"), said("gpt", "The capital of Spain is Madrid."),
        ]})];
        Case {
            rows,
            texts: vec!["And what is the one of Spain?".into(), "What is the capital of France?".into()],
        }
    }
}

/// A text with an image, as it is sent.
fn with_image(text: &str) -> String {
    json!([{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": JPEG}}]).to_string()
}

fn case(set: &Set) -> Case {
    match set.name() {
        "aimo" | "aimo_aime" | "aimo_numina_cot" | "aimo_numina_1_5" | "spec_al_math500" => {
            Case::of("problem")
        }
        "spec_al_gsm8k" => Case::of("question"),
        "spec_al_humaneval" => Case::of("prompt"),
        "spec_al_mbpp" => Case::of("text"),
        "instruct_coder" => Case::of("instruction"),
        "blazedit_5k" | "blazedit_10k" => Case::edits(),
        "spec_al_mtbench" => Case::lists("prompt"),
        "mmvu" => Case::videos(),
        "spec_bench" => {
            let mut case = Case::lists("turns");
            case.texts = vec!["Write a haiku.".into(); 2];
            case
        }
        "sharegpt" => Case::pairs(),
        "mmstar" => Case::image(),
        "vision_arena" => Case::chats("conversation", "role", "content", "images"),
        "llava_onevision" => Case::chats("conversations", "from", "value", "image"),
        "librispeech" | "voxpopuli" | "gigaspeech" | "ami" | "spgispeech" => Case::speech(),
        "exgentic" | "exgentic_v2" => {
            Case { rows: vec![session("a", "tool_calling", 2)], texts: vec!["a 0".into(), "a 1".into()] }
        }
        name if name.contains("weka") => Case { rows: vec![trace("t1"), trace("t2")], texts: Vec::new() },
        name => panic!("{name} has no case here"),
    }
}

/// A trace of one agent.
fn trace(id: &str) -> Value {
    let request = |t: f64, tokens: u64, ids: &[u64]| json!({"t": t, "type": "n", "model": "claude", "in": tokens, "out": 5, "hash_ids": ids, "api_time": 0.01, "think_time": 0.0});
    json!({
        "id": id, "models": ["claude"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 0, "system_tokens": 0,
        "requests": [request(0.0, 64, &[0]), request(0.1, 128, &[0, 1])],
    })
}

/// The repository of a set, with its rows where the set has them.
fn repository(set: &Set, file: Option<&str>, rows: &[Value]) -> StubRepo {
    if let Some(path) = file {
        let array = Value::from(rows).to_string();
        return StubRepo::new(&[(&format!("lfs:{path}"), array.as_bytes())]);
    }
    let folder = set.text("subset").unwrap_or("data");
    let shard = format!("lfs:{folder}/{}-00000-of-00001.parquet", set.text("split").unwrap_or_default());
    let bytes = rows::parquet(rows, 1);
    let mut repo = StubRepo::new(&[("README.md", b"---\nlicense: mit\n---\n"), (&shard, &bytes)]);
    if let Some(commit) = set.text("revision") {
        let files = repo.commits.values().next().cloned().unwrap();
        repo.commits.insert(commit.to_owned(), files);
    }
    repo.gated = set.0["gated"] == true;
    repo
}

fn run(set: &Set) {
    let case = case(set);
    let (name, file) = set.place().unwrap_or_else(|| ("org/named".to_owned(), None));
    let hub = StubHub::start(&[(&name, repository(set, file, &case.rows))]);
    let mut machine = Machine::new(&hub);
    let lines = case.rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let lines: Arc<[u8]> = lines.into_bytes().into();
    let web = Server::start(move |request| match request.path() {
        "/hemingkx/Spec-Bench/fd2c1cd7d2201ef71db4c5f4e455008f017967bf/data/spec_bench/question.jsonl" => {
            Answer::file(request, &lines).with("ETag", "\"1\"")
        }
        _ => Answer::status(404),
    });
    machine.set("AIPERF_DATASET_GITHUB_ENDPOINT", &web.url());
    let named = ["--hf-weka-dataset", name.as_str()];
    let by_name = ["--public-dataset", set.name()];
    let which = if set.name() == "weka_hf" { named } else { by_name };
    let common =
        ["--tokenizer", "builtin", "--request-count", "2", "--export-level", "raw", "--random-seed", "1"];
    let arguments = [&which[..], &common].concat();
    let output = machine.profile(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}: {}", set.name(), stderr(&output));
    if !case.texts.is_empty() {
        assert_eq!(sent(&machine), case.texts, "{}", set.name());
    }
    if set.text("record") == Some("audio") {
        let summary = machine.summary();
        let seconds = summary["audio_duration"]["avg"].as_f64().unwrap();
        assert!((seconds - 0.5).abs() < 0.02 && summary["rtfx"]["avg"].is_number(), "{seconds}");
    }
    let summary = machine.summary();
    let dataset = &summary["metadata"]["dataset"];
    assert_eq!(dataset["loader"], set.name(), "{dataset}");
    assert!(dataset["revision"].is_string() && dataset["bytes_fetched"].as_u64() > Some(0), "{dataset}");
    for count in ["rows_read", "conversations", "requests"] {
        assert!(dataset[count].as_u64() > Some(0), "{}: {count} in {dataset}", set.name());
    }
    assert_eq!(summary["request_count"]["avg"], 2.0, "{}", set.name());
    // Sets that are streamed, and no others, are read by ranges.
    let ranges = machine.cache().join("ranges").is_dir();
    assert_eq!(ranges, set.0["streamed"] == true, "{}", set.name());
    // Again, from the cache alone.
    let first = raw_texts(&machine);
    machine.set("HF_HUB_OFFLINE", "1");
    let output = machine.profile(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}: {}", set.name(), stderr(&output));
    assert_eq!(raw_texts(&machine), first, "{}", set.name());
    assert_eq!(machine.summary()["metadata"]["dataset"]["bytes_fetched"], 0, "{}", set.name());
}

#[test]
fn an_endpoint_that_cannot_take_a_set_is_refused_before_the_network() {
    let hub = StubHub::start(&[]);
    let machine = Machine::new(&hub);
    let refused = |set: &Set, endpoint: &str| {
        let which = if set.name() == "weka_hf" {
            ["--hf-weka-dataset", "a/b"]
        } else {
            ["--public-dataset", set.name()]
        };
        let output =
            machine.profile(&[&which[..], &["--endpoint-type", endpoint, "--request-count", "1"]].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{}: {text}", set.name());
        assert!(text.contains(&format!("--endpoint-type {endpoint} takes")), "{}: {text}", set.name());
    };
    for set in Set::all() {
        let record = set.text("record").unwrap();
        if ["image", "video", "audio", "trace", "session"].iter().any(|word| record.contains(word)) {
            refused(&set, "embeddings");
        }
        if ["sharegpt", "spec_bench", "mmstar"].contains(&set.name()) {
            refused(&set, "nim-rankings");
        }
    }
    assert!(hub.log().is_empty());
}

/// A gateway that answers with a page of its own, and calls it the file.
#[test]
fn a_page_that_comes_in_place_of_a_file_does_not_stay_in_the_cache() {
    let mut machine = Machine::bare();
    let page = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&page);
    let web = Server::start(move |request| {
        if !request.path().ends_with("/question.jsonl") {
            return Answer::status(404);
        }
        let file: &[u8] = if still.load(Ordering::Relaxed) {
            b"<html><body>Sign in</body></html>"
        } else {
            b"{\"turns\": [\"Write a haiku.\"]}\n             "
        };
        Answer::file(request, &file.into()).with("ETag", "\"1\"")
    });
    machine.set("AIPERF_DATASET_GITHUB_ENDPOINT", &web.url());
    let run = || {
        machine.profile(&["--public-dataset", "spec_bench", "--tokenizer", "builtin", "--request-count", "1"])
    };
    let output = run();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("Cannot use public dataset spec_bench (http://"), "{text}");
    assert!(text.contains("question.jsonl: row 1 is no JSON object"), "{text}");
    let kept = files_below(&machine.cache());
    assert!(kept.iter().all(|path| !path.components().any(|part| part.as_os_str() == "files")), "{kept:?}");
    page.store(false, Ordering::Relaxed);
    let output = run();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// The messages of all requests, in order.
fn raw_texts(machine: &Machine) -> Vec<String> {
    let path: &Path = &machine.home.path().join("out/profile_export_raw.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let messages = |line| {
        let record: Value = serde_json::from_str(line).unwrap();
        // What was answered is the mock's matter.
        let messages = record["payload"]["messages"].as_array().unwrap();
        let said = messages.iter().filter(|message| message["role"] != "assistant");
        said.map(|message| message["content"].to_string()).collect::<Vec<_>>().join("\n")
    };
    let mut all: Vec<String> = text.lines().map(messages).collect();
    all.sort();
    all
}

#[test]
fn each_set_of_conversations_runs_and_runs_again_offline() {
    for set in Set::all().iter().filter(|set| !set.is_traces()) {
        run(set);
    }
}

#[test]
fn each_set_of_traces_runs_and_runs_again_offline() {
    for set in Set::all().iter().filter(|set| set.is_traces()) {
        run(set);
    }
}

/// A Hub with traces in the repository of `--hf-weka-dataset`.
fn hub_of_traces(traces: &[Value]) -> (StubHub, Machine) {
    let shards: Vec<(String, Vec<u8>)> = traces
        .iter()
        .enumerate()
        .map(|(number, trace)| {
            (
                format!("lfs:data/train-{number:05}-of-9.parquet"),
                rows::parquet(std::slice::from_ref(trace), 1),
            )
        })
        .collect();
    let files: Vec<(&str, &[u8])> =
        shards.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let hub = StubHub::start(&[("org/traces", StubRepo::new(&files))]);
    let machine = Machine::new(&hub);
    (hub, machine)
}

fn profile_traces(machine: &Machine, more: &[&str]) -> std::process::Output {
    let common = ["--hf-weka-dataset", "org/traces", "--tokenizer", "builtin", "--random-seed", "1"];
    machine.profile(&[&common[..], more].concat())
}

#[test]
fn traces_that_are_too_long_are_left_out_before_they_are_counted() {
    let mut long = trace("long");
    long["requests"][1]["in"] = json!(640);
    long["requests"][1]["hash_ids"] = json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let (_hub, machine) = hub_of_traces(&[long, trace("a"), trace("b"), trace("c")]);
    let bound = ["--max-context-length", "300", "--num-dataset-entries", "2", "--request-count", "50"];
    let output = profile_traces(&machine, &bound);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let dataset = machine.summary()["metadata"]["dataset"].clone();
    assert_eq!((&dataset["conversations"], &dataset["requests"]), (&json!(2), &json!(4)), "{dataset}");
    // The long one and the two that are kept; the last is not looked at.
    assert_eq!(dataset["rows_read"], 3, "{dataset}");
    assert_eq!((&dataset["loader"], &dataset["hf_dataset_name"]), (&json!("weka_hf"), &json!("org/traces")));
}

#[test]
fn recorded_times_of_traces_are_played_when_they_are_asked_for() {
    let (_hub, machine) = hub_of_traces(&[trace("a"), trace("b")]);
    let output = profile_traces(&machine, &["--fixed-schedule"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = machine.summary();
    assert_eq!(summary["request_count"]["avg"], 4.0);
    assert_eq!(summary["input_config"]["phases"][0]["type"], "fixed_schedule");
}

#[test]
fn what_is_wrong_with_traces_is_said_with_the_shard_and_the_row() {
    let mut odd = trace("odd");
    odd["block_size"] = json!(0);
    for (traces, parts) in [
        (vec![trace("a"), trace("a")], &["trace `a` is in", "data/train-00001-of-9.parquet: row 1"][..]),
        (vec![odd], &["block_size", "data/train-00000-of-9.parquet: row 1"]),
    ] {
        let (_hub, machine) = hub_of_traces(&traces);
        let output = profile_traces(&machine, &[]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("Cannot use public dataset weka_hf (hf://datasets/org/traces@"), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn a_repository_of_traces_is_named_alone() {
    let (hub, machine) = hub_of_traces(&[trace("a")]);
    for arguments in [
        &["--hf-weka-dataset", "org/traces", "--public-dataset", "aimo"][..],
        &["--hf-weka-dataset", "org/traces", "--custom-dataset-type", "weka_trace"],
        &["--hf-weka-dataset", "traces"],
        &["--hf-weka-dataset", "org/traces/data"],
    ] {
        let output = machine.profile(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--hf-weka-dataset"), "{}", stderr(&output));
    }
    let output = machine.profile(&["--public-dataset", "weka-hf"]);
    assert!(stderr(&output).contains("needs --hf-weka-dataset"), "{}", stderr(&output));
    assert!(hub.log().is_empty());
}
