//! Commands that look at data, where the data are somewhere else.

use aiperf_test_servers::{Answer, Server, StubHub, StubRepo};
use serde_json::Value;

use crate::machine::{Machine, stderr, stdout};

const TRACE: &[u8] = b"{\"timestamp\":0,\"input_length\":8,\"output_length\":5,\"hash_ids\":[0,1]}\n\
{\"timestamp\":105,\"input_length\":6,\"output_length\":2,\"hash_ids\":[0,2]}\n";
const MANIFEST: &[u8] = b"{\"path\":\"trace.jsonl\",\"format\":\"mooncake_trace\",\"block_size\":4}";
const TEXTS: &[u8] = b"{\"text\":\"a b c d e f\"}\n{\"text\":\"a b\"}\n";

fn hub() -> StubHub {
    let tokenizer = |name: &str| {
        std::fs::read(format!("{}/../tokenize/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let json = tokenizer("byte-bpe/tokenizer.json");
    StubHub::start(&[
        ("org/trace", StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:trace.jsonl", TRACE)])),
        (
            "org/bad",
            StubRepo::new(&[
                ("aiperf.json", b"{\"path\":\"sub/t.jsonl\",\"format\":\"mooncake_trace\"}"),
                ("sub/t.jsonl", b"{\"input_length\":4}\n{\"input_length\":-4}\n"),
                ("odd.jsonl", b"{\"odd\":4}\n"),
                ("folder/aiperf.json", b"{\"path\":\".\",\"format\":\"raw_payload\"}"),
                ("folder/a.jsonl", b"{\"messages\":[]}\n{\"messages\":4}\n"),
            ]),
        ),
        ("org/texts", StubRepo::new(&[("texts.jsonl", TEXTS)])),
        ("org/tiny", StubRepo::new(&[("lfs:tokenizer.json", &json[..])])),
    ])
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

#[test]
fn a_reference_is_analyzed_and_the_report_says_which_version_it_was() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = machine.aiperf(&["analyze-trace", "hf://org/trace", "--format", "json"]);
    let talk = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{talk}");
    let report = json(&output.stdout);
    assert_eq!((&report["total_requests"], &report["working_set_blocks"]), (&2.into(), &3.into()));
    // The publisher's block size, since nobody named one.
    assert_eq!(report["working_set_tokens"], 12);
    let commit = report["dataset"]["resolved_version"].as_str().unwrap();
    assert_eq!(report["dataset"]["reference"], "hf://org/trace");
    assert_eq!(report["dataset"]["format_source"], "manifest");
    assert!(talk.contains(&format!("using hf://datasets/org/trace@{commit}/trace.jsonl")), "{talk}");
    let text = machine.aiperf(&["analyze-trace", "--input-file", "hf://org/trace"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("Total requests:"));
    // What is in the cache is read offline.
    let mut offline = machine;
    offline.set("HF_HUB_OFFLINE", "1");
    hub.clear_logs();
    let again = offline.aiperf(&["analyze-trace", "hf://org/trace", "--format", "json"]);
    assert_eq!(json(&again.stdout)["dataset"]["offline"], true);
    assert!(hub.log().is_empty());
}

#[test]
fn a_reference_is_validated_and_faults_name_it_and_not_the_cache() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let good = machine.aiperf(&["validate", "auto", "hf://org/trace", "--format", "json"]);
    assert_eq!(good.status.code(), Some(0), "{}", stderr(&good));
    let report = json(&good.stdout);
    assert_eq!((&report["valid"], &report["rows"]), (&true.into(), &2.into()));
    assert_eq!(report["dataset"]["files"][0]["path"], "trace.jsonl");

    // The type is an argument here.
    let other = machine.aiperf(&["validate", "single_turn", "hf://org/trace"]);
    assert_eq!(other.status.code(), Some(2));
    let said = stderr(&other);
    assert!(said.contains("declares format mooncake_trace but TYPE is single_turn"), "{said}");

    let bad = machine.aiperf(&["validate", "auto", "hf://org/bad"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stdout).contains("Line 2: field `input_length`: must be 0 or more"));
    let odd = machine.aiperf(&["validate", "auto", "hf://org/bad/odd.jsonl"]);
    let folder = machine.aiperf(&["validate", "auto", "hf://org/bad/folder"]);
    let analyzed = machine.aiperf(&["analyze-trace", "hf://org/bad"]);
    for (output, part) in [
        (&odd, "hf://org/bad/odd.jsonl: no dataset type fits"),
        (&folder, "hf://org/bad/folder/a.jsonl:2"),
        (&analyzed, "hf://org/bad:2: field `input_length`"),
    ] {
        assert_eq!(output.status.code(), Some(1));
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output));
        assert!(said.contains(part), "{part}: {said}");
        let home = machine.home.path().to_str().unwrap();
        assert!(
            !said.contains(home) && !said.contains("/blobs/") && !said.contains("/tmp/aiperf-"),
            "{said}"
        );
    }
}

#[test]
fn a_run_names_the_reference_whose_first_record_fits_nothing_and_says_what_a_page_is() {
    let page = "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";
    let server = Server::start(move |request: &aiperf_test_servers::Request| match request.path() {
        "/odd.jsonl" => Answer::file(request, &b"{\"odd\":4}\n"[..].into()),
        "/page" => Answer::file(request, &page.as_bytes().into()),
        _ => Answer::status(404),
    });
    let machine = Machine::bare();
    for (name, part) in [("odd.jsonl", "no dataset type fits"), ("page", "it is an HTML page and no data")] {
        let url = format!("{}/{name}", server.url());
        let run = machine.profile(&["--input-file", &url]);
        let said = stderr(&run);
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("error: Cannot use {url}: {part}")), "{said}");
        assert!(
            !said.contains(machine.home.path().to_str().unwrap()) && !said.contains("/v1/https/"),
            "{said}"
        );
    }
    let page = format!("{}/page", server.url());
    let run = machine.profile(&["--custom-dataset-type", "single_turn", "--input-file", &page]);
    let said = stderr(&run);
    let told =
        format!("Cannot use {page}: it does not look like single_turn: it is an HTML page and no data");
    assert!(run.status.code() == Some(2) && said.contains(&told), "{said}");
}

#[test]
fn a_source_that_cannot_be_used_is_one_fault_in_the_words_of_a_run_and_json_all_the_same() {
    let hub = hub();
    let server = Server::start(|_: &aiperf_test_servers::Request| Answer::status(404));
    let url = format!("{}/none.jsonl", server.url());
    let machine = Machine::new(&hub);
    for (reference, part) in
        [("hf://org/none", "was not found"), (&*url, "was not found"), ("gs://x/y", "scheme")]
    {
        let run = stderr(&machine.profile(&["--input-file", reference]));
        let fault = run.lines().find(|line| line.contains("Cannot use")).unwrap().to_owned();
        let fault = &fault[fault.find("Cannot use").unwrap()..];
        assert!(fault.contains(part), "{fault}");
        for arguments in [
            &["validate", "auto", reference][..],
            &["validate", "auto", reference, "--format", "json"],
            &["analyze-trace", reference],
            &["anonymize", reference, "--output", "out.jsonl"],
        ] {
            let output = machine.aiperf(arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(stderr(&output).contains(fault), "{arguments:?}: {} instead of {fault}", stderr(&output));
            if arguments.contains(&"json") {
                let report = json(&output.stdout);
                assert_eq!((&report["valid"], &report["error_count"]), (&false.into(), &1.into()));
                assert!(report["errors"][0]["message"].as_str().unwrap().contains(part));
            } else {
                assert!(output.stdout.is_empty());
            }
        }
        assert!(!machine.home.path().join("out.jsonl").exists());
    }
}

#[test]
fn a_reference_is_anonymized_as_the_same_file_is_here() {
    let hub = hub();
    let machine = Machine::new(&hub);
    std::fs::write(machine.home.path().join("here.jsonl"), TEXTS).unwrap();
    let made = |input: &str, name: &str| {
        let output = machine.aiperf(&["anonymize", input, "--output", name, "--block-size", "2"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        std::fs::read_to_string(machine.home.path().join(name)).unwrap()
    };
    let far = made("hf://org/texts/texts.jsonl", "far.jsonl");
    assert_eq!(far, made("here.jsonl", "near.jsonl"));
    assert_eq!(far.lines().count(), 2);
}

#[test]
fn a_tokenizer_of_the_hub_counts_for_commands_too() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let reference = "hf://org/texts/texts.jsonl";
    let output = machine.aiperf(&["analyze-trace", reference, "--tokenizer", "org/tiny", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("tokenizer org/tiny is used at commit"), "{}", stderr(&output));
    let report = json(&output.stdout);
    assert!(
        report["isl_stats"]["max"].as_f64() > Some(0.0) && report.get("input_characters_stats").is_none()
    );
    let output = machine.aiperf(&["anonymize", reference, "--output", "o.jsonl", "--tokenizer", "org/tiny"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let missing = machine.aiperf(&["analyze-trace", reference, "--tokenizer", "org/none"]);
    assert_eq!(missing.status.code(), Some(2));
    let said = stderr(&missing);
    assert!(
        said.contains("org/none") && said.contains("`builtin`") && !said.contains("--use-server"),
        "{said}"
    );
}

/// The page on published traces: a signed URL is a password, and one that has expired is told from one that is wrong.
#[test]
fn published_traces_a_signed_url_is_hidden_everywhere_and_says_when_it_expired() {
    let hub = hub();
    let server = Server::start(|request: &aiperf_test_servers::Request| {
        let is_old = request.target.contains("se=2020");
        if is_old { Answer::status(403) } else { Answer::file(request, &std::sync::Arc::from(TRACE)) }
    });
    let machine = Machine::new(&hub);
    let url = |expiry: &str| format!("{}/t.jsonl?sig=canaryword&se={expiry}", server.url());
    for command in [
        &["profile", "--model", "m", "--url", "mock://", "--input-file"][..],
        &["validate", "auto"],
        &["analyze-trace"],
    ] {
        let output = machine.aiperf(&[command, &[&url("2020-01-01")]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("the presigned URL has expired (at 2020-01-01"), "{said}");
        assert!(said.contains("sig=<redacted>") && !said.contains("canaryword"), "{said}");
    }
    let output = machine.aiperf(&[
        "analyze-trace",
        &url("2999-01-01"),
        "--custom-dataset-type",
        "mooncake_trace",
        "--block-size",
        "4",
        "--format",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert!(said.contains("sig=<redacted>") && !said.contains("canaryword"), "{said}");
}

#[test]
fn the_first_record_tells_the_format_where_none_is_declared() {
    let page = "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";
    let server = Server::start(move |request| match request.path() {
        "/trace.jsonl" => Answer::file(request, &TRACE.into()).with("ETag", "\"a\""),
        "/text.jsonl" => Answer::file(request, &b"{\"text\": \"a\"}\n"[..].into()).with("ETag", "\"a\""),
        "/odd.jsonl" => Answer::file(request, &b"{\"odd\": 1}\n"[..].into()).with("ETag", "\"a\""),
        "/x.parquet" => Answer::file(request, &b"PAR1"[..].into()).with("ETag", "\"a\""),
        "/page.jsonl" => Answer::file(request, &page.as_bytes().into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let machine = Machine::bare();
    let url = |name: &str| format!("{}/{name}", server.url());
    let resolved = |more: &[&str], name: &str| {
        let output = machine.aiperf(&[&["dataset", "resolve", &url(name)], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    for (name, format, schedule) in
        [("trace.jsonl", "mooncake_trace", "yes"), ("text.jsonl", "single_turn", "no")]
    {
        let said = resolved(&["--first-record"], name);
        assert!(said.contains(&format!("{format} (found by the first record)")), "{said}");
        assert!(said.contains(&format!("fixed schedule   {schedule}\n")), "{said}");
        let shown: serde_json::Value =
            serde_json::from_str(&resolved(&["--first-record", "--json"], name)).unwrap();
        assert_eq!((&shown["format"], &shown["format_source"]), (&format.into(), &"detected".into()));
        assert_eq!(shown["fixed_schedule"], schedule == "yes");
    }
    let said = resolved(&["--first-record"], "odd.jsonl");
    assert!(said.contains("not known: the first bytes fit no format: "), "{said}");
    assert!(said.contains(&format!("{}: no dataset type fits", url("odd.jsonl"))), "{said}");
    assert!(said.contains("--custom-dataset-type"), "{said}");
    let said = resolved(&["--first-record"], "x.parquet");
    assert!(
        said.contains("fixed schedule   no\n"),
        "columns are a schedule only where they are called a trace: {said}"
    );
    assert!(resolved(&[], "trace.jsonl").contains("(--first-record)"));
    assert!(!machine.cache().join("https").exists(), "no data is downloaded");
    // A page that asks for a sign-in is no data, for those who look and for those who fetch.
    for arguments in [
        &["dataset", "resolve", "--first-record", &url("page.jsonl")][..],
        &[
            "dataset",
            "resolve",
            "--first-record",
            "--custom-dataset-type",
            "mooncake_trace",
            &url("page.jsonl"),
        ],
        &["dataset", "fetch", &url("page.jsonl")],
    ] {
        let output = machine.aiperf(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains("it is an HTML page and no data"), "{}", stderr(&output));
    }
}
