//! No credential in any output, stream or cache file: what is secret carries a mark, and the mark is looked for.

use std::process::Command;
use std::sync::OnceLock;

use aiperf_source::{Event, Events, Reference, Settings, Sources, Stop};
use aiperf_test_servers::{Answer, Server, StubHub, StubRepo, StubStore};

use crate::machine::{MANIFEST, Machine, TRACE, files_below, stderr, stdout};

/// In every secret of these tests, however it is written.
const MARK: &str = "canary";

/// Every way in which a URL may be signed.
const SIGNATURES: [&str; 8] = [
    "X-Amz-Signature=canary1&X-Amz-Credential=canary2&X-Amz-Security-Token=canary3&X-Amz-Date=20200101T000000Z&X-Amz-Expires=60",
    "AWSAccessKeyId=canary1&Signature=canary2&Expires=1577836800",
    "X-Goog-Signature=canary1&X-Goog-Credential=canary2",
    "GoogleAccessId=canary1&Signature=canary2&Expires=1",
    "sv=2020&se=2020-01-01&sig=canary1",
    "Key-Pair-Id=canary1&Signature=canary2&Policy=canary3",
    "access_token=canary1&api_key=canary2&password=canary3",
    "x-amz-signature=canary1&x-amz-credential=canary2",
];

/// What a person may see or find of a machine.
#[derive(Default)]
struct Seen(String);

impl Seen {
    fn run(&mut self, machine: &Machine, arguments: &[&str], code: i32) {
        let output = machine.aiperf(arguments);
        let said = stderr(&output) + &stdout(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        self.0 += &said;
        for path in files_below(machine.home.path()) {
            self.0 += &path.display().to_string();
            self.0 += &String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default());
        }
        self.check(&format!("{arguments:?}"));
    }

    /// What is refused, one way or another.
    fn fails(&mut self, machine: &Machine, arguments: &[&str]) {
        let output = machine.aiperf(arguments);
        self.0 = stderr(&output) + &stdout(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {}", self.0);
        self.check(&format!("{arguments:?}"));
    }

    fn check(&self, after: &str) {
        let Some(at) = self.0.find(MARK) else { return };
        let shown: String = self.0[..at + 40].chars().rev().take(400).collect();
        panic!("after {after}: {}", shown.chars().rev().collect::<String>());
    }
}

const RUN: [&str; 9] = [
    "profile",
    "--model",
    "m",
    "--url",
    "mock://?ttft=1ms&itl=0ms",
    "--output-artifact-dir",
    "out",
    "--log-level",
    "TRACE",
];

fn profile(reference: &str) -> Vec<&str> {
    [&RUN[..], &["--input-file", reference, "--custom-dataset-type", "mooncake_trace"]].concat()
}

#[test]
fn signatures_of_urls_stay_secret_in_every_outcome() {
    let good = Server::start(|request| match request.path() {
        "/x.jsonl" => Answer::file(request, &TRACE.into()).with("ETag", "\"a\""),
        "/moved.jsonl" => Answer::status(302).with(
            "Location",
            format!("/x.jsonl?{}", request.target.split_once('?').map_or("", |(_, query)| query)),
        ),
        "/astray.jsonl" => {
            Answer::status(302).with("Location", "http://127.0.0.1:9/x?X-Amz-Signature=canary9")
        }
        "/file.jsonl" => Answer::status(302).with("Location", "file:///x?sig=canary9"),
        "/loop.jsonl" => Answer::status(302).with("Location", request.target.clone()),
        "/denied.jsonl" => Answer::status(403).body(request.target.clone().into_bytes()),
        "/gone.jsonl" => Answer::status(410),
        "/odd.jsonl" => Answer::status(418),
        "/coded.jsonl" => Answer::status(200).with("Content-Encoding", "br"),
        "/busy.jsonl" => Answer::status(503).with("Retry-After", "9999"),
        "/short.jsonl" => Answer {
            cut_after: Some(9),
            ..Answer::file(request, &TRACE.into()).with("ETag", "W/\"a\"").with("Retry-After", "0")
        },
        _ => Answer::status(404),
    });
    let mut seen = Seen::default();
    for signature in SIGNATURES {
        let url = |name: &str| format!("{}/{name}.jsonl?part=1&{signature}", good.url());
        let mut machine = Machine::bare();
        seen.run(&machine, &profile(&url("x")), 0);
        seen.run(&machine, &["dataset", "fetch", "--json", &url("moved")], 0);
        // Offline: found, and not found.
        machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
        seen.run(&machine, &["dataset", "resolve", &url("x")], 0);
        seen.run(&machine, &["dataset", "resolve", &url("none")], 2);
    }
    assert!(seen.0.contains("part=1") && seen.0.contains("<redacted>"));
    let url = |name: &str| format!("{}/{name}.jsonl?part=1&{}", good.url(), SIGNATURES[0]);
    let machine = Machine::bare();
    for (name, code) in [
        ("none", 2),
        ("denied", 2),
        ("gone", 2),
        ("odd", 1),
        ("coded", 1),
        ("busy", 1),
        ("file", 1),
        ("loop", 1),
        ("astray", 1),
        ("short", 1),
    ] {
        seen.run(&machine, &profile(&url(name)), code);
    }
    for arguments in [
        &["dataset", "resolve", &url("denied")][..],
        &["dataset", "fetch", &url("none"), &url("x")],
        &["dataset", "resolve", "https://canary:canary@h/x.jsonl"],
        &["dataset", "resolve", "ftp://canary:canary@h/x?token=canary"],
        &["dataset", "resolve", "https://h/?sig=canary"],
        &["dataset", "resolve", "s3://b/k?versionId=1&X-Amz-Signature=canary"],
        &["dataset", "publish-check", &url("x")],
        &["analyze-trace", &url("x")],
        &["profile", "--model", "m", "--url", "mock://", "--input-file", &url("x"), "--no-such-flag", "1"],
        &["profile", "--model", "m", "--url", "mock://", "--input-file", &url("x"), "--concurrency", "none"],
    ] {
        seen.run(&machine, arguments, if arguments[0] == "analyze-trace" { 0 } else { 2 });
    }
    // One that asks for another attempt at once is cut three times.
    assert!(
        good.log()
            .iter()
            .filter(|request| request.path() == "/short.jsonl" && request.method == "GET")
            .count()
            >= 3
    );
}

/// What a person types where a reference is expected, with a password of any signs, or a scheme that is mistyped.
fn mistyped() -> Vec<String> {
    let mut texts = Vec::new();
    for sign in [" ", "\t", "\n", "'", "\"", "<", "/", "?", "#"] {
        for scheme in ["http", "https", "s3", "hf"] {
            texts.push(format!("{scheme}://me:canary{sign}canary@127.0.0.1:9/x.jsonl"));
        }
    }
    texts.extend(
        [
            "https:/me:canary@127.0.0.1:9/x.jsonl",
            "https//me:canary@127.0.0.1:9/x.jsonl?X-Amz-Signature=canary",
            "127.0.0.1:9/x.jsonl?part=1&X-Amz-Signature=canary",
            "hf:/me:canary@org/x.jsonl",
            "hf://org/set@v1?token=canary",
            "hf://org/set/a?token=canary/../x",
            "s3://bucket/x?token=canary",
            "gs://me:canary canary@bucket/x",
        ]
        .map(str::to_owned),
    );
    texts
}

#[test]
fn a_reference_that_cannot_be_used_is_not_repeated_with_its_password() {
    let machine = Machine::bare();
    let mut seen = Seen::default();
    for text in mistyped() {
        for arguments in [
            &["dataset", "resolve", &text][..],
            &["dataset", "resolve", "--json", &text],
            &["dataset", "fetch", &text],
            &["dataset", "publish-check", &text],
            &["analyze-trace", &text],
            &["validate", "auto", &text],
            &["anonymize", &text, "--output", "x"],
            &profile(&text),
            &["profile", "--model", "m", "--url", &text, "--concurrency", "none"],
            &["profile", &text],
            &["dataset", "resolve", "a", &text],
            &[&text],
        ] {
            // Each is tried through the first two commands, and a few through all of them.
            let is_few = text.contains(' ') || text.contains("canary/") || text.contains("X-Amz");
            if is_few || arguments.starts_with(&["dataset", "resolve"]) {
                seen.fails(&machine, arguments);
            }
        }
    }
}

#[test]
fn what_names_a_server_or_a_tokenizer_is_not_repeated_with_its_password() {
    let mut seen = Seen::default();
    for address in [
        "u:canary@127.0.0.1:9",
        "canary@127.0.0.1:9",
        "127.0.0.1:9/?t=canary",
        "http://127.0.0.1:9/?t=canary",
        "http://127.0.0.1:9/#canary",
        "ftp://u:canary@127.0.0.1:9",
    ] {
        for (variable, reference) in
            [("HF_ENDPOINT", "hf://me/chat"), ("AWS_ENDPOINT_URL", "s3://traces/x.jsonl")]
        {
            let mut machine = Machine::bare();
            machine.set(variable, address);
            seen.run(&machine, &["dataset", "resolve", reference], 2);
            assert!(seen.0.contains("AWS_ENDPOINT_URL") || seen.0.contains("HF_ENDPOINT is "), "{}", seen.0);
        }
    }
    let machine = Machine::bare();
    std::fs::write(machine.home.path().join("x.jsonl"), TRACE).unwrap();
    for name in ["u:canary@me/tok", "canary@me/tok", "u:can/canary@me/tok", "me/tok?token=canary"] {
        seen.run(&machine, &[&profile("x.jsonl")[..], &["--tokenizer", name]].concat(), 2);
    }
}

#[test]
fn a_key_that_was_typed_as_a_name_is_neither_repeated_nor_sent() {
    let hub = StubHub::start(&[("me/chat", StubRepo::new(&[("x.jsonl", TRACE)]))]);
    let machine = Machine::new(&hub);
    std::fs::write(machine.home.path().join("x.jsonl"), TRACE).unwrap();
    let key = format!("hf_{}", "canary".repeat(5));
    let mut seen = Seen::default();
    for reference in
        ["hf://K/y", "hf://me/K", "hf://me/chat@K", "hf://me/chat/K", "hf://me/chat@main/K/x.jsonl"]
    {
        let reference = reference.replace('K', &key);
        for arguments in [
            &["dataset", "resolve", &reference][..],
            &["dataset", "resolve", "--json", &reference],
            &["dataset", "fetch", &reference],
            &["validate", "auto", &reference],
            &["validate", "auto", &reference, "--format", "json"],
            &["analyze-trace", &reference],
            &profile(&reference),
        ] {
            seen.fails(&machine, arguments);
        }
    }
    let named = format!("me/{key}");
    let owned = format!("{key}/tok");
    for name in [&key, &named, &owned] {
        let tokenizer = ["--tokenizer", name];
        seen.fails(&machine, &[&profile("x.jsonl")[..], &tokenizer].concat());
        let weka = ["--hf-weka-dataset", name];
        seen.fails(&machine, &[&RUN[..], &weka].concat());
        seen.fails(&machine, &[&["dataset", "fetch"][..], &weka].concat());
    }
    let revision = ["--tokenizer", "me/tok", "--tokenizer-revision", &key];
    seen.fails(&machine, &[&profile("x.jsonl")[..], &revision].concat());
    for set in ["spec_al_gsm8k", "exgentic", "sharegpt"] {
        let subset = ["--public-dataset", set, "--hf-subset", &key];
        seen.fails(&machine, &[&RUN[..], &subset].concat());
        seen.fails(&machine, &[&["dataset", "fetch"][..], &subset].concat());
    }
    let sent: Vec<String> = hub.log().iter().map(|request| request.target.clone()).collect();
    // A revision may be any word: only its answer is not repeated.
    assert!(sent.iter().all(|target| !target.contains(MARK) || target.contains("me/tok")), "{sent:?}");
}

#[test]
fn parameters_that_open_a_link_stay_secret_in_a_run_that_succeeds() {
    let server = Server::start(|request| match request.path() {
        "/x.jsonl" => Answer::file(request, &TRACE.into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let mut seen = Seen::default();
    for query in [
        "sig=canary canary'canary&part=1",
        "part=1&rlkey=canary",
        "md5=canary_canary-canary&expires=1795995000&part=1",
        "part=1&q-ak=canary&tk=canary&ticket=canary&share_key=canary",
        "a=b?sig=canary&part=1",
        "part=1&url=http://u:canary@h",
        "part=1&url=http%3A%2F%2Fh%2Fx%3Fsig%3Dcanary",
    ] {
        let machine = Machine::bare();
        let url = format!("{}/x.jsonl?{query}", server.url());
        seen.run(&machine, &profile(&url), 0);
        seen.run(&machine, &["dataset", "fetch", "--json", &url], 0);
        seen.run(&machine, &["dataset", "resolve", &url.replace("/x.", "/none.")], 2);
    }
    assert!(seen.0.contains("part=1") && seen.0.contains("expires=1795995000"));
}

#[test]
fn the_token_of_the_hub_stays_secret_in_every_outcome() {
    let hub = StubHub::start(&[
        ("org/trace", StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:trace.jsonl", TRACE)])),
        ("org/off", StubRepo { disabled: true, ..StubRepo::default() }),
        ("org/bad", StubRepo::new(&[("aiperf.json", b"{\"path\": \"hf_canary\"}")])),
        ("org/wrong", StubRepo::new(&[("lfs:x.jsonl", TRACE), ("lfs:y.jsonl", TRACE)])),
    ]);
    hub.fault(|request| {
        let wrong = request.target.contains("Signature=") && request.target.contains("x%2Ejsonl");
        wrong.then(|| Answer::status(200).body(vec![b'x'; TRACE.len()]))
    });
    let mut seen = Seen::default();
    let elsewhere = tempfile::tempdir().unwrap();
    // One that is refused, one that is accepted, and one that no header can hold.
    for (token, works) in [("hf_canary", false), ("hf_good", true), ("hf_canary\nx", false)] {
        let mut machine = Machine::new(&hub);
        machine.set("HF_TOKEN", token);
        if works {
            machine.variables.retain(|(name, _)| name != "HF_TOKEN");
            let path = elsewhere.path().join("token");
            std::fs::write(&path, token).unwrap();
            machine.set("HF_TOKEN_PATH", path.to_str().unwrap());
        }
        seen.run(
            &machine,
            &[&RUN[..], &["--input-file", "hf://org/trace"]].concat(),
            if works { 0 } else { 2 },
        );
        for reference in
            ["hf://org/none", "hf://org/off", "hf://org/trace@v9", "hf://org/trace/none", "hf://org"]
        {
            seen.run(&machine, &profile(reference), 2);
        }
        if works {
            assert!(!seen.0.contains("hf_good"));
            seen.run(&machine, &["dataset", "fetch", "hf://org/wrong/x.jsonl"], 2);
            seen.run(&machine, &["dataset", "fetch", "--json", "hf://org/wrong/y.jsonl"], 0);
        }
    }
    // What the publisher writes is not ours to hide; who asks for it is.
    let machine = Machine::new(&hub);
    let output = machine.aiperf(&["dataset", "resolve", "hf://org/bad"]);
    assert!(!stderr(&output).contains("hf_good"));
    assert!(hub.storage_log().iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn the_keys_of_aws_stay_secret_in_every_outcome() {
    let store = StubStore::start(&[("p/aiperf.json", MANIFEST), ("p/trace.jsonl", TRACE)]);
    let machine = || {
        let mut machine = Machine::bare();
        for (name, value) in [
            ("AWS_ENDPOINT_URL_S3", store.endpoint().as_str()),
            ("AWS_ACCESS_KEY_ID", "AKIAcanary"),
            ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
            ("AWS_SESSION_TOKEN", "canary-session"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ] {
            machine.set(name, value);
        }
        machine
    };
    let mut seen = Seen::default();
    seen.run(&machine(), &[&RUN[..], &["--input-file", "s3://traces/p/"]].concat(), 0);
    for (status, code) in [
        (403, "AccessDenied"),
        (403, "InvalidAccessKeyId"),
        (403, "SignatureDoesNotMatch"),
        (403, "RequestTimeTooSkewed"),
        (400, "ExpiredToken"),
        (404, "NoSuchKey"),
    ] {
        // A server that repeats what it was sent.
        store.fault(move |request| {
            let told = request.header("authorization").unwrap_or_default().to_owned();
            let body = format!("<Error><Code>{code}</Code><Message>{told}</Message></Error>");
            Some(Answer::status(status).body(body.into_bytes()))
        });
        let machine = machine();
        seen.run(&machine, &profile("s3://traces/p/x.jsonl"), 2);
        seen.run(&machine, &["dataset", "fetch", "s3://traces/p/"], 2);
    }
    // A program of a profile that says something, and keys that cannot be written into a header.
    let mut machine = machine();
    machine.variables.retain(|(name, _)| !name.starts_with("AWS_ACCESS") && !name.starts_with("AWS_SE"));
    let elsewhere = tempfile::tempdir().unwrap();
    let config = elsewhere.path().join("config");
    std::fs::write(&config, "[default]\ncredential_process = sh -c 'echo canary; echo canary >&2; exit 3'\n")
        .unwrap();
    machine.set("AWS_CONFIG_FILE", config.to_str().unwrap());
    seen.run(&machine, &profile("s3://traces/p/x.jsonl"), 2);
    machine.set("AWS_ACCESS_KEY_ID", "AKIA\ncanary");
    machine.set("AWS_SECRET_ACCESS_KEY", "canary");
    seen.run(&machine, &profile("s3://traces/p/x.jsonl"), 2);
}

#[test]
fn secrets_in_data_that_are_to_be_published_are_found_and_not_repeated() {
    let machine = Machine::bare();
    let set = machine.home.path().join("set");
    std::fs::create_dir(&set).unwrap();
    let secrets =
        ["hf_canarycanarycanarycanary", "AKIACANARY1234567890", "https://h/x?X-Amz-Signature=canary"];
    for (index, secret) in secrets.iter().enumerate() {
        let line = serde_json::json!({"text": format!("see {secret} there")}).to_string();
        std::fs::write(set.join("x.jsonl"), format!("{{\"text\": \"a\"}}\n{line}\n")).unwrap();
        std::fs::write(set.join("aiperf.json"), b"{\"path\": \"x.jsonl\", \"format\": \"single_turn\"}")
            .unwrap();
        for json in [&[][..], &["--json"]] {
            let output = machine.aiperf(&[&["dataset", "publish-check", "set"][..], json].concat());
            let said = stdout(&output) + &stderr(&output);
            assert!(said.contains("what looks like a credential"), "{index} {said}");
            assert!(!said.to_lowercase().contains(MARK), "{said}");
        }
    }
}

/// What the child of the test below panics over.
const PANIC: &str = "AIPERF_TEST_PANIC";
const SECRETS: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "AKIAcanary"),
    ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
    ("AWS_SESSION_TOKEN", "canary\"session"),
    ("OPENAI_API_KEY", "canary-other"),
];

#[test]
fn a_panic_in_the_middle_of_the_work_shows_no_secret() {
    let hub = StubHub::start(&[("org/trace", StubRepo::new(&[("lfs:trace.jsonl", TRACE)]))]);
    let store = StubStore::start(&[("trace.jsonl", TRACE)]);
    let server = Server::start(|request| match request.path() {
        "/x.jsonl" => Answer::file(request, &TRACE.into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    for reference in [
        format!("{}/x.jsonl?part=1&{}", server.url(), SIGNATURES[0]),
        "s3://traces/trace.jsonl".to_owned(),
        "hf://org/trace/trace.jsonl".to_owned(),
    ] {
        let mut machine = Machine::new(&hub);
        machine.set("AWS_ENDPOINT_URL_S3", &store.endpoint());
        machine.set("AWS_EC2_METADATA_DISABLED", "true");
        machine.set("RUST_BACKTRACE", "1");
        machine.set(PANIC, &reference);
        for (name, value) in SECRETS {
            machine.set(name, value);
        }
        let child = Command::new(std::env::current_exe().unwrap());
        let arguments = ["--exact", "canaries::child_that_panics", "--nocapture"];
        let output = machine.through(child, &arguments).output().unwrap();
        let said = stderr(&output) + &stdout(&output);
        assert_eq!(output.status.code(), Some(101), "{said}");
        assert!(said.contains("panicked at") && said.contains("internal error"), "{said}");
        assert!(
            said.contains("Start {") && said.contains("Sources {") && !said.contains("hf_good"),
            "{said}"
        );
        let mut seen = Seen(said);
        for path in files_below(machine.home.path()) {
            seen.0 += &path.display().to_string();
            seen.0 += &String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default());
        }
        seen.check(&reference);
    }
}

/// Not a test by itself: the child of the one above. It panics in mid-transfer, over everything that is known then.
#[test]
fn child_that_panics() {
    static SOURCES: OnceLock<Sources> = OnceLock::new();
    let Ok(text) = std::env::var(PANIC) else { return };
    aiperf_cli::panic::install();
    let reference = Reference::parse(&text).unwrap();
    let settings = Settings::of(&std::env::vars().collect()).unwrap();
    let (typed, known) = (reference.clone(), settings.clone());
    let events = Events::to(move |event| {
        if matches!(event, Event::Start { .. }) {
            let names = SECRETS.iter().map(|(name, _)| *name).chain(["HF_TOKEN"]);
            let secrets: Vec<_> = names.map(std::env::var).collect();
            panic!("{event:?} {text} {typed:?} {known:?} {:?} {secrets:?}", SOURCES.get());
        }
    });
    let sources = SOURCES.get_or_init(|| Sources::new(settings, events, Stop::default()));
    let plan = sources
        .access(
            &reference,
            &aiperf_source::Ask {
                format: None,
                endpoint_type: None,
                has_stop: true,
                max_context_length: None,
                formats: &NoFormats,
                own_version: "0.14.0",
            },
        )
        .unwrap();
    sources.fetch(&plan).unwrap();
}

struct NoFormats;

impl aiperf_source::Formats for NoFormats {
    fn find(&self, _: &str) -> Option<aiperf_source::Format> {
        None
    }
}
