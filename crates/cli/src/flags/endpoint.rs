//! Flags of the group "Endpoint".

use super::{AT_LEAST_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--model", &["--model-names", "--model", "-m"], Group::Endpoint, Kind::Texts).value("NAME").default("[]").help("Model to ask for, as the server spells it. Required"),
    Flag::new("--model-selection-strategy", &["--model-selection-strategy"], Group::Endpoint, Kind::Choice).value("WAY").default("round-robin").choices(&["round-robin", "random", "weighted"]).later(Later::MoreEndpoints, &["random", "weighted"]).help("How several models share the turns; with one model there is nothing to share"),
    Flag::new("--endpoint", &["--custom-endpoint", "--endpoint"], Group::Endpoint, Kind::Text).value("PATH").help("Path that replaces the one of the endpoint type"),
    Flag::new("--endpoint-type", &["--endpoint-type"], Group::Endpoint, Kind::Choice).value("TYPE").default("chat").choices(&["audio-transcription", "chat", "cohere-rankings", "completions", "responses", "messages", "chat-embeddings", "embeddings", "hf-tei-rankings", "huggingface-generate", "image-generation", "image-edit", "video-generation", "image-retrieval", "nim-embeddings", "nim-rankings", "solido-rag", "raw", "template"]).later(Later::MoreEndpoints, &["audio-transcription", "responses", "messages", "chat-embeddings", "huggingface-generate", "image-generation", "image-edit", "video-generation", "image-retrieval", "nim-embeddings", "solido-rag", "raw", "template"]).help("API dialect spoken to the server"),
    Flag::new("--streaming", &["--streaming"], Group::Endpoint, Kind::Switch).default("False").help("Ask for streamed answers: needed for time to first token and inter-token latency"),
    Flag::new("--url", &["--url", "-u"], Group::Endpoint, Kind::Texts).value("URL").default("['http://localhost:8000']").shown_default("http://localhost:8000").help("Base URL of the server. mock:// starts the bundled mock server inside the process; its query sets it: mock://?ttft=20ms&itl=5ms&tokens=64"),
    Flag::new("--url-strategy", &["--url-strategy"], Group::Endpoint, Kind::Choice).value("WAY").default("round-robin").choices(&["round-robin"]).help("How several URLs share the sessions"),
    Flag::new("--request-timeout-seconds", &["--request-timeout-seconds"], Group::Endpoint, Kind::Seconds(AT_LEAST_0)).value("SECONDS").default("21600").help("Limit on one request, from the moment its bytes are ready to the last byte of the answer; 0 is no limit"),
    Flag::new("--wait-for-model-timeout", &["--wait-for-model-timeout"], Group::Endpoint, Kind::Seconds(AT_LEAST_0)).value("SECONDS").default("0.0").not_yet(Later::ServerHooks).help("Wait this long for the model to answer before the run"),
    Flag::new("--wait-for-model-mode", &["--wait-for-model-mode"], Group::Endpoint, Kind::Choice).value("MODE").default("inference").choices(&["models", "inference", "both"]).not_yet(Later::ServerHooks).help("What counts as ready"),
    Flag::new("--wait-for-model-interval", &["--wait-for-model-interval"], Group::Endpoint, Kind::Seconds(AT_LEAST_0)).value("SECONDS").default("5.0").not_yet(Later::ServerHooks).help("Pause between two looks"),
    Flag::new("--reset-kv-cache", &["--reset-kv-cache"], Group::Endpoint, Kind::Switch).default("False").not_yet(Later::ServerHooks).help("Empty the prefix cache of the server before the run"),
    Flag::new("--reset-kv-cache-timeout-seconds", &["--reset-kv-cache-timeout-seconds"], Group::Endpoint, Kind::Seconds(AT_LEAST_0)).value("SECONDS").not_yet(Later::ServerHooks).help("Limit on that request"),
    Flag::new("--reset-kv-cache-path", &["--reset-kv-cache-path"], Group::Endpoint, Kind::Text).value("PATH").not_yet(Later::ServerHooks).help("Path of that request"),
    Flag::new("--server-profiler", &["--server-profiler"], Group::Endpoint, Kind::Switch).default("False").not_yet(Later::ServerHooks).help("Switch the profiler of the server on and off around the run"),
    Flag::new("--server-profiler-timeout-seconds", &["--server-profiler-timeout-seconds"], Group::Endpoint, Kind::Seconds(AT_LEAST_0)).value("SECONDS").not_yet(Later::ServerHooks).help("Limit on those requests"),
    Flag::new("--server-profiler-start-path", &["--server-profiler-start-path"], Group::Endpoint, Kind::Text).value("PATH").not_yet(Later::ServerHooks).help("Path that starts it"),
    Flag::new("--server-profiler-stop-path", &["--server-profiler-stop-path"], Group::Endpoint, Kind::Text).value("PATH").not_yet(Later::ServerHooks).help("Path that stops it"),
    Flag::new("--api-key", &["--api-key"], Group::Endpoint, Kind::Text).value("KEY").help("Sent as \"Authorization: Bearer KEY\"; never printed or stored"),
    Flag::new("--transport", &["--transport", "--transport-type"], Group::Endpoint, Kind::Choice).value("NAME").shown_default("http").choices(&["http"]).help("How requests travel"),
    Flag::new("--use-legacy-max-tokens", &["--use-legacy-max-tokens"], Group::Endpoint, Kind::Switch).default("False").help("Send the output limit of chat requests as max_tokens instead of max_completion_tokens"),
    Flag::new("--use-server-token-count", &["--use-server-token-count"], Group::Endpoint, Kind::Switch).default("False").help("Take token counts from the usage the server reports instead of counting with the tokenizer"),
    Flag::new("--per-chunk-usage", &["--per-chunk-usage"], Group::Endpoint, Kind::Switch).default("False").help("Ask for usage on every chunk; needs chat, --streaming and --use-server-token-count"),
    Flag::new("--connection-reuse-strategy", &["--connection-reuse-strategy"], Group::Endpoint, Kind::Choice).value("WAY").default("pooled").choices(&["pooled", "never", "sticky-user-sessions"]).later(Later::MoreEndpoints, &["never", "sticky-user-sessions"]).help("Which connection a request takes"),
    Flag::new("--download-video-content", &["--download-video-content"], Group::Endpoint, Kind::Switch).default("False").not_yet(Later::MoreEndpoints).help("Fetch finished videos"),
    Flag::new("--request-content-type", &["--request-content-type"], Group::Endpoint, Kind::Choice).value("TYPE").shown_default("application-json").choices(&["application-json", "multipart-form-data"]).later(Later::MoreEndpoints, &["multipart-form-data"]).help("Encoding of request bodies"),
    Flag::new("--session-header", &["--session-header"], Group::Endpoint, Kind::Text).value("NAME").not_yet(Later::MoreEndpoints).help("Header that carries the session id"),
    Flag::new("--uuid-and-strip", &["--uuid-and-strip"], Group::Endpoint, Kind::Switch).default("False").help("Send an image that has an id once per session, later its id alone; chat, with single_turn rows grouped by session_id"),
];
