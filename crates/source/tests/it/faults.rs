//! Servers that break rules: each fault gives one error, writes nothing outside the cache, and keeps what was there.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aiperf_source::{Ask, Blame};
use aiperf_test_servers::{Answer, Request, Server, StubHub, StubRepo, StubStore};
use serde_json::json;

use crate::support::{Machine, ask, refused};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";

pub(crate) fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

pub(crate) fn hub_with(files: &[(&str, &[u8])]) -> (StubHub, Machine) {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(files))]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    (hub, machine)
}

fn web(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> (Server, Machine, String) {
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" => answer(request),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    (server, Machine::new(&[]), url)
}

/// The file, with headers more.
fn file(request: &Request, more: &[(&str, &str)]) -> Answer {
    let answer = Answer::file(request, &LINES.into());
    more.iter().fold(answer, |answer, (name, value)| answer.with(name, *value))
}

#[test]
fn lengths_that_lie_are_errors() {
    let huge = (1u64 << 63).to_string();
    for length in ["-5", "many", "1e3", "99999999999999999999999", &huge] {
        let length = length.to_owned();
        let (_server, machine, url) = web(move |_| {
            Answer::status(200).with("ETag", "\"a\"").with("Content-Length", length.clone()).body(LINES)
        });
        refused(&machine, &url, &with("single_turn"));
    }
    // The check and the transfer tell two lengths, with one tag.
    for shift in [-5, 5] {
        let (_server, machine, url) = web(move |request| {
            if request.method == "HEAD" {
                let length = LINES.len() as i64 + shift;
                return Answer::status(200).with("ETag", "\"a\"").with("Content-Length", length.to_string());
            }
            file(request, &[("ETag", "\"a\"")])
        });
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains("changed after AIPerf pinned its version"), "{error}");
    }
    // More comes than was announced, by a body that ends when it ends.
    let (server, machine, url) = web(|request| {
        if request.method == "HEAD" {
            return file(request, &[("ETag", "\"a\"")]);
        }
        let mut answer = Answer::status(200).with("ETag", "\"a\"").body(LINES.repeat(2));
        answer.without_length = true;
        answer
    });
    let error = refused(&machine, &url, &with("single_turn"));
    assert!(
        error.to_string().contains("the transfer was cut short")
            && error.to_string().contains("more than its")
    );
    let gets =
        server.log().iter().filter(|request| request.method == "GET" && request.path() == "/x.jsonl").count();
    assert_eq!(gets, 3);
}

#[test]
fn a_listing_of_very_many_entries_is_refused() {
    const MOST: usize = 100_000;
    let (hub, machine) = hub_with(&[("a/0.parquet", b"PAR1")]);
    let oid = "a".repeat(40);
    let items: Vec<_> = (0..=MOST)
        .map(|number| json!({"type": "file", "path": format!("d/{number}"), "size": 1, "oid": oid}))
        .collect();
    let answer = Answer::json(&json!(items));
    hub.fault(move |request| request.path().contains("/tree/").then(|| answer.clone()));
    let error = refused(&machine, "hf://org/repo", &with("single_turn"));
    assert!(
        error.to_string().contains("it lists more than 100000 entries. Point at a smaller folder"),
        "{error}"
    );
    let manifest = json!({"path": "d", "format": "raw_payload"}).to_string();
    let store = StubStore::start(&[("p/aiperf.json", manifest.as_bytes())]);
    let mut page = 0;
    store.fault(move |request| {
        if !request.target.contains("list-type=2") || request.target.contains("max-keys") {
            return None;
        }
        page += 1;
        let keys = (0..40_000).map(|number| format!("<Contents><Key>p/d/.{page}-{number}</Key><Size>1</Size></Contents>"));
        let text = format!(
            "<ListBucketResult>{}<IsTruncated>true</IsTruncated><NextContinuationToken>{page}</NextContinuationToken></ListBucketResult>",
            keys.collect::<Vec<_>>().concat()
        );
        Some(Answer::status(200).body(text.into_bytes()))
    });
    store.put("p/d/x.json", b"{}");
    let error = refused(&crate::s3::machine(&store), "s3://traces/p/", &ask());
    assert!(error.to_string().contains("it lists more than 100000 entries"), "{error}");
}

#[test]
fn redirects_that_lead_astray_are_not_followed() {
    for (location, part) in [
        (Some("file:///etc/passwd"), "another scheme"),
        (Some("ftp://h/x"), "another scheme"),
        (Some("http://"), "leads to no URL"),
        (None, "says nowhere where it leads"),
        (Some("/x.jsonl"), "one of more than 10"),
    ] {
        let moved = move |_: &Request| {
            let answer = Answer::status(302);
            location.into_iter().fold(answer, |answer, location| answer.with("Location", location))
        };
        let (_server, machine, url) = web(moved);
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.problem.blame(), Blame::World);
        // The Hub: for its API, and for a file.
        for kind in ["/revision/", "/resolve/"] {
            let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
            hub.fault(move |request| {
                let here = location.map(|location| {
                    if location == "/x.jsonl" { request.target.clone() } else { location.to_owned() }
                });
                let answer = here
                    .into_iter()
                    .fold(Answer::status(302), |answer, location| answer.with("Location", location));
                request.path().contains(kind).then_some(answer)
            });
            let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
            assert!(error.to_string().contains(part), "{kind} {error}");
        }
    }
}

#[test]
fn no_token_goes_to_another_host() {
    let other = Server::start(|_| Answer::status(404));
    for kind in ["/revision/", "/paths-info/", "/tree/"] {
        let (hub, mut machine) = hub_with(&[("a/0.parquet", b"PAR1")]);
        machine.set("HF_TOKEN", "hf_good");
        let location = format!("http://localhost:{}/", other.port());
        hub.fault(move |request| {
            request.path().contains(kind).then(|| Answer::status(307).with("Location", location.clone()))
        });
        let error = refused(&machine, "hf://org/repo", &with("single_turn"));
        assert!(error.to_string().contains("it leaves the Hub"), "{kind}: {error}");
    }
    assert!(other.log().is_empty());
}

#[test]
fn what_answers_in_the_place_of_a_hub_is_named() {
    for (part, answer) in [
        ("an HTML page", Answer::status(200).with("Content-Type", "text/html").body(*b"<html>")),
        ("does not look like a Hugging Face Hub", Answer::status(200).body(*b"ok")),
        ("does not look like a Hugging Face Hub", Answer::status(418)),
    ] {
        let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
        hub.fault(move |_| Some(answer.clone()));
        let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().contains("Check HF_ENDPOINT, and whether a proxy"), "{error}");
        assert_eq!(error.problem.blame(), Blame::World);
    }
    let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
    hub.fault(|request| request.path().contains("/resolve/").then(|| Answer::status(200).body(LINES)));
    let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(error.to_string().contains("a file without X-Repo-Commit"), "{error}");
    // Pages that lead back to each other.
    let (hub, machine) = hub_with(&[("a/0.parquet", b"PAR1")]);
    let next = format!("<{}/api/datasets/org/repo/tree/x?cursor=1>; rel=\"next\"", hub.endpoint());
    hub.fault(move |request| {
        request.path().contains("/tree/").then(|| Answer::json(&json!([])).with("Link", next.clone()))
    });
    let error = refused(&machine, "hf://org/repo", &with("single_turn"));
    assert!(error.to_string().contains("pages lead back to each other"), "{error}");
}

#[test]
fn a_limit_is_waited_for_or_told() {
    // Until the limit ends: no attempt before.
    for headers in [&[("RateLimit", "\"api\";r=0;t=3600")][..], &[("Retry-After", "3600")]] {
        let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
        hub.fault(move |_| {
            Some(headers.iter().fold(Answer::status(429), |answer, (name, value)| answer.with(name, *value)))
        });
        let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
        assert!(
            error.to_string().contains("it is rate limited for 3600 s. Retry later, in 3600 s"),
            "{error}"
        );
        assert_eq!((hub.log().len(), error.problem.blame()), (1, Blame::World));
    }
    // A wait of nothing, for ever: three attempts.
    let (server, machine, url) = web(|_| Answer::status(429).with("Retry-After", "0"));
    let error = refused(&machine, &url, &with("single_turn"));
    assert!(error.to_string().contains("the server answered 429"), "{error}");
    assert_eq!(server.log().len(), 3);
    // A limit with something left is none.
    let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
    hub.fault(|_| Some(Answer::status(429).with("RateLimit", "\"api\";r=5;t=3600")));
    let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(error.to_string().contains("the server answered 429") && hub.log().len() == 3, "{error}");
}

#[test]
fn what_answers_and_speaks_no_http_is_not_a_matter_of_the_network() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(2 << 20));
    for (scheme, answer) in [
        ("http", "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"),
        ("http", "HTTP/1.1 200 OK\r\nno header\r\n\r\n"),
        ("http", "SSH-2.0-OpenSSH_9.6\r\n\r\n"),
        ("http", &*long),
        ("https", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = answer.to_owned();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let machine = Machine::new(&[]);
        let error = refused(&machine, &format!("{scheme}://{address}/x.jsonl"), &with("single_turn"));
        let said = error.to_string();
        assert!(said.contains(&format!("{address} answered something that is not HTTP (")), "{said}");
        assert_eq!(said.contains("try http://"), scheme == "https", "{said}");
        // Not three times; the length in an answer to HEAD is not looked at, so that GET follows.
        assert!(asked.load(Ordering::SeqCst) <= 2, "{said}");
    }
}

#[test]
fn a_server_that_says_nothing_is_left_after_a_while() {
    let quick = |patience: &mut aiperf_source::Patience| {
        patience.headers = Duration::from_millis(500);
        patience.hub_headers = Duration::from_millis(500);
        patience.idle = Duration::from_millis(500);
        patience.hub_idle = Duration::from_millis(500);
    };
    let (server, mut machine, url) = web(|_| Answer::silence());
    machine.patience = quick;
    let error = refused(&machine, &url, &with("single_turn"));
    assert!(error.to_string().contains("could not connect to 127.0.0.1:"), "{error}");
    assert_eq!(server.log().len(), 3);
    // After the headers, and in the middle.
    for bytes in [0, 10] {
        let (server, mut machine, url) = web(move |request| {
            let mut answer = file(request, &[("ETag", "W/\"a\"")]);
            answer.stall_after = (request.method == "GET").then_some(bytes);
            answer
        });
        machine.patience = quick;
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains("the transfer was cut short"), "{error}");
        assert!(error.to_string().contains("timed out"), "{error}");
        let gets = server
            .log()
            .into_iter()
            .filter(|request| request.method == "GET" && request.path() == "/x.jsonl");
        assert_eq!(gets.count(), 3);
    }
    let (hub, mut machine) = hub_with(&[("lfs:x.jsonl", LINES)]);
    hub.fault(|request| {
        request
            .target
            .contains("Signature=")
            .then(|| Answer { stall_after: Some(3), ..Answer::file(request, &LINES.into()) })
    });
    machine.patience = quick;
    let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(error.to_string().contains("the transfer was cut short"), "{error}");
}

#[test]
fn answers_that_are_not_of_the_pinned_version_are_a_change() {
    type Given = fn(&Request) -> Answer;
    let other: &[(&str, &str)] = &[("ETag", "\"b\"")];
    let changed = "changed after AIPerf pinned its version";
    let cases: [(&str, Given); 5] = [
        (changed, |_| Answer::status(412)),
        // A page of a proxy.
        (changed, |_| Answer::status(200).with("Content-Type", "text/html").body(*b"<html>busy</html>")),
        (changed, |request| file(request, &[("ETag", "\"b\"")])),
        // A part of another version.
        (changed, |_| {
            Answer::status(206)
                .with("ETag", "\"b\"")
                .with("Content-Range", "bytes 0-9/10")
                .body(*b"0123456789")
        }),
        // Only the weak form of the same tag, of a file that is not compressed on its way.
        (changed, |request| file(request, &[("ETag", "W/\"a\"")])),
    ];
    for (part, given) in cases {
        let (server, machine, url) =
            web(
                move |request| {
                    if request.method == "HEAD" {
                        file(request, &[("ETag", "\"a\"")])
                    } else {
                        given(request)
                    }
                },
            );
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(server.log().iter().filter(|request| request.path() == "/x.jsonl").count(), 2, "once");
    }
    // A weak tag cannot be a condition; it is compared.
    let (server, machine, url) = web(move |request| {
        if request.method == "HEAD" { file(request, &[("ETag", "W/\"a\"")]) } else { file(request, other) }
    });
    assert!(refused(&machine, &url, &with("single_turn")).to_string().contains(changed));
    assert!(server.log().iter().all(|request| request.header("if-match").is_none()));
    // A date is compared, too.
    let (_server, machine, url) = web(|request| {
        let day = if request.method == "HEAD" {
            "Mon, 30 Nov 2026 00:00:00 GMT"
        } else {
            "Tue, 01 Dec 2026 00:00:00 GMT"
        };
        file(request, &[("Last-Modified", day)])
    });
    assert!(refused(&machine, &url, &with("single_turn")).to_string().contains(changed));
}

#[test]
fn a_range_that_was_not_asked_for_is_not_taken() {
    // Cut once; then, where the rest is asked for, something else comes.
    let long: Arc<[u8]> = LINES.repeat(1_000).into();
    for (works, other) in
        [(false, "bytes 0-9/78000"), (false, "bytes 5-1/2"), (false, "lines 1-2/3"), (true, "")]
    {
        let bytes = Arc::clone(&long);
        let (server, machine, url) = web(move |request| {
            let whole = Answer::status(200).with("ETag", "\"a\"").body(Arc::clone(&bytes));
            match request.range() {
                _ if request.method == "HEAD" => whole,
                None => Answer { cut_after: Some(10_000), ..whole },
                // Ranges are not served after all: everything again.
                Some(_) if other.is_empty() => whole,
                Some(_) => {
                    Answer::status(206).with("ETag", "\"a\"").with("Content-Range", other).body(*b"xxxxx")
                }
            }
        });
        if works {
            let local = machine.fetch(&url, &with("single_turn")).unwrap();
            assert_eq!(std::fs::read(&local.files[0].path).unwrap(), *long);
        } else {
            let error = refused(&machine, &url, &with("single_turn"));
            assert!(error.to_string().contains("another range came"), "{other}: {error}");
        }
        assert!(server.log().iter().any(|request| request.range().is_some()));
    }
}

#[test]
fn whether_a_url_has_expired_is_told_by_the_clock_of_the_server() {
    // Until the end of November, wherever this machine is in time.
    let query = "X-Amz-Signature=canary&X-Amz-Date=20261130T000000Z&X-Amz-Expires=86400";
    for (date, part) in [
        ("Mon, 30 Nov 2026 12:00:00 GMT", "answered 403 to the presigned URL"),
        (
            "Wed, 02 Dec 2026 12:00:00 GMT",
            "the presigned URL has expired (at 2026-12-01T00:00:00.000000Z UTC)",
        ),
    ] {
        let (_server, machine, url) = web(move |_| Answer::status(403).with("Date", date));
        let error = refused(&machine, &format!("{url}?{query}"), &with("single_turn")).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_clock_that_is_wrong_changes_a_hint_at_most() {
    // The local clock never refuses: only the server does.
    for query in [
        "X-Amz-Signature=canary&X-Amz-Date=20200101T000000Z&X-Amz-Expires=60",
        "X-Amz-Signature=canary&X-Amz-Date=29990101T000000Z&X-Amz-Expires=1",
        "X-Amz-Signature=canary&X-Amz-Date=soon&X-Amz-Expires=60",
        "X-Amz-Signature=canary&X-Amz-Date=20200101T000000Z&X-Amz-Expires=-60",
        "X-Amz-Signature=canary&X-Amz-Date=20200101T000000Z&X-Amz-Expires=99999999999999999999999",
        "X-Amz-Signature=canary&X-Amz-Date=99991231T235959Z&X-Amz-Expires=18446744073709551615",
        "AWSAccessKeyId=canary&Signature=canary&Expires=-1",
        "AWSAccessKeyId=canary&Signature=canary&Expires=18446744073709551615",
        "X-Goog-Signature=canary&X-Goog-Date=&X-Goog-Expires=",
        "sig=canary&se=9999-99-99T99:99:99Z&ske=never",
        "Key-Pair-Id=canary&Signature=canary&Policy=%%%",
    ] {
        let (_server, machine, url) = web(|request| file(request, &[("ETag", "\"a\"")]));
        machine.fetch(&format!("{url}?{query}"), &with("single_turn")).unwrap();
        for body in
            [&b"no"[..], b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"]
        {
            let (_server, machine, url) = web(move |_| Answer::status(403).body(body.to_vec()));
            let error = refused(&machine, &format!("{url}?{query}"), &with("single_turn")).to_string();
            assert!(error.contains("access was denied") && error.contains("Generate a new URL"), "{error}");
            assert!(!error.contains("canary"), "{error}");
            assert!(body == b"no" || error.contains("the presigned URL has expired"), "{error}");
        }
    }
}

#[test]
fn who_refused_is_named_behind_a_redirect_and_of_a_sidecar() {
    let (storage, machine, _) = web(|_| Answer::status(403));
    let leads_to = format!("{}/x.jsonl", storage.url());
    let front = Server::start(move |_| Answer::status(302).with("Location", leads_to.clone()));
    let refused_by = |reference: &str| refused(&machine, reference, &with("single_turn")).to_string();
    let (here, there) = (front.port(), storage.port());
    let said = refused_by(&format!("{}/x.jsonl", front.url()));
    let told = format!("access was denied: 127.0.0.1:{there}, where 127.0.0.1:{here} leads, answered 403");
    assert!(said.contains(&told), "{said}");
    let beside = Server::start(|request| {
        if request.path().ends_with(".aiperf.json") { Answer::status(500) } else { file(request, &[]) }
    });
    let said = refused_by(&format!("{}/x.jsonl", beside.url()));
    assert!(
        said.contains("500 to a question about the sidecar x.jsonl.aiperf.json after 3 attempts"),
        "{said}"
    );
}

#[test]
fn attempts_that_failed_are_told_while_the_next_one_is_waited_for() {
    let (_server, machine, reference) = web(|_| Answer::status(503).with("Retry-After", "0"));
    refused(&machine, &reference, &with("single_turn"));
    let notes: Vec<_> = machine.notes().into_iter().filter(|note| note.starts_with("attempt ")).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    for (note, made) in notes.iter().zip(["1", "2"]) {
        let told =
            format!("attempt {made} of 3 failed: the server answered 503 to a question about {reference};");
        assert!(
            note.starts_with(&told) && note.ends_with("the next one starts in 0.0 s, as the server asks"),
            "{note}"
        );
    }
}

#[test]
fn a_tag_that_tells_no_version_from_another_is_none() {
    for tag in ["*", "\"\"", "W/\"\""] {
        let (_server, machine, reference) =
            web(move |request| Answer::file(request, &Arc::from(&b"{}\n"[..])).with("ETag", tag));
        let plan = machine.access(&reference, &with("single_turn")).unwrap();
        assert_eq!(plan.version, None, "{tag}");
    }
}
