//! Ctrl-C and its kin.

use aiperf_clock::now;
use rustix::process::Signal;

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use crate::support::{Live, Mock, Place, aiperf};

/// <https://github.com/kubernetes-sigs/inference-perf/issues/244>: an interrupted run still reports.
#[test]
fn inference_perf_244_the_first_signal_ends_the_run_and_writes_what_was_measured() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let mock = Mock::start(&[
            ("ttft", "2ms"),
            ("itl", "1ms"),
            ("tokens", "4"),
            ("plan", "ok*30:hang*2:ok*1000"),
        ]);
        let live = Live::start(&mut place.profile(
            &mock.url(),
            "--streaming --concurrency 4 --benchmark-duration 50 --isl 16 --export-level raw",
        ));
        mock.until(|stats| stats.requests >= 60);
        live.signal(signal);
        let ran = live.end().with_code(0);
        let results = place.results();
        results.assert_complete(true);
        results.assert_all_accounted_for();
        let summary = results.summary();
        assert_eq!(summary["is_complete"], false);
        assert_eq!(summary["incomplete_reason"], "interrupted");
        assert_eq!(results.json(".aiperf_results_ready.json")["partial"], true);
        assert!(summary["in_flight_cancelled_count"].as_u64().unwrap() >= 2, "two answers never came");
        assert!(results.records().len() >= 50);
        assert_eq!(results.lines("profile_export_raw.jsonl").len(), results.records().len());
        assert!(ran.out.contains("cancelled early"), "{}", ran.out);
        assert!(ran.err.contains("no more requests are sent"), "{}", ran.err);
        // The file of inputs is whole, though most of it was never sent.
        assert!(!results.json("inputs.json")["data"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_signal_before_any_success_is_1_with_every_file() {
    for warmup in ["", "--warmup-request-count 2"] {
        let place = Place::new();
        let mock = Mock::start(&[("ttft", "1ms"), ("plan", "hang")]);
        let live = Live::start(
            &mut place.profile(&mock.url(), &format!("--concurrency 2 --request-count 9 --isl 16 {warmup}")),
        );
        mock.until(|stats| stats.in_flight == 2);
        live.signal(Signal::INT);
        let ran = live.end().with_code(1);
        place.results().assert_complete(true);
        if warmup.is_empty() {
            place.results().assert_all_accounted_for();
            assert_eq!(place.results().summary()["in_flight_cancelled_count"], 2);
        } else {
            assert!(ran.err.contains("interrupted during the warmup: nothing was measured"), "{}", ran.err);
            assert!(!ran.err.contains("the run has failed"), "{}", ran.err);
            let manifest = place.results().json("phase_manifest.json");
            let phases = manifest["phases"].as_array().unwrap();
            assert_eq!(phases.len(), 1, "{manifest}");
            assert_eq!(
                (&phases[0]["phase_kind"], &phases[0]["was_cancelled"]),
                (&"warmup".into(), &true.into())
            );
            place.results().json(phases[0]["metrics_json"].as_str().unwrap());
        }
        assert_eq!(place.results().records().len(), 0);
    }
}

/// The reference dies by SIGKILL here; ours ends at once with 130, and the records end with a whole line.
#[test]
fn a_second_signal_ends_with_130_within_200_ms() {
    // The host may be slower than the program now and then.
    let after_ms = (0..3).map(|_| milliseconds_from_the_second_signal_to_the_end()).find(|&ms| ms < 200);
    assert!(after_ms.is_some(), "never within 200 ms");
}

fn milliseconds_from_the_second_signal_to_the_end() -> u64 {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2")]);
    let flags = "--streaming --concurrency 2 --request-count 100000 --isl 16 --num-dataset-entries 10 --export-level raw";
    let live = Live::start(&mut place.profile(&mock.url(), flags));
    mock.until(|stats| stats.requests >= 200);
    // A pipe that nobody reads in the place of a file that is not there yet: after the first signal the run waits there.
    let stuck = place.path("out/.profile_export_aiperf.json.tmp");
    assert!(std::process::Command::new("mkfifo").arg(stuck).status().unwrap().success());
    live.signal(Signal::INT);
    live.await_err("no more requests are sent");
    // One that comes with the first is the first.
    let second = now();
    live.signal_until_it_ends(Signal::INT);
    let ran = live.end().with_code(130);
    let after_ms = ran.ended.saturating_since(second) / 1_000_000;
    let results = place.results();
    for name in ["profile_export.jsonl", "profile_export_raw.jsonl"] {
        assert!(results.lines(name).len() >= 100, "{name}: {} lines", results.lines(name).len());
    }
    assert!(!results.dir.join(".aiperf_results_ready.json").exists(), "an aborted run is not ready");
    assert!(!results.files().iter().any(|name| name.contains(".tmp")), "{:?}", results.files());
    after_ms
}

/// `timeout` and `kill` of a group signal the process twice at once: that is no second signal.
#[test]
fn two_signals_at_once_are_one_and_what_was_measured_is_kept() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2")]);
    let flags = "--concurrency 2 --request-count 1000000 --isl 16 --num-dataset-entries 10";
    let live = Live::start(&mut place.profile(&mock.url(), flags));
    mock.until(|stats| stats.requests >= 50);
    live.signal(Signal::TERM);
    live.signal(Signal::INT);
    live.end().with_code(0);
    place.results().assert_complete(true);
}

/// What was never sent is made after the run, for `inputs.json` alone: that is said, and a signal ends it.
#[test]
fn a_signal_after_the_run_ends_the_making_of_what_was_never_sent() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2")]);
    let flags = "--request-count 2 --isl 16 --num-dataset-entries 1e8 --ui simple";
    let live = Live::start(&mut place.profile(&mock.url(), flags));
    live.await_err(" of 100000000 conversations are in inputs.json");
    live.signal(Signal::INT);
    let ran = live.end().with_code(0);
    assert!(ran.err.contains("Ctrl-C: the run is over; inputs.json ends with what was made"), "{}", ran.err);
    assert!(ran.err.contains("inputs.json holds the first "), "{}", ran.err);
    let results = place.results();
    results.assert_complete(false);
    assert_eq!(results.json(".aiperf_results_ready.json")["partial"], true);
    assert!(ran.out.contains("inputs.json (incomplete: it ends after "), "{}", ran.out);
    assert!(results.json("inputs.json")["data"].as_array().unwrap().len() > 2);
    assert!(!results.files().iter().any(|name| name.contains(".tmp")), "{:?}", results.files());
}

/// While the data are read there is nothing to keep: the signal ends the process, as everybody expects, and says so.
#[test]
fn a_signal_while_the_data_are_read_ends_the_process_with_a_word() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        // A pipe that nobody writes into: reading waits.
        std::fs::create_dir(place.path("words")).unwrap();
        let pipe = place.path("words/tokenizer.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut command = aiperf();
        command.current_dir(place.root());
        command.args([
            "profile",
            "--model",
            "demo",
            "--url",
            "mock://",
            "--artifact-dir",
            "out",
            "--ui",
            "simple",
        ]);
        let live = Live::start(command.arg("--tokenizer").arg(place.path("words")));
        live.await_err("opening the tokenizer: ");
        live.signal(signal);
        let ran = live.end();
        assert_eq!(ran.code, None, "it ended by the signal: {}", ran.err);
        assert!(ran.err.contains("ended before the first request; nothing was written"), "{}", ran.err);
        assert!(place.is_untouched());
    }
}

/// Between the making of its files and its first request a run has nothing to lose but a clean folder.
#[test]
fn a_signal_while_the_files_are_made_ends_the_run_with_all_of_them() {
    let place = Place::new();
    let flags = "--request-count 100000 --isl 16 --num-dataset-entries 10";
    let live = Live::start(&mut place.profile("mock://?ttft=1ms&itl=0&tokens=2", flags));
    let (begun, started) = (place.path("out").join("logs/aiperf.log"), now());
    while !begun.exists() {
        assert!(now().saturating_since(started) < 60_000_000_000, "the run never began");
        std::thread::yield_now();
    }
    live.signal(Signal::INT);
    let ran = live.end();
    assert!(matches!(ran.code, Some(0 | 1)), "{:?}: {}", ran.code, ran.err);
    assert!(ran.err.contains("no more requests are sent"), "{}", ran.err);
    let results = place.results();
    results.assert_complete(true);
    assert!(!results.files().iter().any(|name| name.contains(".tmp")), "{:?}", results.files());
}

/// A run that is killed ends without a word: nothing beside its records may be those of the run before.
#[test]
fn a_killed_run_leaves_no_file_of_the_run_before_it() {
    const MOCK: &str = "mock://?ttft=1ms&itl=0&tokens=2";
    let place = Place::new();
    let whole = "--request-count 2 --isl 16 --export-level raw --warmup-request-count 1";
    place.run(MOCK, whole).with_code(0);
    for name in ["inputs.json", "profile_export_raw.jsonl", "phase_manifest.json"] {
        assert!(place.path("out").join(name).is_file(), "{name}");
    }
    let mock = Mock::start(&[("plan", "hang")]);
    let live = Live::start(&mut place.profile(&mock.url(), "--request-count 1 --isl 16"));
    mock.until(|stats| stats.requests == 1);
    live.signal(Signal::KILL);
    assert_eq!(live.end().code, None);
    assert_eq!(place.results().files(), [".inputs.json.tmp", "logs/aiperf.log", "profile_export.jsonl"]);
    place.run(MOCK, "--request-count 1 --isl 16").with_code(0);
    assert!(!place.results().files().iter().any(|name| name.contains(".tmp")));
}

/// The reference's page on environment variables: its teardown may hang, so that the process is made to exit, and a
/// run that was cancelled waits for one of its services. Here every part of the way down ends by itself, also while
/// connections are being made.
#[test]
fn aiperf_environment_variables_the_way_down_hangs_on_nothing() {
    for (scheme, flags) in
        [("http", "--concurrency 8 --request-count 50"), ("https", "--request-rate 200 --workers-max 2")]
    {
        // A new one for each: in another's queue there may be connections of the run before.
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = silent.local_addr().unwrap().port();
        let place = Place::new();
        let flags = format!("{flags} --isl 16 --export-level raw --benchmark-duration 40");
        let running = Live::start(&mut place.profile(&format!("{scheme}://127.0.0.1:{port}"), &flags));
        // A connection that nobody ever speaks on.
        let held = silent.accept().unwrap();
        running.signal(Signal::INT);
        let signalled = now();
        let ran = running.end().with_code(1);
        let took = Duration::from_nanos(ran.ended.saturating_since(signalled));
        assert!(took < Duration::from_secs(8), "{scheme}: {took:?} from the signal to the end");
        place.results().assert_complete(true);
        place.results().assert_all_accounted_for();
        drop(held);
    }
}

/// An ffmpeg that writes down each call. Those after the first, which only tries it, wait until somebody comes to the
/// gate.
const SLOW_ENCODER: &str = r#"#!/bin/sh
cat >/dev/null
echo call >>"$CALLS"
if [ "$(wc -l <"$CALLS")" -gt 1 ]; then cat "$GATE" >/dev/null; fi
for output; do :; done
echo video >"$output"
"#;

/// One turn may have thousands of videos: what is under way ends, and no other one is begun.
#[test]
fn a_signal_ends_the_making_of_a_turn_between_two_of_its_videos() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    std::fs::create_dir(place.path("bin")).unwrap();
    let encoder = place.write("bin/ffmpeg", SLOW_ENCODER);
    std::fs::set_permissions(&encoder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (calls, gate) = (place.path("calls"), place.path("gate"));
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let flags = "--request-count 3 --isl 16 --record-processors 1 --video-width 8 --video-height 8 \
                 --video-duration 0.3 --video-batch-size 900";
    let mut command = place.profile("mock://?ttft=1ms", flags);
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("CALLS", &calls).env("GATE", &gate);
    let running = Live::start(&mut command);
    // Opens once the first video is being made.
    let held = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    running.signal(Signal::INT);
    running.await_err("no more requests are sent");
    drop(held);
    running.end().with_code(1);
    place.results().assert_complete(true);
    // What was never sent is no failed request.
    assert_eq!(place.results().records().len(), 0);
    assert_eq!(std::fs::read_to_string(&calls).unwrap(), "call\ncall\n");
}

/// guidellm's troubleshooting page: worker processes made by `fork` crash on macOS. There are none.
#[test]
fn guidellm_troubleshooting_there_are_threads_and_no_processes() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2")]);
    let flags = "--concurrency 4 --workers-max 2 --record-processors 2 --benchmark-duration 40 --isl 16";
    let live = Live::start(&mut place.profile(&mock.url(), flags));
    mock.until(|stats| stats.requests >= 50);
    assert_eq!(live.children(), Vec::<String>::new());
    let threads = live.threads();
    for name in ["net-0", "net-1", "compute-0", "compute-1", "pacer"] {
        assert!(threads.iter().any(|thread| thread == name), "{threads:?}");
    }
    live.signal(Signal::INT);
    live.end().with_code(0);
}

/// While input is read there is nothing to be saved: the first signal ends the program, as it does every other one.
#[test]
fn a_signal_before_there_is_a_run_ends_the_program_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let pipe = place.path("tokenizer.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut command = aiperf();
        command.current_dir(place.root()).args([
            "profile",
            "--model",
            "demo",
            "--url",
            "mock://",
            "--tokenizer",
        ]);
        let running = Live::start(command.arg(&pipe));
        // Opens once the program reads, and says nothing.
        let held = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        running.signal(signal);
        let ran = running.end();
        assert_eq!(ran.code, None, "ended by the signal itself: {}", ran.err);
        assert!(place.is_untouched());
        drop(held);
    }
}

#[test]
fn files_that_were_deleted_during_the_run_are_told_and_not_listed() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("tokens", "2"), ("plan", "ok:hang*1000")]);
    let live = Live::start(&mut place.profile(&mock.url(), "--request-count 9 --isl 16"));
    mock.until(|stats| stats.requests >= 2);
    std::fs::remove_dir_all(place.path("out")).unwrap();
    live.signal(Signal::INT);
    let ran = live.end().with_code(1);
    let said = "out/profile_export.jsonl was deleted while the run wrote to it";
    assert!(ran.err.contains(said), "{}", ran.err);
    for line in ran.out.lines().filter_map(|line| line.split_once(": ")) {
        let is_file = line.1.starts_with(&place.root().display().to_string());
        assert!(!is_file || std::path::Path::new(line.1).exists(), "{line:?}");
    }
    assert!(!ran.out.contains("Records JSONL"), "{}", ran.out);
    assert!(ran.out.contains("Request Latency"), "{}", ran.out);
}
