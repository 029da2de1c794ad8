//! An accepted flag acts: with it the run is another one than without.

use std::collections::BTreeSet;

use aiperf_cli::flags::{self, Kind};

use crate::support::{effect, words};

const FILE: &str = "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace";
const TRACE: &str = "--input-file @baseten.parquet --custom-dataset-type baseten_trace";
const AGENTS: &str = "--input-file @weka_trace.json --custom-dataset-type weka_trace";
const POOL: &str = "--input-file @random_pool.jsonl --custom-dataset-type random_pool";

const IMAGES: &str = "--image-width-mean 8 --image-height-mean 8";
const PICTURES: &str = "--image-width-mean 8 --image-height-mean 8 --image-source assets";
const VIDEO: &str = "--video-width 8 --video-height 8";
const SOUND: &str = "--video-width 8 --video-height 8 --video-audio-num-channels 1";
const CLIPS: &str = "--audio-length-mean 1";
const RANKS: &str = "--endpoint-type nim-rankings";

/// Each flag with a value, and what must stand beside it.
const USES: &[(&str, &str)] = &[
    ("--model-selection-strategy round-robin", ""),
    ("--endpoint /v2/chat", ""),
    ("--endpoint-type completions", ""),
    ("--streaming", ""),
    ("--url http://h:1", ""),
    ("--url-strategy round-robin", ""),
    ("--request-timeout-seconds 5", ""),
    ("--api-key sk-1", ""),
    ("--transport http", ""),
    ("--use-legacy-max-tokens", ""),
    ("--use-server-token-count", ""),
    ("--per-chunk-usage", "--streaming --use-server-token-count"),
    ("--connection-reuse-strategy pooled", ""),
    ("--request-content-type application/json", ""),
    ("--extra-inputs a:1", ""),
    ("--header A:1", ""),
    ("--input-file @mooncake_hash.jsonl", ""),
    ("--public-dataset spec_al_gsm8k", ""),
    ("--hf-subset socratic", "--public-dataset spec_al_gsm8k"),
    ("--hf-weka-dataset org/traces", ""),
    ("--dataset-filter harness=tool_calling", "--public-dataset exgentic"),
    ("--custom-dataset-type single_turn", "--input-file @mooncake_hash.jsonl"),
    ("--ignore-trace-delays", FILE),
    ("--use-think-time-only", AGENTS),
    ("--max-context-length 20", AGENTS),
    ("--no-allow-dataset-wrap", AGENTS),
    ("--cache-bust first-turn-prefix", ""),
    ("--trace-idle-gap-cap-seconds 2", AGENTS),
    ("--uuid-and-strip", "--input-file @single_turn.jsonl --custom-dataset-type single_turn"),
    ("--dataset-sampling-strategy random", ""),
    ("--random-seed 3", ""),
    ("--fixed-schedule", "--input-file @single_turn.jsonl --custom-dataset-type single_turn"),
    ("--no-fixed-schedule", FILE),
    ("--fixed-schedule-auto-offset=false", FILE),
    ("--fixed-schedule-start-offset 1", FILE),
    ("--fixed-schedule-end-offset 1", FILE),
    ("--artifact-dir x", ""),
    ("--profile-export-prefix x", ""),
    ("--export-level raw", ""),
    ("--export-http-trace", ""),
    ("--show-trace-timing", ""),
    ("--tokenizer builtin", ""),
    ("--tokenizer-revision v1", ""),
    ("--tokenizer-trust-remote-code", ""),
    ("--apply-chat-template", ""),
    ("--benchmark-duration 1", ""),
    ("--benchmark-grace-period 1", "--benchmark-duration 1"),
    ("--concurrency 2", ""),
    ("--request-rate 2", ""),
    ("--arrival-pattern constant", "--request-rate 2"),
    ("--arrival-smoothness 2", "--request-rate 2"),
    ("--request-count 2", ""),
    ("--concurrency-ramp-duration 2", "--concurrency 2"),
    ("--request-rate-ramp-duration 2", "--request-rate 2"),
    ("--failed-request-threshold 0.5", ""),
    ("--warmup-request-count 2", ""),
    ("--warmup-duration 2", ""),
    ("--num-warmup-sessions 2", ""),
    ("--warmup-concurrency 2", "--warmup-duration 2"),
    ("--warmup-request-rate 2", "--warmup-duration 2"),
    ("--warmup-arrival-pattern constant", "--warmup-duration 2 --request-rate 2"),
    ("--warmup-grace-period 2", "--warmup-duration 2"),
    ("--warmup-concurrency-ramp-duration 2", "--warmup-duration 2 --concurrency 2"),
    ("--warmup-request-rate-ramp-duration 2", "--warmup-duration 2 --request-rate 2"),
    ("--request-cancellation-rate 2", ""),
    ("--request-cancellation-delay 2", "--request-cancellation-rate 2"),
    ("--num-conversations 2", ""),
    ("--num-dataset-entries 2", ""),
    ("--conversation-turn-mean 2", ""),
    ("--conversation-turn-stddev 2", ""),
    ("--conversation-turn-delay-mean 2", ""),
    ("--conversation-turn-delay-stddev 2", ""),
    ("--conversation-turn-delay-ratio 2", ""),
    ("--inter-turn-delay-cap-seconds 2", ""),
    ("--max-idle-gap-cap-seconds 2", TRACE),
    ("--replay-speedup 2", TRACE),
    ("--no-open-loop-replay", TRACE),
    ("--open-loop-strict", TRACE),
    ("--omit-kv-hints", TRACE),
    ("--no-force-min-tokens", TRACE),
    ("--trace-session-sample-ratio 0.5", TRACE),
    ("--isl 2", ""),
    ("--isl-stddev 2", ""),
    ("--isl-block-size 2", FILE),
    ("--seq-dist 8,4:100", ""),
    ("--random-range-ratio 0.5", "--isl 8 --osl 4"),
    ("--random-corpus-style sglang", "--prompt-corpus random"),
    ("--osl 2", ""),
    ("--osl-stddev 2", "--osl 2"),
    ("--batch-size 2", "--endpoint-type embeddings"),
    ("--prompt-corpus coding", ""),
    ("--system-prompt hi", ""),
    ("--system-prompt-file @sys.txt", ""),
    ("--num-prefix-prompts 2 --prefix-prompt-length 2", ""),
    ("--prefix-prompt-length 2 --num-prefix-prompts 2", ""),
    ("--shared-system-prompt-length 2", ""),
    ("--user-context-prompt-length 2", "--num-conversations 2"),
    ("--synthesis-speedup-ratio 2", FILE),
    ("--synthesis-prefix-len-multiplier 2", FILE),
    ("--synthesis-prefix-root-multiplier 2", FILE),
    ("--synthesis-prompt-len-multiplier 2", FILE),
    ("--synthesis-output-len-multiplier 2", FILE),
    ("--synthesis-max-isl 2", FILE),
    ("--synthesis-max-osl 2", FILE),
    ("--audio-batch-size 2", POOL),
    ("--image-batch-size 2", POOL),
    ("--video-batch-size 2", POOL),
    ("--image-width-mean 8 --image-height-mean 8", ""),
    ("--image-height-mean 8 --image-width-mean 8", ""),
    ("--image-width-stddev 2", IMAGES),
    ("--image-height-stddev 2", IMAGES),
    ("--image-format jpeg", IMAGES),
    ("--image-source assets", IMAGES),
    ("--image-source-sampling shuffle-cycle", PICTURES),
    ("--audio-length-mean 1", ""),
    ("--audio-length-stddev 1", CLIPS),
    ("--audio-depths 8", CLIPS),
    ("--audio-sample-rates 8", CLIPS),
    ("--audio-num-channels 2", CLIPS),
    ("--audio-format mp3", CLIPS),
    ("--video-width 8 --video-height 8", ""),
    ("--video-height 8 --video-width 8", ""),
    ("--video-duration 1", VIDEO),
    ("--video-fps 2", VIDEO),
    ("--video-synth-type noise", VIDEO),
    ("--video-format mp4", VIDEO),
    ("--video-codec libx264", VIDEO),
    ("--video-audio-num-channels 1", VIDEO),
    ("--video-audio-codec libopus", SOUND),
    ("--video-audio-sample-rate 8000", SOUND),
    ("--video-audio-depth 8", SOUND),
    ("--rankings-passages-mean 2", RANKS),
    ("--rankings-passages-stddev 2", RANKS),
    ("--rankings-passages-prompt-token-mean 2", RANKS),
    ("--rankings-passages-prompt-token-stddev 2", RANKS),
    ("--rankings-query-prompt-token-mean 2", RANKS),
    ("--rankings-query-prompt-token-stddev 2", RANKS),
    ("--log-level debug", ""),
    ("--verbose", ""),
    ("--extra-verbose", ""),
    ("--record-processors 2", ""),
    ("--stats-interval 2", ""),
    ("--network-latency-mean 2", ""),
    ("--ui none", ""),
    ("--workers-max 2", ""),
    ("--strict-load", ""),
    ("--bind-address 127.0.0.1", ""),
    ("--input-columns text_input=prompt", FILE),
];

/// `--model` is needed, and what the next two switch off is not collected yet anyway.
const APART: [&str; 3] = ["--model", "--no-server-metrics", "--no-gpu-telemetry"];

/// The run, and what is said of it.
fn run(line: &str) -> (String, Vec<String>) {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    effect(&words).unwrap_or_else(|error| panic!("{line}: {}", error.report()))
}

#[test]
fn each_accepted_flag_changes_the_run() {
    let mut idle = Vec::new();
    for (flag, beside) in USES {
        let (with, notes) = run(&format!("{flag} {beside}"));
        if with != run(beside).0 {
            continue;
        }
        // There is nothing else to choose yet, or a warning says that it has no effect.
        let name = named(flag);
        let is_only_choice = flags::find(name).is_some_and(|flag| flag.values().count() == 1);
        let is_told = notes.iter().any(|note| note.starts_with(&format!("{name} changes nothing")));
        if !is_only_choice && !is_told {
            idle.push((flag, notes));
        }
    }
    assert!(idle.is_empty(), "{idle:#?}");
}

/// The flag that a line uses, by the name that its row shows.
fn named(line: &str) -> &str {
    let name = line.split([' ', '=']).next().unwrap_or_default();
    flags::find(name).map_or(name, |flag| flag.shown)
}

/// The reference lists these as defaults and does otherwise where the flag is not given: the offset is on, wrapping is
/// decided by the data, and a run has a folder of its own below the listed one.
const LISTED_OTHERWISE: [&str; 3] =
    ["--fixed-schedule-auto-offset", "--allow-dataset-wrap", "--artifact-dir"];

/// Defaults that are typed say nothing new: what the table lists as the default is what is done without the flag.
#[test]
fn a_default_that_is_typed_changes_nothing() {
    let mut differing = Vec::new();
    for (line, beside) in USES {
        let flag = flags::find(named(line)).filter(|flag| !LISTED_OTHERWISE.contains(&flag.shown));
        let Some(flag) = flag else { continue };
        // One that is not there yet is no default here.
        let later = flag.later.map_or(&[][..], |(_, values)| values);
        let Some(default) = flag.default.filter(|default| !later.contains(default)) else { continue };
        let typed = match flag.kind {
            Kind::Switch => format!("{}={}", flag.shown, default.to_ascii_lowercase()),
            Kind::Texts => continue,
            _ => format!("{} {default}", flag.shown),
        };
        if run(&format!("{typed} {beside}")).0 != run(beside).0 {
            differing.push(typed);
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn each_accepted_flag_is_in_that_test() {
    let tested: BTreeSet<&str> = USES.iter().map(|(flag, _)| named(flag)).chain(APART).collect();
    let accepted: BTreeSet<&str> = flags::all().filter(|flag| flag.acts()).map(|flag| flag.shown).collect();
    assert_eq!(tested, accepted);
}
