//! Canaries: no secret is in any file, on stdout or on stderr, even when the server echoes it.

use std::path::Path;

use crate::support::{Echo, Live, Place, Ran, Received, chat, http};

const SECRETS: [&str; 4] = ["sk-canary-0000aaaa", "canary-1111bbbb", "canary-2222cccc", "canary-3333dddd"];

/// Answers that repeat everything that was sent, in every place an answer has.
fn echo(number: usize, request: &Received) -> Vec<u8> {
    let said = format!("you sent: {} {}", request.head, String::from_utf8_lossy(&request.body));
    match number % 4 {
        0 => http("401 Unauthorized", "Content-Type: text/plain\r\nX-Seen: yes\r\n", &said),
        1 => chat(&said),
        2 => {
            let value = said.replace(['\r', '\n'], " ");
            http(
                "500 Internal Server Error",
                &format!("X-Echo: {value}\r\nSet-Cookie: {value}\r\n"),
                "{\"error\": 5}",
            )
        }
        _ => {
            let event = serde_json::json!({"error": {"message": said, "type": "auth", "code": 403}});
            http("200 OK", "Content-Type: text/event-stream\r\n", &format!("data: {event}\n\n"))
        }
    }
}

/// A key under a name of its own.
const UNNAMED: &str = "hf_canary4444eeee5555";

fn server() -> Echo {
    let number = std::sync::atomic::AtomicUsize::new(0);
    Echo::start(move |request| echo(number.fetch_add(1, std::sync::atomic::Ordering::Relaxed), request))
}

#[track_caller]
fn assert_hidden(secrets: &[&str], ran: &Ran, dir: &Path) {
    let mut texts = vec![
        ("stdout".to_owned(), ran.out.clone().into_bytes()),
        ("stderr".to_owned(), ran.err.clone().into_bytes()),
    ];
    for name in (crate::support::Results { dir: dir.to_owned() }).files() {
        texts.push((name.clone(), std::fs::read(dir.join(name)).unwrap()));
    }
    assert!(texts.len() >= 8, "{texts:?}");
    for (name, text) in texts {
        let text = String::from_utf8_lossy(&text);
        for secret in secrets {
            if let Some(at) = text.find(secret) {
                let from = text.floor_char_boundary(at.saturating_sub(200));
                panic!("{secret} in {name}: …{}", &text[from..at + secret.len()]);
            }
        }
    }
}

#[test]
fn keys_and_credential_headers_are_nowhere() {
    let server = server();
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/v1?X-Amz-Signature={}", server.port, SECRETS[3]);
    let mut command = place
        .profile(&url, "--request-count 8 --isl 16 --export-level raw --export-http-trace --log-level TRACE");
    command.args(["--api-key", SECRETS[0]]);
    command.args(["--header", &format!("X-Api-Key: {}", SECRETS[1])]);
    command.args(["--header", &format!("Cookie: session={}", SECRETS[2])]);
    // A name that says nothing, and a value that gives itself away; one that does not stays readable.
    command.args(["--header", &format!("X-Upstream: {UNNAMED}"), "--header", "X-Team: blue-7"]);
    command.args(["--header", "X-Key: hunter2"]);
    let ran = Live::start(&mut command).end().with_code(0);
    let received = server.received();
    for (secret, what) in SECRETS.iter().zip(["key", "header", "cookie", "parameter"]) {
        assert!(received.iter().all(|request| request.head.contains(secret)), "the {what} was not sent");
    }
    assert!(received.iter().all(|request| request.head.contains(UNNAMED)), "the unnamed key was not sent");
    assert_hidden(&SECRETS, &ran, &place.path("out"));
    assert!(received.iter().all(|request| request.head.contains("X-Key: hunter2")));
    assert_hidden(&[UNNAMED, "hunter2"], &ran, &place.path("out"));
    let summary = place.results().text("profile_export_aiperf.json");
    assert!(summary.contains("<redacted>"), "{summary}");
    assert!(summary.contains("X-Team: blue-7") && summary.contains("\"X-Team\": \"blue-7\""), "{summary}");
}

#[test]
fn streamed_errors_that_echo_the_key_hide_it() {
    let server = server();
    let place = Place::new();
    let mut command = place.profile(
        &format!("http://127.0.0.1:{}", server.port),
        "--streaming --request-count 8 --isl 16 --export-level raw --export-http-trace -v",
    );
    let ran = Live::start(command.args(["--api-key", SECRETS[0]])).end();
    assert!(ran.code == Some(0) || ran.code == Some(1), "{}", ran.err);
    assert_hidden(&SECRETS, &ran, &place.path("out"));
}

#[test]
fn user_info_of_the_url_is_nowhere_in_no_spelling() {
    let server = server();
    let place = Place::new();
    let url = format!("http://someone:{}%40x@127.0.0.1:{}", SECRETS[1], server.port);
    let ran =
        place.run(&url, "--request-count 8 --isl 16 --export-level raw --export-http-trace").with_code(0);
    // someone:canary-1111bbbb@x
    let basic = "c29tZW9uZTpjYW5hcnktMTExMWJiYmJAeA==";
    assert!(
        server.received().iter().all(|request| request.head.contains(basic)),
        "{:?}",
        server.received()[0].head
    );
    assert_hidden(&[SECRETS[1], basic], &ran, &place.path("out"));

    // A token in the place of the name.
    let server = self::server();
    let place = Place::new();
    let url = format!("http://{}@127.0.0.1:{}", SECRETS[2], server.port);
    let ran =
        place.run(&url, "--request-count 8 --isl 16 --export-level raw --export-http-trace").with_code(0);
    assert_hidden(&[SECRETS[2], "Y2FuYXJ5LTIyMjJjY2NjO"], &ran, &place.path("out"));
}

/// A key in the query of the path is sent, and is recorded nowhere.
#[test]
fn keys_in_the_path_of_the_endpoint_are_nowhere() {
    let server = server();
    let place = Place::new();
    let flags = format!(
        "--request-count 2 --isl 16 --export-level raw --export-http-trace --endpoint /v1/chat/completions?api-version=7&key={}",
        SECRETS[0]
    );
    let ran = place.run(&format!("http://127.0.0.1:{}", server.port), &flags).with_code(0);
    assert!(
        server.received().iter().all(|request| request.head.contains(SECRETS[0])),
        "{:?}",
        server.received()[0].head
    );
    assert_hidden(&[SECRETS[0]], &ran, &place.path("out"));
    assert!(ran.out.contains("api-version=7"), "{}", ran.out);
}

/// A key among the extra body keys is sent, and is in no summary.
#[test]
fn credentials_among_the_extra_body_keys_are_not_recorded() {
    let place = Place::new();
    let flags = format!(
        "--request-count 2 --isl 16 --extra-inputs api_key:{} --extra-inputs max_tokens:7",
        SECRETS[0]
    );
    let ran = place.run("mock://", &flags).with_code(0);
    for name in ["profile_export_aiperf.json", "profile_export_aiperf.csv", "profile_export.jsonl"] {
        assert!(!place.results().text(name).contains(SECRETS[0]), "{name}");
    }
    assert!(!ran.err.contains(SECRETS[0]) && !ran.out.contains(SECRETS[0]), "{}", ran.err);
    let summary = place.results().text("profile_export_aiperf.json");
    assert!(
        summary.contains("\"api_key\": \"<redacted>\"") && summary.contains("\"max_tokens\": 7"),
        "{summary}"
    );
}

/// Bodies are kept as they were sent. That there is a credential in them is said once, with the names of the files.
#[test]
fn files_that_hold_credentials_because_they_were_sent_are_named_once() {
    let place = Place::new();
    let url = format!("https://b.invalid/a.png?X-Amz-Date=1&X-Amz-Signature={}", SECRETS[1]);
    place.write("d.jsonl", format!("{{\"text\": \"see\", \"image\": \"{url}\"}}\n").repeat(3));
    let file = "--input-file d.jsonl --custom-dataset-type single_turn --request-count 3";
    let key = format!("--extra-inputs upstream:{UNNAMED}");
    for (flags, names, reasons) in [
        (file.to_owned(), "inputs.json, and", "(a URL with a signature or a password)"),
        (
            format!("{file} --export-level raw"),
            "inputs.json and profile_export_raw.jsonl, and",
            "(a URL with a signature or a password)",
        ),
        (format!("--request-count 2 --isl 16 {key}"), "inputs.json, and", "(`upstream` of --extra-inputs)"),
    ] {
        let ran = place.run("mock://", &flags).with_code(0);
        let said: Vec<&str> = ran.err.lines().filter(|line| line.contains("as they were sent")).collect();
        assert_eq!(said.len(), 1, "{flags}: {}", ran.err);
        assert!(said[0].contains(names) && said[0].contains(reasons), "{}", said[0]);
        assert_hidden_but_as_sent(&[SECRETS[1], UNNAMED], &ran, &place.path("out"));
    }
    // Nothing to hide, nothing said.
    let ran = place.run("mock://", "--request-count 2 --isl 16 --export-level raw").with_code(0);
    assert!(!ran.err.contains("as they were sent"), "{}", ran.err);
}

/// The same as [`assert_hidden`] for all but the files that show requests as they were sent.
#[track_caller]
fn assert_hidden_but_as_sent(secrets: &[&str], ran: &Ran, dir: &Path) {
    let files = (crate::support::Results { dir: dir.to_owned() }).files();
    let others = files
        .into_iter()
        .filter(|name| !["inputs.json", "profile_export_raw.jsonl"].contains(&name.as_str()));
    let texts = others.map(|name| std::fs::read(dir.join(name)).unwrap());
    for text in texts.chain([ran.out.clone().into_bytes(), ran.err.clone().into_bytes()]) {
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{text}");
    }
}

/// A key that a blank has torn off its flag is no argument of its own that could be quoted.
#[test]
fn keys_torn_off_their_flag_are_not_repeated() {
    let key = SECRETS[2];
    for arguments in [
        vec!["profile", "--model", "m", "--api-key=", key],
        vec!["profile", "--model", "m", "--api-key", "Bearer", key],
        vec!["profile", "--model", "m", "-H", "Authorization:", "Bearer", key, "--no-such-flag"],
        vec!["profile", "--model", "m", "--streaming", SECRETS[0]],
        vec!["profile", SECRETS[0], "--model", "m"],
        vec!["validate", "auto", "x.jsonl", UNNAMED],
        vec![UNNAMED],
    ] {
        let ran = Live::start(crate::support::aiperf().args(&arguments)).end().with_code(2);
        for secret in [key, SECRETS[0], UNNAMED] {
            assert!(!ran.err.contains(secret) && !ran.out.contains(secret), "{arguments:?}: {}", ran.err);
        }
        assert!(
            ran.err.contains("<redacted>") || ran.err.contains("no-such-flag"),
            "{arguments:?}: {}",
            ran.err
        );
    }
}

/// Commands that take data refuse what is no data without repeating the secret in it.
#[test]
fn references_are_refused_without_their_secrets() {
    let key = SECRETS[3];
    let place = Place::new();
    for arguments in [
        vec![
            "anonymize".into(),
            format!("https://data.invalid/x.jsonl?sig={key}"),
            "--output".into(),
            "o".into(),
        ],
        vec!["validate".into(), "auto".into(), format!("https://data.invalid/x.jsonl?sig={key}")],
        vec!["dataset".into(), "resolve".into(), format!("hf://user:{key}@org/repo")],
        vec!["dataset".into(), "resolve".into(), format!("hf://org/repo?token={key}")],
        vec!["dataset".into(), "resolve".into(), format!("s3://{key}:{key}@bucket/x.jsonl")],
        vec!["dataset".into(), "resolve".into(), format!("https://user:{key}@h/x.jsonl?sig={key}#{key}")],
    ] {
        let mut command = crate::support::aiperf();
        let ran = Live::start(command.current_dir(place.root()).args(&arguments)).end();
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert!(!ran.err.contains(key) && !ran.out.contains(key), "{arguments:?}: {}", ran.err);
    }
}

/// Mistakes are answered without repeating the secret in them.
#[test]
fn refusals_do_not_repeat_secrets() {
    let [key, password, ..] = SECRETS;
    for arguments in [
        vec!["--api-key", key, "--api-key", key],
        vec!["--api-key", key, "--concurrency", "many"],
        vec!["--url", &format!("http://someone:{password}@h:99999")],
        vec!["--url", &format!("ftp://someone:{password}@h")],
        vec!["--url", &format!("http://h:1/?X-Amz-Signature={password}"), "--concurrency", "0"],
        vec!["--header", &format!("Authorization: Bearer {key}"), "--api-key"],
        vec!["--url", &format!("http://someone:{password}@no-such-host.invalid"), "--request-count", "1"],
    ] {
        let place = Place::new();
        let mut command = crate::support::aiperf();
        command.current_dir(place.root()).args(["profile", "--model", "m", "--tokenizer", "builtin"]);
        let ran = Live::start(command.args(&arguments)).end();
        assert!(ran.code == Some(2) || ran.code == Some(1), "{arguments:?}: {}", ran.err);
        for secret in SECRETS {
            assert!(!ran.err.contains(secret) && !ran.out.contains(secret), "{arguments:?}: {}", ran.err);
        }
    }
}
