//! A host or a network in the way.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Live, Mock, Place, Ran, shell};

const MOCK: &str = "mock://?ttft=1ms&itl=0&tokens=2";

/// Runs `aiperf profile` below a shell; `before` stands in front of it, `after` behind it.
fn in_shell(place: &Place, before: &str, url: &str, flags: &str, after: &str) -> Ran {
    Live::start(&mut command_in_shell(place, before, url, flags, after)).end()
}

fn command_in_shell(place: &Place, before: &str, url: &str, flags: &str, after: &str) -> Command {
    let script = format!(
        "{before} \"$AIPERF\" profile --model demo --tokenizer builtin --ui none --artifact-dir out --url '{url}' {flags} {after}"
    );
    let mut command = shell(&script);
    command.current_dir(place.root());
    command
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/50>: limits are checked against the plan before the run.
#[test]
fn inference_perf_50_too_few_descriptors_are_refused_before_the_run() {
    let place = Place::new();
    let mock = Mock::start(&[]);
    let ran = in_shell(&place, "ulimit -n 256;", &mock.url(), "--concurrency 1000 --request-count 1000", "")
        .with_code(1);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
    for part in ["256", "1000", "ulimit -n", "--concurrency"] {
        assert!(ran.err.contains(part), "no {part} in {}", ran.err);
    }
    assert!(ran.out.is_empty() && place.is_untouched());
    // Where an open loop is limited by the environment, the advice is about that.
    let limited = "ulimit -n 256; AIPERF_HTTP_CONNECTION_LIMIT=1000";
    let ran =
        in_shell(&place, limited, &mock.url(), "--request-rate 50 --benchmark-duration 1", "").with_code(1);
    assert!(ran.err.contains("lower AIPERF_HTTP_CONNECTION_LIMIT"), "{}", ran.err);
    assert!(!ran.err.contains("--concurrency"), "{}", ran.err);
    assert_eq!(mock.stats().connections, 0);
    // A cap that is never reached needs nothing, and no more than there are requests.
    in_shell(&place, limited, &mock.url(), "--request-rate 50 --request-count 4 --isl 16", "").with_code(0);
    in_shell(&place, "ulimit -n 256;", &mock.url(), "--concurrency 1000 --request-count 4 --isl 16", "")
        .with_code(0);
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/50>: how many connections an open loop needs is known when
/// it is too late; that slow answers will use them up is said before.
#[test]
fn inference_perf_50_an_open_loop_that_the_host_has_no_room_for_is_warned_of() {
    let place = Place::new();
    for (flags, count) in [
        ("--request-rate 100 --benchmark-duration 0.05", 1),
        ("--request-rate 100 --request-count 5", 0),
        ("--request-rate 100 --benchmark-duration 0.05 --concurrency 20", 0),
        ("--request-rate 2 --benchmark-duration 0.6", 0),
    ] {
        let ran = in_shell(&place, "ulimit -n 256;", MOCK, &format!("{flags} --isl 16"), "");
        let said = "at 100 requests/s the host has connections for answers within 560 ms";
        assert_eq!(ran.err.matches(said).count(), count, "{flags}: {}", ran.err);
    }
}

#[test]
fn addresses_that_nothing_can_be_sent_from_are_refused_before_the_run() {
    // Kept for documents: no host has it.
    for (address, why) in
        [("127.0.0.1,192.0.2.7", "192.0.2.7: nothing can be sent from it"), ("::1", "another kind")]
    {
        let place = Place::new();
        let mock = Mock::start(&[]);
        let ran = place
            .run(&mock.url(), &format!("--request-count 1 --isl 16 --bind-address {address}"))
            .with_code(2);
        assert!(ran.err.starts_with("error: --bind-address") && ran.err.contains(why), "{}", ran.err);
        assert!(ran.out.is_empty() && place.is_untouched());
        assert_eq!(mock.stats().connections, 0);
    }
}

/// <https://github.com/ai-dynamo/dynamo/issues/11801>: out of descriptors in an open loop, whose size nobody knows
/// beforehand. The run goes on, every failure is counted, the verdict names the limit.
#[test]
fn dynamo_11801_descriptors_that_run_out_during_the_run_are_reported() {
    for (strict, code) in [("", 0), ("--strict-load", 3)] {
        let place = Place::new();
        // Nothing is given back: descriptors run out however slow the host is.
        let mock =
            Mock::start(&[("ttft", "1ms"), ("tokens", "2"), ("usage", "estimate"), ("plan", "ok:hang*1000")]);
        let flags =
            format!("--request-rate 800 --arrival-pattern constant --request-count 400 --isl 16 {strict}");
        let live = Live::start(&mut command_in_shell(&place, "ulimit -n 230; exec", &mock.url(), &flags, ""));
        live.await_err("first failed request");
        live.signal(rustix::process::Signal::INT);
        let ran = live.end().with_code(code);
        assert!(ran.err.contains("Too many open files"), "{}", ran.err);
        let results = place.results();
        results.assert_complete(true);
        results.assert_all_accounted_for();
        let delivery = results.summary()["load_delivery"].clone();
        assert!(delivery["client"]["resource_error_count"].as_u64().unwrap() > 0, "{delivery}");
        let reasons = delivery["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason["code"] == "client_limits"), "{delivery}");
        assert!(results.text("profile_export_console.txt").contains("ulimit -n"));
    }
}

/// A file that may not grow stands for a disk that is full: no rights are needed for it.
#[test]
fn a_file_that_cannot_grow_ends_with_1_and_names_it() {
    let place = Place::new();
    let flags = "--concurrency 4 --request-count 400 --isl 16";
    // 300 blocks of 1024 bytes.
    let ran = in_shell(&place, "ulimit -f 300;", MOCK, flags, "").with_code(1);
    assert!(ran.err.contains("profile_export.jsonl") && ran.err.contains("--artifact-dir"), "{}", ran.err);
    assert!(ran.err.contains("raise the limit of file sizes"), "{}", ran.err);
    // The report is there all the same, and the records end with a whole line.
    assert!(ran.out.contains("Request Latency"));
    let results = place.results();
    let count = results.records().len();
    // All of them that have room: not one more would fit.
    let text = results.text("profile_export.jsonl");
    let longest = text.lines().map(str::len).max().unwrap();
    assert!(text.ends_with('\n') && text.len() + longest + 64 > 300 * 1024, "{} bytes", text.len());
    // As many as the messages say.
    assert!(ran.err.contains(&format!("; it ends after {count} records; ")), "{count}: {}", ran.err);
    let listed = format!("out/profile_export.jsonl (incomplete: it ends after {count} records)");
    assert!(ran.out.contains(&listed), "{listed}: {}", ran.out);
    assert_eq!(results.summary()["request_count"]["avg"], 400.0);
    // Nobody cancelled anything.
    assert_eq!(results.summary()["was_cancelled"], false);
    let marker = results.json(".aiperf_results_ready.json");
    assert_eq!((&marker["was_cancelled"], &marker["partial"]), (&false.into(), &true.into()));
}

/// The real thing, where a file system may be mounted.
#[test]
fn a_full_disk_ends_with_1_and_keeps_what_fits() {
    let place = Place::new();
    let script = "mount -t tmpfs -o size=576k tmpfs small 2>/dev/null || exit 77
        \"$AIPERF\" profile --model demo --tokenizer builtin --ui none --artifact-dir small/out \
            --url 'mock://?ttft=1ms&itl=0&tokens=2' --concurrency 4 --request-count 400 --isl 16
        code=$?
        cp -r small/out out
        exit $code";
    std::fs::create_dir(place.path("small")).unwrap();
    let mut command = shell(&format!("unshare -rm bash -c '{}'", script.replace('\'', "'\\''")));
    let ran = Live::start(command.current_dir(place.root())).end();
    if ran.code == Some(77) || ran.err.contains("unshare") {
        // Not allowed here; the test above covers the same code with a limit on file sizes.
        return;
    }
    let ran = ran.with_code(1);
    assert!(ran.err.contains("No space left") && ran.err.contains("small/out"), "{}", ran.err);
    for line in ran.err.lines().filter(|line| line.contains("No space left")) {
        assert!(line.contains("free space there, or choose another place with --artifact-dir"), "{line}");
    }
    assert!(ran.out.contains("Request Latency"), "the report is on stdout whatever the disk says");
    assert!(!place.results().records().is_empty());
}

#[test]
fn a_folder_that_cannot_be_made_is_1_before_anything_is_sent() {
    let place = Place::new();
    place.write("out", "a file is in the way");
    let mock = Mock::start(&[]);
    let ran = place.run(&mock.url(), "--request-count 2 --isl 16").with_code(1);
    assert!(ran.err.contains("--artifact-dir") && ran.err.contains("out"), "{}", ran.err);
    assert_eq!(mock.stats().requests, 0);
}

#[test]
fn a_closed_stdout_or_stderr_is_no_failure() {
    for after in ["| true; exit ${PIPESTATUS[0]}", ">&-", "2>&-", ">&- 2>&-", "2> /dev/full"] {
        let place = Place::new();
        let ran = in_shell(&place, "", MOCK, "--request-count 4 --isl 16 --streaming", after);
        assert_eq!(ran.code, Some(0), "{after}: {}", ran.err);
        place.results().assert_complete(false);
    }
}

/// The mock server with the certificate of its own tests.
fn tls_mock() -> Mock {
    let file = |name: &str| {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../mock-server/tests/data")
            .join(name)
            .display()
            .to_string()
    };
    Mock::start(&[
        ("ttft", "1ms"),
        ("tokens", "2"),
        ("tls-cert", &file("certificate.pem")),
        ("tls-key", &file("test-only-key.pem")),
    ])
}

#[test]
fn a_certificate_nobody_vouches_for_fails_every_request() {
    let place = Place::new();
    let mock = tls_mock();
    let url = format!("https://127.0.0.1:{}", mock.port());
    let ran = place.run(&url, "--request-count 3 --isl 16").with_code(1);
    let results = place.results();
    results.assert_complete(false);
    let details = results.summary()["error_summary"][0]["error_details"].clone();
    assert!(details["message"].as_str().unwrap().to_ascii_lowercase().contains("certificate"), "{details}");
    assert!(ran.out.contains("certificate") || ran.out.contains("Certificate"), "{}", ran.out);
    // Told to, it accepts any.
    let place = Place::new();
    let mut command = place.profile(&url, "--request-count 3 --isl 16");
    Live::start(command.env("AIPERF_HTTP_SSL_VERIFY", "0")).end().with_code(0);
}

/// The system's own list of authorities decides, or the file that stands for it.
#[test]
fn a_certificate_of_a_known_authority_is_accepted() {
    let place = Place::new();
    let mock = tls_mock();
    let authority = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../mock-server/tests/data/authority.pem")
        .display()
        .to_string();
    let url = format!("https://127.0.0.1:{}", mock.port());
    let mut command =
        place.profile(&url, "--streaming --concurrency 2 --request-count 6 --isl 16 --export-http-trace");
    Live::start(command.env("SSL_CERT_FILE", authority)).end().with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["request_count"]["avg"], 6.0);
    assert!(summary["http_req_tls_handshaking"]["max"].as_f64().unwrap() > 0.0);
}

#[test]
fn https_to_a_server_without_tls_says_so() {
    let place = Place::new();
    let mock = Mock::start(&[]);
    let ran =
        place.run(&format!("https://127.0.0.1:{}", mock.port()), "--request-count 2 --isl 16").with_code(1);
    let details = place.results().summary()["error_summary"][0]["error_details"].clone();
    let message = details["message"].as_str().unwrap();
    assert!(message.contains("TLS") || message.contains("tls"), "{details}");
    assert!(ran.err.contains("first failed request"), "{}", ran.err);
}

/// A report that a full disk swallowed is not one that was given.
#[test]
fn a_result_that_stdout_cannot_take_is_a_failure() {
    let place = Place::new();
    place.write("t.jsonl", "{\"input_length\": 5, \"output_length\": 5}\n");
    for command in
        ["datasets", "analyze-trace t.jsonl", "validate auto t.jsonl", "completions bash", "--help"]
    {
        let mut shell = shell(&format!("\"$AIPERF\" {command} > /dev/full"));
        shell.current_dir(place.root());
        let ran = Live::start(&mut shell).end().with_code(1);
        assert!(ran.err.contains("cannot write to standard output"), "{command}: {}", ran.err);
    }
}

/// The files are whole all the same, and the report is one of them.
#[test]
fn a_report_that_stdout_cannot_take_is_a_failure_that_says_where_it_is() {
    for (prefix, kept) in
        [("", "out/profile_export_console.txt"), ("--profile-export-prefix foo", "out/foo_console.txt")]
    {
        let place = Place::new();
        let flags = format!("--request-count 4 --isl 16 {prefix}");
        let ran = in_shell(&place, "", MOCK, &flags, "> /dev/full").with_code(1);
        let said = "cannot write the report to stdout: No space left on device (os error 28); it is in /";
        let line = ran.err.lines().find(|line| line.contains(said));
        assert!(line.is_some_and(|line| line.ends_with(kept)), "{}", ran.err);
        assert!(std::fs::read_to_string(place.path(kept)).unwrap().contains("Request Latency"));
        assert!(place.path("out/.aiperf_results_ready.json").exists());
    }
}

/// What reads stdin is not this program: a job without one is no different.
#[test]
fn a_closed_stdin_is_no_failure() {
    let place = Place::new();
    let mut command = place.profile(MOCK, "--request-count 2 --isl 16");
    Live::start(command.stdin(Stdio::null())).end().with_code(0);
    let ran = in_shell(&place, "", MOCK, "--request-count 2 --isl 16", "<&-");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// An export that fails does not stop the others; its name is printed.
#[test]
fn one_file_that_cannot_be_written_ends_with_1_and_the_others_are_there() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("out/.profile_export_aiperf.csv.tmp/in the way")).unwrap();
    let ran = place.run(MOCK, "--request-count 3 --isl 16").with_code(1);
    assert!(ran.err.contains("CSV Export"), "{}", ran.err);
    let results = place.results();
    assert_eq!(results.summary()["request_count"]["avg"], 3.0);
    assert_eq!(results.records().len(), 3);
    assert!(results.json(".aiperf_results_ready.json")["partial"].as_bool().unwrap());
    assert!(ran.out.contains("Request Latency"));
}

#[test]
fn a_file_in_the_place_of_a_folder_of_the_results_is_named_before_the_run() {
    for name in ["out", "out/logs", "out/phases"] {
        let place = Place::new();
        let mock = Mock::start(&[]);
        std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        place.write(name, "mine");
        let ran = place.run(&mock.url(), "--request-count 2 --isl 16 --warmup-request-count 2").with_code(1);
        let said = format!("{name} is a file, and must be a folder; ");
        assert!(ran.err.contains(&said) && ran.err.contains("--artifact-dir"), "{}", ran.err);
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), "mine");
        assert_eq!(mock.stats().requests, 0);
    }
}
