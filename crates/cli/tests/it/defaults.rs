//! What a command line means where it says nothing, and what falls back to what.

use std::path::PathBuf;
use std::time::Duration;

use aiperf_cli::environment::Environment;
use aiperf_config::{
    Arrival, Corpus, DatasetSource, EndpointKind, ExportLevel, FileDataset, FileFormat, LengthRange, Lengths,
    LoadMode, Normal, PhaseConfig, RandomStyle, RunConfig, Sampling, StopRule, SyntheticDataset, Target,
    TokenizerSource, Ui,
};
use aiperf_types::PhaseKind;

use crate::support::{Told, settle, settle_line, settle_with, settled};

fn config(line: &str) -> RunConfig {
    settle_line(line).unwrap_or_else(|error| panic!("{line}: {}", error.report())).config
}

fn profiling(line: &str) -> PhaseConfig {
    config(line).profiling().clone()
}

fn warmup(line: &str) -> PhaseConfig {
    let config = config(line);
    assert_eq!(config.phases.len(), 2, "{line}");
    assert_eq!(config.phases[0].kind, PhaseKind::Warmup);
    config.phases[0].clone()
}

fn synthetic(line: &str) -> SyntheticDataset {
    match config(line).dataset.source {
        DatasetSource::Synthetic(synthetic) => synthetic,
        DatasetSource::File(_) | DatasetSource::Stored(_) => panic!("{line}"),
    }
}

fn file(line: &str) -> FileDataset {
    match config(line).dataset.source {
        DatasetSource::File(file) => file,
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => panic!("{line}"),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what it is compared with is optional")]
fn seconds(seconds: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(seconds))
}

#[test]
fn with_nothing_but_a_model() {
    let config = settled(&[]).config;
    assert_eq!(config.models, ["m"]);
    assert_eq!(config.endpoint.kind, EndpointKind::Chat);
    assert!(
        matches!(&config.endpoint.target, Target::Server(url) if url.to_string() == "http://localhost:8000/")
    );
    assert_eq!(config.endpoint.request_timeout, seconds(21_600.0));
    assert!(!config.endpoint.streaming && !config.endpoint.use_legacy_max_tokens);
    assert_eq!(config.phases.len(), 1);
    let phase = config.profiling();
    assert_eq!(phase.mode, LoadMode::Burst);
    assert_eq!(phase.concurrency, Some(1));
    assert_eq!(phase.stop, StopRule { requests: Some(10), sessions: None, duration: None });
    assert_eq!((phase.grace, phase.cancellation), (None, None));
    assert_eq!(config.dataset.sampling, Sampling::Sequential);
    assert_eq!((config.dataset.osl, config.dataset.corpus), (None, None));
    assert_eq!(config.tokenizer.source, TokenizerSource::Named("m".into()));
    assert_eq!(config.tokenizer.revision, "main");
    assert_eq!(config.output.level, ExportLevel::Records);
    assert_eq!(config.runtime.ui, Ui::Lines);
    assert_eq!(config.runtime.log_level, 2);
    assert!(!config.seed_given && !config.strict_load);
    let DatasetSource::Synthetic(synthetic) = config.dataset.source else { panic!() };
    assert_eq!((synthetic.entries, synthetic.batch_size, synthetic.prefix_pool), (100, 1, None));
    assert_eq!(synthetic.lengths, Lengths::Normal(Normal { mean: 550.0, stddev: 0.0 }));
    assert_eq!(synthetic.turns, Normal { mean: 1.0, stddev: 0.0 });
    assert_eq!(synthetic.turn_delay, Normal { mean: 0.0, stddev: 0.0 });
    assert!((synthetic.turn_delay_ratio - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_run_has_a_name_and_a_seed_of_its_own() {
    let (one, other) = (settled(&[]).config, settled(&[]).config);
    assert_eq!(one.benchmark_id.len(), 12);
    assert!(one.benchmark_id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_ne!(one.benchmark_id, other.benchmark_id);
    assert_ne!(one.seed, other.seed);
    let given = settled(&["--random-seed", "7"]).config;
    assert_eq!((given.seed, given.seed_given), (7, true));
}

#[test]
fn ten_requests_are_sent_when_nothing_else_ends_the_run_at_any_concurrency() {
    assert_eq!(profiling("--concurrency 40").stop.requests, Some(10));
    assert_eq!(profiling("--request-rate 5").stop.requests, Some(10));
    assert_eq!(profiling("--benchmark-duration 5").stop.requests, None);
    assert_eq!(profiling("--num-sessions 5").stop.requests, None);
    let all = profiling("--num-sessions 5 --request-count 7 --benchmark-duration 2").stop;
    assert_eq!(all, StopRule { requests: Some(7), sessions: Some(5), duration: seconds(2.0) });
}

#[test]
fn only_a_closed_loop_has_a_cap_of_its_own() {
    assert_eq!(profiling("").concurrency, Some(1));
    assert_eq!(profiling("--request-rate 5").concurrency, None);
    assert_eq!(profiling("--input-file @mooncake_hash.jsonl").concurrency, None);
    assert_eq!(profiling("--request-rate 5 --concurrency 3").concurrency, Some(3));
    assert_eq!(profiling("--input-file @mooncake_hash.jsonl --concurrency 3").concurrency, Some(3));
}

#[test]
fn arrivals() {
    let arrival = |line: &str| match profiling(line).mode {
        LoadMode::Rate { arrival, .. } => arrival,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(arrival("--request-rate 5"), Arrival::Poisson);
    assert_eq!(arrival("--request-rate 5 --arrival-pattern constant"), Arrival::Constant);
    assert_eq!(arrival("--request-rate 5 --request-rate-mode concurrency_burst"), Arrival::Poisson);
    assert_eq!(arrival("--request-rate 5 --arrival-pattern gamma"), Arrival::Gamma(1.0));
    assert_eq!(arrival("--request-rate 5 --arrival-smoothness 2.5"), Arrival::Gamma(2.5));
    assert_eq!(
        arrival("--request-rate 5 --vllm-burstiness 0.5 --arrival-pattern gamma"),
        Arrival::Gamma(0.5)
    );
    // A burst is what a run without a rate is.
    assert_eq!(profiling("--arrival-pattern concurrency-burst").mode, LoadMode::Burst);
}

#[test]
fn the_grace_period_is_half_a_minute_zero_or_for_ever() {
    assert_eq!(profiling("--benchmark-duration 5").grace, seconds(30.0));
    assert_eq!(profiling("--benchmark-duration 5 --benchmark-grace-period 0").grace, seconds(0.0));
    assert_eq!(profiling("--benchmark-duration 5 --benchmark-grace-period inf").grace, None);
    assert_eq!(profiling("").grace, None);
}

#[test]
fn no_timeout_is_written_as_zero() {
    assert_eq!(config("--request-timeout-seconds 0").endpoint.request_timeout, None);
    assert_eq!(config("--request-timeout-seconds 1.5").endpoint.request_timeout, seconds(1.5));
}

#[test]
fn cancellation_is_a_share_of_one() {
    let cancellation = profiling("--request-cancellation-rate 40").cancellation.unwrap();
    assert!((cancellation.share - 0.4).abs() < 1e-12);
    assert_eq!(cancellation.delay, Duration::ZERO);
    let late =
        profiling("--request-cancellation-rate 40 --request-cancellation-delay 0.5").cancellation.unwrap();
    assert_eq!(late.delay, Duration::from_millis(500));
}

#[test]
fn a_warmup_takes_what_it_is_not_given_from_the_measured_phase() {
    let phase = warmup("--warmup-request-count 3");
    assert_eq!((phase.mode, phase.concurrency, phase.grace), (LoadMode::Burst, Some(1), None));
    assert_eq!(phase.stop, StopRule { requests: Some(3), sessions: None, duration: None });
    let phase = warmup("--num-warmup-sessions 3 --concurrency 4 --concurrency-ramp-duration 2");
    assert_eq!((phase.concurrency, phase.ramps.concurrency), (Some(4), seconds(2.0)));
    let phase = warmup(
        "--warmup-duration 3 --request-rate 9 --request-rate-ramp-duration 2 --arrival-pattern constant",
    );
    assert_eq!(phase.mode, LoadMode::Rate { rate: 9.0, arrival: Arrival::Constant });
    assert_eq!((phase.concurrency, phase.ramps.rate, phase.grace), (None, seconds(2.0), None));
    let phase = warmup(
        "--warmup-duration 3 --request-rate 9 --warmup-request-rate 2 --warmup-arrival-pattern gamma \
         --arrival-smoothness 3 --warmup-concurrency 7 --warmup-grace-period 4 --warmup-concurrency-ramp-duration 1 \
         --warmup-request-rate-ramp-duration 2",
    );
    assert_eq!(phase.mode, LoadMode::Rate { rate: 2.0, arrival: Arrival::Gamma(3.0) });
    assert_eq!((phase.concurrency, phase.grace), (Some(7), seconds(4.0)));
    assert_eq!((phase.ramps.concurrency, phase.ramps.rate), (seconds(1.0), seconds(2.0)));
    // A recorded schedule is warmed up by a burst.
    let phase = warmup("--input-file @mooncake_hash.jsonl --warmup-request-count 2");
    assert_eq!((phase.mode, phase.concurrency), (LoadMode::Burst, Some(1)));
    // Nothing is broken off on purpose in a warmup.
    let phase = warmup("--warmup-request-count 2 --request-cancellation-rate 50");
    assert_eq!(phase.cancellation, None);
}

#[test]
fn the_number_of_generated_conversations_falls_back() {
    assert_eq!(synthetic("--num-prompts 4 --num-sessions 3 --request-count 2").entries, 4);
    assert_eq!(synthetic("--num-sessions 3 --request-count 2").entries, 3);
    assert_eq!(synthetic("--request-count 2").entries, 2);
    assert_eq!(synthetic("--benchmark-duration 2").entries, 100);
}

#[test]
fn a_length_of_zero_is_no_limit() {
    assert_eq!(config("--osl 0").dataset.osl, None);
    assert_eq!(config("--osl 12 --osl-stddev 2").dataset.osl, Some(Normal { mean: 12.0, stddev: 2.0 }));
}

#[test]
fn prefixes_and_system_prompts() {
    assert_eq!(synthetic("--num-prefix-prompts 0 --prefix-prompt-length 0").prefix_pool, None);
    assert_eq!(synthetic("--num-prefix-prompts 2 --prefix-prompt-length 30").prefix_pool, Some((2, 30)));
    let both =
        synthetic("--shared-system-prompt-length 8 --user-context-prompt-length 9 --num-conversations 2");
    assert_eq!((both.shared_system_prompt_length, both.user_context_prompt_length), (Some(8), Some(9)));
    assert_eq!(
        config("--system-prompt-file @sys.txt").dataset.system_prompt.as_deref(),
        Some("sys file text\n")
    );
}

#[test]
fn lengths_come_as_a_distribution_as_pairs_or_as_a_range() {
    let config = config("--sequence-distribution 8|2,4:40;16,8:60 --isl 3 --osl 4 --osl-stddev 1");
    assert_eq!(config.dataset.osl, None);
    let DatasetSource::Synthetic(shape) = config.dataset.source else { panic!() };
    let Lengths::Pairs(pairs) = shape.lengths else { panic!() };
    assert_eq!(pairs.to_string(), "8|2,4:40;16,8:60");

    let range = |line: &str| {
        let shape = synthetic(line);
        let Lengths::Range(range) = shape.lengths else { panic!("{line}") };
        (shape.random_style, range)
    };
    assert_eq!(
        range("--isl 8 --osl 4 --random-range-ratio 0.25"),
        (RandomStyle::Vllm, LengthRange { input: 8, output: 4, input_ratio: 0.25, output_ratio: 0.25 })
    );
    assert_eq!(
        range("--isl 8 --osl 4 --random-range-ratio {\"input\":0.5,\"output\":0}"),
        (RandomStyle::Vllm, LengthRange { input: 8, output: 4, input_ratio: 0.5, output_ratio: 0.0 })
    );
    assert_eq!(
        range("--isl 8 --osl 4 --random-range-ratio 1 --random-corpus-style sglang"),
        (RandomStyle::Sglang, LengthRange { input: 8, output: 4, input_ratio: 1.0, output_ratio: 1.0 })
    );
    assert_eq!(self::config("--isl 8 --osl 4 --random-range-ratio 0.5").dataset.osl, None);
}

#[test]
fn lengths_that_are_said_twice_and_styles_without_use_are_warnings() {
    let notes = |line: &str| {
        let notes = settle_line(line).unwrap_or_else(|error| panic!("{}", error.report())).notes;
        notes.iter().map(|note| note.text.clone()).collect::<Vec<_>>().join("\n")
    };
    let text = notes("--seq-dist 8,4:100 --isl 5 --osl-stddev 2 --osl 3");
    for flag in ["--isl", "--osl", "--osl-stddev"] {
        assert!(
            text.contains(&format!("{flag} changes nothing: the lengths are those of --seq-dist")),
            "{text}"
        );
    }
    assert!(notes("--random-corpus-style sglang").contains("--random-corpus-style changes nothing"));
    assert_eq!(notes("--random-corpus-style sglang --prompt-corpus random"), "");
}

#[test]
fn a_batch_of_texts_goes_to_endpoints_that_take_one() {
    assert_eq!(synthetic("--endpoint-type embeddings -b 4").batch_size, 4);
    assert_eq!(synthetic("--endpoint-type completions --batch-size-text 4").batch_size, 4);
}

/// <https://github.com/ai-dynamo/aiperf/issues/273>
#[test]
fn aiperf_273_a_timestamped_trace_replays_on_its_times_by_default() {
    for line in [
        "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace",
        "--input-file @mooncake_hash.jsonl",
        "--input-file @mooncake_hash.jsonl --fixed-schedule",
    ] {
        let phase = profiling(line);
        assert!(
            matches!(phase.mode, LoadMode::FixedSchedule(schedule) if schedule.zero_ms.is_none()),
            "{line}"
        );
        assert_eq!(phase.stop, StopRule::default(), "every turn is played: {line}");
    }
    // Where the type is found by looking, the run says the same in the line that names it.
    let declared = "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace";
    let note = &settle_line(declared).unwrap().notes[0];
    assert!(
        note.text.contains("mooncake_trace") && note.text.contains("--no-fixed-schedule"),
        "{}",
        note.text
    );
    let opted_out = "--input-file @mooncake_hash.jsonl --no-fixed-schedule --request-rate 3";
    assert!(matches!(profiling(opted_out).mode, LoadMode::Rate { .. }));
    assert_eq!(profiling("--input-file @mooncake_hash.jsonl --ignore-trace-delays").mode, LoadMode::Burst);
}

#[test]
fn an_explicit_count_caps_a_schedule() {
    assert_eq!(profiling("--input-file @mooncake_hash.jsonl --request-count 3").stop.requests, Some(3));
}

#[test]
fn the_start_of_a_schedule() {
    let zero = |flags: &str| match profiling(&format!("--input-file @mooncake_hash.jsonl {flags}")).mode {
        LoadMode::FixedSchedule(schedule) => schedule.zero_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(zero(""), None);
    assert_eq!(zero("--fixed-schedule-auto-offset"), None);
    assert_eq!(zero("--fixed-schedule-auto-offset=false"), Some(0.0));
    assert_eq!(zero("--fixed-schedule-start-offset 90"), Some(90.0));
    assert_eq!(zero("--fixed-schedule-end-offset 90"), None);
    let window = |flags: &str| file(&format!("--input-file @mooncake_hash.jsonl {flags}")).window;
    assert_eq!(
        window("--fixed-schedule-start-offset 90 --fixed-schedule-end-offset 200"),
        (Some(90.0), Some(200.0))
    );
}

#[test]
fn files() {
    let trace = file("--input-file @mooncake_hash.jsonl --isl-block-size 16 --num-dataset-entries 3");
    assert_eq!((trace.format, trace.detected), (FileFormat::MooncakeTrace, true));
    assert_eq!((trace.block_size, trace.entries), (Some(16), Some(3)));
    let single = file("--input-file @single_turn.jsonl --custom-dataset-type Single-Turn --request-count 3");
    assert_eq!((single.format, single.detected), (FileFormat::SingleTurn, false));
    // The number of requests says nothing of what is read.
    assert_eq!(single.entries, None);
}

#[test]
fn a_detected_format_without_blocks_ignores_a_block_size() {
    let probe = Told { detected: FileFormat::SingleTurn, ..Told::default() };
    let path = crate::support::data("single_turn.jsonl");
    let settled =
        settle_with(&["--input-file", &path, "--isl-block-size", "16"], &Environment::default(), &probe)
            .unwrap();
    let DatasetSource::File(file) = settled.config.dataset.source else { panic!() };
    assert_eq!((file.format, file.block_size), (FileFormat::SingleTurn, None));
}

#[test]
fn a_pool_is_drawn_from_as_often_as_the_first_number_says() {
    let pool = |flags: &str| {
        file(&format!("--input-file @random_pool.jsonl --custom-dataset-type random_pool {flags}"))
    };
    assert_eq!(pool("").entries, Some(100));
    assert_eq!(pool("--request-count 3").entries, Some(3));
    assert_eq!(pool("--request-count 3 --num-conversations 4").entries, Some(4));
    assert_eq!(pool("--request-count 3 --num-conversations 4 --num-dataset-entries 5").entries, Some(5));
    assert_eq!(pool("").pool_batch, [1, 1, 1, 1]);
    assert_eq!(pool("--batch-size 2 --batch-size-image 0 --audio-batch-size 3").pool_batch, [2, 0, 3, 1]);
}

#[test]
fn tokenizers() {
    let source = |line: &str| config(line).tokenizer.source;
    assert_eq!(source("--tokenizer builtin"), TokenizerSource::Builtin);
    assert_eq!(source("--tokenizer org/other"), TokenizerSource::Named("org/other".into()));
    assert_eq!(source("--url mock://"), TokenizerSource::Builtin);
    assert_eq!(source("--url mock:// --tokenizer org/other"), TokenizerSource::Named("org/other".into()));
    let typed = aiperf_cli::typed::Typed::parse(["profile", "-m", "mock-model"]).unwrap();
    let settled = aiperf_cli::settle::settle(&typed, &Environment::default(), &Told::default()).unwrap();
    assert_eq!(settled.config.tokenizer.source, TokenizerSource::Builtin);
    assert!(settled.notes[0].warning && settled.notes[0].text.contains("mock-model"));
}

#[test]
fn remote_code_is_never_run_and_says_so() {
    let notes = settled(&["--tokenizer-trust-remote-code"]).notes;
    assert!(notes.iter().any(|note| note.warning && note.text.contains("never run")), "{notes:?}");
}

#[test]
fn streaming_is_switched_off_where_answers_are_not_streamed() {
    let settled = settled(&["--endpoint-type", "embeddings", "--streaming"]);
    assert!(!settled.config.endpoint.streaming);
    assert!(settled.notes.iter().any(|note| note.warning && note.text.contains("--streaming")));
}

#[test]
fn an_output_limit_on_embeddings_is_a_warning() {
    let notes = settled(&["--endpoint-type", "embeddings", "--osl", "5"]).notes;
    assert!(notes.iter().any(|note| note.warning && note.text.contains("--osl")), "{notes:?}");
}

#[test]
fn verbosity() {
    let level = |arguments: &[&str]| settled(arguments).config.runtime.log_level;
    assert_eq!(level(&["--log-level", "warning"]), 4);
    assert_eq!(level(&["-v", "--log-level", "error"]), 1);
    assert_eq!(level(&["-vv"]), 0);
    assert_eq!(level(&["-v", "-v"]), 0);
    assert_eq!(level(&["--extra-verbose"]), 0);
    assert_eq!(level(&["--log-level", "critical"]), 7);
}

#[test]
fn the_view_follows_the_terminal_until_it_is_chosen() {
    let terminal = Environment { terminal: true, ..Environment::default() };
    let ui = |arguments: &[&str], environment: &Environment| {
        settle_with(arguments, environment, &Told::default()).unwrap().config.runtime.ui
    };
    assert_eq!(ui(&[], &terminal), Ui::Simple);
    assert_eq!(ui(&[], &Environment::default()), Ui::Lines);
    assert_eq!(ui(&["--ui", "none"], &terminal), Ui::None);
    assert_eq!(ui(&["--ui", "none", "-v"], &terminal), Ui::None);
    assert_eq!(ui(&["--ui", "simple"], &Environment::default()), Ui::Simple);
}

#[test]
fn the_folder_of_a_run_is_named_after_it() {
    let environment = Environment { directory: "/home/me".into(), ..Environment::default() };
    let dir = |line: &str| {
        let words = crate::support::words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        settle_with(&words, &environment, &Told::default()).unwrap().config.output.dir
    };
    assert_eq!(dir(""), PathBuf::from("/home/me/artifacts/m-openai-chat-concurrency1"));
    assert_eq!(dir("--concurrency 3"), PathBuf::from("/home/me/artifacts/m-openai-chat-concurrency3"));
    assert_eq!(
        dir("--concurrency 3 --request-rate 20 --endpoint-type completions"),
        PathBuf::from("/home/me/artifacts/m-openai-completions-concurrency3-request_rate20.0")
    );
    assert_eq!(
        dir("--request-rate 10.5"),
        PathBuf::from("/home/me/artifacts/m-openai-chat-request_rate10.5")
    );
    assert_eq!(
        dir("--input-file @mooncake_hash.jsonl --concurrency 3"),
        PathBuf::from("/home/me/artifacts/m-openai-chat-fixed_schedule")
    );
    assert_eq!(dir("--artifact-dir out/x"), PathBuf::from("/home/me/out/x"));
    assert_eq!(dir("--artifact-dir /out"), PathBuf::from("/out"));
    let typed = aiperf_cli::typed::Typed::parse(["profile", "-m", "org/mock-model"]).unwrap();
    let settled = aiperf_cli::settle::settle(&typed, &environment, &Told::default()).unwrap();
    assert!(settled.config.output.dir.ends_with("org_mock-model-openai-chat-concurrency1"));
}

#[test]
fn known_suffixes_are_cut_from_the_prefix() {
    for (text, prefix) in [
        ("foo", "foo"),
        ("foo.json", "foo"),
        ("foo_raw.jsonl", "foo"),
        ("foo_server_metrics.parquet", "foo"),
        ("foo_timeslices.csv", "foo"),
        ("foo_console.txt", "foo"),
        ("foo.v2", "foo.v2"),
        ("foo.json.json", "foo.json"),
    ] {
        let config = settled(&["--profile-export-prefix", text]).config;
        assert_eq!(config.output.prefix.as_deref(), Some(prefix), "{text}");
    }
}

#[test]
fn developer_metrics_need_both_switches() {
    let shown = |names: &[&str]| {
        let mut environment = Environment::default();
        for name in names {
            environment.variables.insert((*name).into(), "1".into());
        }
        let output = settle_with(&[], &environment, &Told::default()).unwrap().config.output;
        (output.show_internal_metrics, output.show_experimental_metrics)
    };
    assert_eq!(shown(&["AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS"]), (false, false));
    assert_eq!(shown(&["AIPERF_DEV_MODE", "AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS"]), (false, true));
    assert_eq!(shown(&["AIPERF_DEV_MODE", "AIPERF_DEV_SHOW_INTERNAL_METRICS"]), (true, false));
}

#[test]
fn a_variable_that_nobody_reads_is_told() {
    let mut environment = Environment::default();
    environment.variables.insert("AIPERF_SERVICE_REGISTRATION_TIMEOUT".into(), "1".into());
    let notes = settle_with(&[], &environment, &Told::default()).unwrap().notes;
    assert!(notes[0].warning && notes[0].text.contains("AIPERF_SERVICE_REGISTRATION_TIMEOUT"));
}

#[test]
fn headers_of_one_name_replace_each_other() {
    let headers = settle(&["-H", "X-A:1", "-H", "x-a: 2, B:3"]).unwrap().config.endpoint.headers;
    let pairs: Vec<_> = headers.iter().map(|header| (header.name.as_str(), header.value.expose())).collect();
    assert_eq!(pairs, [("x-a", "2"), ("B", "3")]);
}

#[test]
fn a_schedule_without_a_count_learns_it_when_the_data_are_loaded() {
    let mut config = config("--input-file @mooncake_hash.jsonl");
    config.note_scheduled_turns(8);
    let phase = config.input_config["phases"][0].as_object().unwrap();
    assert_eq!(phase["requests"], 8);
    assert_eq!(phase.keys().take(4).collect::<Vec<_>>(), ["name", "kind", "type", "requests"]);
    let mut config = self::config("--input-file @mooncake_hash.jsonl --request-count 3");
    config.note_scheduled_turns(8);
    assert_eq!(config.input_config["phases"][0]["requests"], 3);
}

#[test]
fn a_corpus_can_be_chosen() {
    assert_eq!(config("--prompt-corpus coding").dataset.corpus, Some(Corpus::Coding));
    assert_eq!(config("--prompt-corpus random").dataset.corpus, Some(Corpus::Random));
}
