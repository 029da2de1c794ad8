//! Flags of the group "Input".

use super::{Flag, Group, Kind, Later, PART};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--extra-inputs", &["--extra-inputs"], Group::Input, Kind::Texts).value("KEY:VALUE").default("[]").help("Keys added to every request body: key:value pairs (several with commas, or as words of their own), or one JSON object. true, false, null and numbers become JSON values"),
    Flag::new("--header", &["--header", "-H"], Group::Input, Kind::Texts).value("NAME:VALUE").default("[]").help("Headers added to every request; credentials are never printed or stored"),
    Flag::new("--input-file", &["--input-file"], Group::Input, Kind::Path).value("PATH").help("File or folder with what to send, instead of generated text: a path, hf://ORG/REPO[@REVISION][/PATH], s3://BUCKET/KEY (a / at the end of a prefix), or the https:// URL of a file; for example traces/chat.jsonl, hf://datasets/org/chat-trace@v1, s3://my-traces/chat/2026-08/ or https://host/chat.jsonl.gz"),
    Flag::new("--public-dataset", &["--public-dataset"], Group::Input, Kind::Text).value("NAME").one_of(aiperf_dataset::public::NAMES).help("Send a published data set, from the Hugging Face Hub; aiperf datasets NAME says what it is"),
    Flag::new("--hf-subset", &["--hf-subset"], Group::Input, Kind::Text).value("NAME").help("Read this subset of --public-dataset, not the one it is known for"),
    Flag::new("--hf-weka-dataset", &["--hf-weka-dataset"], Group::Input, Kind::Text).value("OWNER/NAME").help("Send the weka traces of this repository of the Hub; selects --public-dataset weka_hf"),
    Flag::new("--dataset-filter", &["--dataset-filter"], Group::Input, Kind::Texts).value("KEY=VALUE").default("[]").help("Keep only the sessions of exgentic and exgentic_v2 that have this harness, source_model or benchmark; repeatable"),
    Flag::new("--custom-dataset-type", &["--custom-dataset-type"], Group::Input, Kind::Text).value("TYPE").one_of(aiperf_dataset::NAMES).help("Format of --input-file; found by looking at the first record if not given"),
    Flag::new("--ignore-trace-delays", &["--ignore-trace-delays"], Group::Input, Kind::Switch).default("False").help("Drop the recorded times and delays of a trace"),
    Flag::new("--use-think-time-only", &["--use-think-time-only"], Group::Input, Kind::Switch).default("False").help("Wait for the recorded think time of weka_trace and tracelab requests, not on their recorded schedule"),
    Flag::new("--max-context-length", &["--max-context-length"], Group::Input, Kind::Count { min: 1 }).value("TOKENS").help("Leave out weka_trace sessions that need more context; with exgentic, warn of requests that do"),
    Flag::new("--dataset-sampling-strategy", &["--dataset-sampling-strategy"], Group::Input, Kind::Choice).value("WAY").shown_default("sequential").choices(&["random", "sequential", "shuffle"]).help("Order in which conversations are drawn"),
    Flag::new("--allow-dataset-wrap", &["--allow-dataset-wrap", "--no-allow-dataset-wrap"], Group::Input, Kind::Switch).default("False").help("--no-allow-dataset-wrap refuses a concurrency above the number of weka_trace or tracelab sessions, unless --cache-bust tells repeats apart; otherwise sessions are repeated"),
    Flag::new("--random-seed", &["--random-seed"], Group::Input, Kind::Count { min: 0 }).value("N").help("Seed of every random draw; the same seed gives the same requests in the same order. Without it one is drawn, and recorded"),
    Flag::new("--trace-session-sample-ratio", &["--trace-session-sample-ratio"], Group::Input, Kind::Number(PART)).value("SHARE").help("Share of the sessions of a baseten_trace to replay, each as a whole; the same ones only with --random-seed"),
    Flag::new("--config", &["--config", "-f"], Group::Input, Kind::Path).value("FILE").not_yet(Later::ConfigFiles).help("Read the run from a YAML file"),
];
