//! What is said once because the figures do not show it.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Echo, Live, Mock, Place, Ran, http};

#[track_caller]
fn assert_said_once(ran: &Ran, words: &str) {
    assert_eq!(ran.err.matches(words).count(), 1, "{words}: {}", ran.err);
}

#[test]
fn more_reasoning_than_output_is_told() {
    let body = serde_json::json!({
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 5}},
    });
    let server =
        Echo::start(move |_| http("200 OK", "Content-Type: application/json\r\n", &body.to_string()));
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", server.port);
    let ran = place.run(&url, "--use-server-token-count --request-count 3 --isl 8").with_code(0);
    assert_said_once(&ran, "more reasoning tokens than completion tokens");
    let summary = place.results().summary();
    assert_eq!(summary["reasoning_token_count"]["avg"], 5.0);
    assert!(summary.get("output_token_count").is_none(), "{summary}");
}

#[test]
fn an_output_length_that_embeddings_have_not_is_told_once() {
    let flags = "--endpoint-type embeddings --osl 8 --request-count 2 --isl 8";
    let ran = Place::new().run("mock://?ttft=1ms", flags).with_code(0);
    assert_said_once(&ran, "--osl");
}

#[test]
fn a_first_event_that_does_not_say_what_it_holds_is_told() {
    let stream = |usage: &str| {
        let chunk = |delta: &str, usage: &str| {
            format!(
                "data: {{\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]{usage}}}\n\n"
            )
        };
        let end = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":6}}\n\ndata: [DONE]\n\n";
        [&chunk("{\"content\":\"a b\"}", usage), &chunk("{\"content\":\" c\"}", ""), end].concat()
    };
    let flags = "--streaming --use-server-token-count --per-chunk-usage --request-count 3 --isl 8";
    for (usage, told) in
        [("", 1), (",\"usage\":{\"completion_tokens\":6}", 1), (",\"usage\":{\"completion_tokens\":4}", 0)]
    {
        let stream = stream(usage);
        let server = Echo::start(move |_| http("200 OK", "Content-Type: text/event-stream\r\n", &stream));
        let ran = Place::new().run(&format!("http://127.0.0.1:{}", server.port), flags).with_code(0);
        let words = "does not say how many tokens the first event of an answer holds";
        assert_eq!(ran.err.matches(words).count(), told, "{usage}: {}", ran.err);
    }
}

#[test]
fn a_default_that_leaves_a_part_of_the_data_out_is_told() {
    let place = Place::new();
    place.write("d.jsonl", "{\"text\": \"hi\"}\n".repeat(12));
    let file = "--input-file d.jsonl --custom-dataset-type single_turn";
    let ran = place.run("mock://", file).with_code(0);
    assert_said_once(
        &ran,
        "10 requests are sent, the default, of the 12 in the data; --num-conversations 12 sends each",
    );
    for asked in ["--request-count 10", "--num-conversations 12"] {
        let ran = place.run("mock://", &format!("{file} {asked}")).with_code(0);
        assert!(!ran.err.contains("the default"), "{}", ran.err);
    }
}

#[test]
fn a_schedule_that_is_cut_short_says_by_what_and_what_was_detected_once() {
    let place = Place::new();
    let row = |time: u32| format!("{{\"timestamp\": {time}, \"input_length\": 8, \"output_length\": 2}}\n");
    place.write("d.jsonl", (0..4).map(row).collect::<String>());
    let ran = place.run("mock://", "--input-file d.jsonl --request-count 3").with_code(0);
    assert_said_once(&ran, "the recorded schedule lasts 0.003 s; --request-count 3 ends it sooner");
    assert_said_once(&ran, "mooncake_trace");
    assert!(
        ran.err.contains("detected as mooncake_trace") && ran.err.contains("--no-fixed-schedule"),
        "{}",
        ran.err
    );
}

#[test]
fn arrivals_that_find_no_slot_are_told() {
    let flags = "--request-rate 1000 --arrival-pattern constant --concurrency 1 --request-count 3 --isl 8";
    let ran = Place::new().run("mock://?ttft=20ms&itl=0ms", flags).with_code(0);
    assert_said_once(&ran, "arrivals found all slots of --concurrency 1 taken and were skipped, not queued");
}

#[test]
fn a_recorded_schedule_that_was_not_kept_is_told() {
    let place = Place::new();
    let row = |index: u32| {
        format!("{{\"timestamp\": {}, \"input_length\": 8, \"output_length\": 2}}\n", index * 50)
    };
    place.write("d.jsonl", (0..100).map(row).collect::<String>());
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2")]);
    let flags = "--input-file d.jsonl --custom-dataset-type mooncake_trace";
    let live = Live::start(&mut place.profile(&mock.url(), flags));
    mock.until(|stats| stats.requests >= 3);
    live.signal(Signal::STOP);
    // Rows of a second are late by more than half a one, wherever in these five seconds the stop falls.
    std::thread::park_timeout(Duration::from_millis(1500));
    live.signal(Signal::CONT);
    let ran = live.end().with_code(0);
    assert_said_once(&ran, "the recorded schedule was not kept");
    assert_eq!(place.results().summary()["replay_sched_degraded"]["avg"], 1.0);
}

#[test]
fn a_run_that_its_grace_period_cut_off_whole_says_so() {
    let flags = "--concurrency 3 --benchmark-duration 0.4 --benchmark-grace-period 0.2 --isl 8";
    let ran = Place::new().run("mock://?plan=hang", flags).with_code(1);
    assert_said_once(
        &ran,
        "no request succeeded: the run has failed (exit code 1); all 3 requests were cut off by \
         --benchmark-grace-period 0.2: raise it, or --benchmark-duration",
    );
}

/// What is cut off is what was slow: every figure is better without it.
#[test]
fn requests_that_the_grace_period_cut_off_are_told_as_missing_from_the_figures() {
    let flags = "--concurrency 3 --benchmark-duration 0.4 --benchmark-grace-period 0.2 --isl 8";
    let ran = Place::new().run("mock://?plan=ok*5:hang*2:ok*1000&ttft=5ms&itl=0", flags).with_code(0);
    assert_said_once(&ran, "--benchmark-grace-period cut off 2 of ");
    assert_said_once(&ran, "they were the slowest, and are in no latency; raise it");
}

#[test]
fn a_run_that_ended_before_its_first_arrival_says_when_that_was_due() {
    let flags = "--request-rate 0.5 --arrival-pattern constant --benchmark-duration 0.4 --isl 8";
    let ran = Place::new().run("mock://", flags).with_code(1);
    assert_said_once(&ran, "no arrival fell into 0.4 s: at 0.5 requests/s the first is due after 2 s");
}

#[test]
fn warmup_requests_that_were_cut_off_are_told() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("tokens", "2"), ("plan", "hang:ok*1000")]);
    let flags = "--warmup-duration 0.3 --warmup-grace-period 0.1 --request-count 3 --isl 8";
    let ran = place.run(&mock.url(), flags).with_code(0);
    assert_said_once(&ran, "--warmup-grace-period cut off 1 of 1 warmup requests: raise it");
}

#[test]
fn a_network_that_is_slower_than_the_answers_is_told() {
    let told = |mean: &str| {
        let flags = format!("--network-latency-mean {mean} --request-count 3 --isl 8");
        let ran = Place::new().run("mock://?ttft=5ms&tokens=2", &flags).with_code(0);
        let words = format!("--network-latency-mean {mean} is longer than the shortest request latency, ");
        ran.err.contains(&words)
    };
    assert!(told("60000") && !told("1"));
}

#[test]
fn data_that_are_sent_round_and_round_are_told() {
    let place = Place::new();
    let rows = ["a", "b", "c"].map(|text| format!("{{\"text\": \"{text}\"}}\n"));
    place.write("d.jsonl", rows.concat());
    let said = |flags: &str| {
        let ran =
            place.run("mock://?ttft=1ms&tokens=2", &format!("--input-file d.jsonl {flags}")).with_code(0);
        let words =
            "3 conversations, sent round and round until 4 requests (--num-conversations 3 sends each once)";
        ran.err.contains(words)
    };
    assert!(said("--request-count 4"));
    for flags in [
        "--request-count 3",
        "--num-conversations 3",
        "--request-count 4 --dataset-sampling-strategy shuffle",
    ] {
        assert!(!said(flags), "{flags}");
    }
}

#[test]
fn more_slots_than_requests_are_told() {
    let ran = Place::new().run("mock://?ttft=1ms", "--concurrency 50 --request-count 3 --isl 8").with_code(0);
    assert_said_once(&ran, "--concurrency 50 is never reached: the run ends after 3 requests");
    assert!(!ran.out.contains("held 100.0 %"), "{}", ran.out);
}

#[test]
fn a_folder_that_keeps_another_run_beside_this_one_is_told() {
    let place = Place::new();
    let run = |flags: &str| {
        let flags = format!("--request-count 1 --isl 8 {flags}");
        place.run("mock://?ttft=1ms&tokens=2", &flags).with_code(0)
    };
    let words = "out holds another run, whose files have another prefix (";
    for (flags, told) in [("", 0), ("", 0), ("--profile-export-prefix foo", 1), ("", 1)] {
        let ran = run(flags);
        assert_eq!(ran.err.matches(words).count(), told, "{flags}: {}", ran.err);
    }
}

/// Files of two runs under the names of one would be taken for those of one.
#[test]
fn a_run_whose_files_have_names_of_another_one_replaces_it_whole_and_says_so() {
    for (first, second, gone) in [
        ("", "--profile-export-prefix profile_export", "profile_export_aiperf.json"),
        ("--export-level raw", "--profile-export-prefix profile_export_raw", "profile_export_aiperf.csv"),
        (
            "--export-level raw --profile-export-prefix foo",
            "--profile-export-prefix foo_raw",
            "foo_console.txt",
        ),
    ] {
        let place = Place::new();
        let run = |flags: &str| {
            place.run("mock://?ttft=1ms&tokens=2", &format!("--request-count 1 --isl 8 {flags}")).with_code(0)
        };
        run(first);
        let earlier = place.results().files();
        assert!(earlier.iter().any(|file| file == gone), "{earlier:?}");
        let ran = run(second);
        let words = "out held another run, whose files have another prefix (";
        assert_eq!(ran.err.matches(words).count(), 1, "{second}: {}", ran.err);
        assert!(!ran.err.contains("and stay"), "{second}: {}", ran.err);
        // What is there is what the run leaves in a folder of its own.
        let files = place.results().files();
        std::fs::remove_dir_all(place.path("out")).unwrap();
        let ran = run(second);
        assert!(!ran.err.contains(words), "{}", ran.err);
        assert_eq!(files, place.results().files(), "{second}");
    }
}
