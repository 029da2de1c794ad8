//! `input_config` of the results: what was set, in the layout that readers of the reference's exports know.
//!
//! Values the user did not give are left out, but for the few that the reference always writes.

use aiperf_config::{
    Arrival, Corpus, DatasetSource, LengthPair, Lengths, LoadMode, Normal, PhaseConfig, PublicDataset,
    RunConfig, SyntheticMedia, Target, TokenizerSource, Ui, is_secret_pair, shown_extras,
};
use aiperf_types::PhaseKind;
use serde_json::{Map, Value, json};

use super::runtime::LEVELS;
use super::{lengths, media};
use crate::typed::Typed;

/// Builds it.
pub(super) fn build(typed: &Typed, config: &RunConfig) -> Value {
    let mut root = Map::new();
    root.insert("models".into(), models(typed, config));
    root.insert("endpoint".into(), endpoint(typed, config));
    root.insert("datasets".into(), Value::Array(vec![dataset(typed, config)]));
    let phases = config.phases.iter().map(|phase| self::phase(typed, phase)).collect();
    root.insert("phases".into(), Value::Array(phases));
    root.insert("artifacts".into(), artifacts(typed, config));
    root.insert("tokenizer".into(), tokenizer(typed, config));
    // Nothing of the kind is collected yet, asked or not.
    root.insert("gpu_telemetry".into(), json!({"enabled": false}));
    root.insert("server_metrics".into(), json!({"enabled": false}));
    root.insert(
        "network_latency".into(),
        match config.network_latency_mean_ms {
            Some(mean) => json!({"enabled": true, "mean_ms": mean}),
            None => json!({"enabled": false}),
        },
    );
    for tracker in ["otel", "mlflow", "wandb"] {
        root.insert(tracker.into(), json!({}));
    }
    root.insert("runtime".into(), runtime(typed, config));
    if ["--log-level", "--verbose", "--extra-verbose"].iter().any(|flag| typed.has(flag)) {
        let level = LEVELS[usize::from(config.runtime.log_level)].to_ascii_uppercase();
        root.insert("logging".into(), json!({"level": level}));
    }
    Value::Object(root)
}

/// Keys in order, each only when there is a value for it.
#[derive(Default)]
struct Keys(Map<String, Value>);

impl Keys {
    fn set(&mut self, key: &str, value: impl Into<Value>) -> &mut Keys {
        self.0.insert(key.into(), value.into());
        self
    }

    fn maybe(&mut self, key: &str, value: Option<impl Into<Value>>) -> &mut Keys {
        if let Some(value) = value {
            self.set(key, value);
        }
        self
    }

    fn done(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}

fn choice(typed: &Typed, flag: &str) -> Option<String> {
    typed.text(flag).map(|text| text.replace('-', "_"))
}

fn models(typed: &Typed, config: &RunConfig) -> Value {
    let items: Vec<Value> = config.models.iter().map(|name| json!({"name": name})).collect();
    Keys::default().maybe("strategy", choice(typed, "--model-selection-strategy")).set("items", items).done()
}

fn endpoint(typed: &Typed, config: &RunConfig) -> Value {
    let endpoint = &config.endpoint;
    let url = match &endpoint.target {
        Target::Mock(text) => text.clone(),
        Target::Server(url) => {
            let typed = url.typed();
            if typed.contains("://") { typed } else { format!("http://{typed}") }
        }
    };
    let headers = (!endpoint.headers.is_empty()).then(|| {
        endpoint
            .headers
            .iter()
            .map(|header| {
                let shown = if is_secret_pair(&header.name, header.value.expose()) {
                    header.value.to_string()
                } else {
                    header.value.expose().to_owned()
                };
                (header.name.clone(), Value::String(shown))
            })
            .collect::<Map<_, _>>()
    });
    Keys::default()
        .set("urls", vec![url])
        .maybe("url_strategy", choice(typed, "--url-strategy"))
        .maybe("type", choice(typed, "--endpoint-type"))
        .maybe("path", endpoint.custom_path.as_deref().map(aiperf_config::redact_path))
        .maybe("api_key", endpoint.api_key.as_ref().map(ToString::to_string))
        .maybe("timeout", typed.number("--request-timeout-seconds"))
        .maybe("streaming", typed.switch("--streaming").map(|_| endpoint.streaming))
        .maybe("transport", typed.text("--transport"))
        .maybe("connection_reuse", typed.text("--connection-reuse-strategy"))
        .maybe("use_legacy_max_tokens", typed.switch("--use-legacy-max-tokens"))
        .maybe("use_server_token_count", typed.switch("--use-server-token-count"))
        .maybe("per_chunk_usage", typed.switch("--per-chunk-usage"))
        .maybe("uuid_and_strip", typed.switch("--uuid-and-strip"))
        .maybe("headers", headers)
        .maybe("extra", (!endpoint.extra_inputs.is_empty()).then(|| shown_extras(&endpoint.extra_inputs)))
        .maybe("request_content_type", typed.has("--request-content-type").then_some("application/json"))
        .done()
}

/// `{mean, stddev}` of two flags. A number that was not given is left out; `whole` writes both when one was.
fn normal(typed: &Typed, mean: &str, stddev: &str, default: f64, whole: bool) -> Option<Value> {
    if !typed.has(mean) && !typed.has(stddev) {
        return None;
    }
    let spread = typed.number(stddev).or(whole.then_some(0.0));
    Some(Keys::default().set("mean", typed.number(mean).unwrap_or(default)).maybe("stddev", spread).done())
}

fn dataset(typed: &Typed, config: &RunConfig) -> Value {
    let mut keys = Keys::default();
    keys.maybe("system_prompt", typed.text("--system-prompt"))
        .maybe("system_prompt_file", typed.text("--system-prompt-file"))
        .set("name", "main");
    let seed = config.seed_given.then_some(config.seed);
    let sampling = typed.text("--dataset-sampling-strategy");
    let cap = typed.number("--inter-turn-delay-cap-seconds");
    let osl = normal(typed, "--osl", "--osl-stddev", 0.0, false);
    let corpus = config.dataset.corpus.map(corpus_name);
    if let Some(public) = &config.dataset.public {
        return public_dataset(typed, config, public, keys);
    }
    match &config.dataset.source {
        DatasetSource::File(file) => {
            keys.set("type", "file")
                .set("path", file.path.display().to_string())
                .maybe("format", (!file.detected).then(|| file.format.name()))
                .maybe("synthesis", synthesis(typed))
                .maybe("sampling", sampling)
                .maybe("entries", file.entries)
                .maybe("random_seed", seed)
                .maybe("trace_session_sample_ratio", typed.number("--trace-session-sample-ratio"))
                .maybe("inter_turn_delay_cap_seconds", cap)
                .maybe("max_idle_gap_cap_seconds", typed.number("--max-idle-gap-cap-seconds"))
                .maybe("replay_speedup", typed.number("--replay-speedup"))
                .maybe("open_loop_replay", typed.switch("--open-loop-replay"))
                .maybe("open_loop_strict", typed.switch("--open-loop-strict"))
                .maybe("omit_kv_hints", typed.switch("--omit-kv-hints"))
                .maybe("force_min_tokens", typed.switch("--force-min-tokens"))
                .maybe("osl", osl)
                .maybe("prompt_batch_size", typed.count("--batch-size"))
                .maybe("image_batch_size", typed.count("--image-batch-size"))
                .maybe("audio_batch_size", typed.count("--audio-batch-size"))
                .maybe("video_batch_size", typed.count("--video-batch-size"))
                .maybe("block_size", file.block_size)
                .maybe("trace_idle_gap_cap_seconds", typed.number("--trace-idle-gap-cap-seconds"))
                .maybe("ignore_trace_delays", typed.switch("--ignore-trace-delays"))
                .maybe("use_think_time_only", typed.switch("--use-think-time-only"))
                .maybe("max_context_length", typed.count("--max-context-length"))
                .maybe("prompts", corpus.map(|corpus| json!({"corpus": corpus})));
        }
        // Said above.
        DatasetSource::Stored(_) => {}
        DatasetSource::Synthetic(synthetic) => {
            let counted = ["--num-dataset-entries", "--num-conversations", "--request-count"];
            let entries = counted.iter().any(|flag| typed.has(flag)).then_some(synthetic.entries);
            let prompts = Keys::default()
                .set("isl", isl(typed))
                .maybe("osl", osl)
                .maybe("batch_size", typed.count("--batch-size"))
                .maybe("corpus", corpus)
                .maybe("sequence_distribution", length_pairs(&synthetic.lengths))
                .maybe("random_range_ratio", typed.text("--random-range-ratio"))
                .maybe("random_corpus_style", typed.text("--random-corpus-style"))
                .done();
            let prefixes = Keys::default()
                .maybe("pool_size", typed.count("--num-prefix-prompts"))
                .maybe("length", typed.count("--prefix-prompt-length"))
                .maybe("shared_system_length", synthetic.shared_system_prompt_length)
                .maybe("user_context_length", synthetic.user_context_prompt_length)
                .done();
            let has_prefixes = prefixes.as_object().is_some_and(|keys| !keys.is_empty());
            keys.set("type", "synthetic")
                .maybe("entries", entries)
                .maybe("random_seed", seed)
                .maybe("sampling", sampling)
                .maybe("inter_turn_delay_cap_seconds", cap)
                .set("prompts", prompts)
                .maybe("prefix_prompts", has_prefixes.then_some(prefixes))
                .maybe("images", images(typed, &synthetic.media))
                .maybe("audio", audio(typed, &synthetic.media))
                .maybe("video", video(typed, &synthetic.media))
                .maybe("rankings", rankings(typed))
                .maybe(
                    "turns",
                    normal(typed, "--conversation-turn-mean", "--conversation-turn-stddev", 1.0, true),
                )
                .maybe(
                    "turn_delay",
                    normal(
                        typed,
                        "--conversation-turn-delay-mean",
                        "--conversation-turn-delay-stddev",
                        0.0,
                        true,
                    ),
                )
                .maybe("turn_delay_ratio", typed.number("--conversation-turn-delay-ratio"));
        }
    }
    keys.maybe("cache_bust", config.dataset.cache_bust.map(|target| json!({"target": target.export_name()})));
    keys.done()
}

/// Of a public data set; `keys` holds what comes before.
fn public_dataset(typed: &Typed, config: &RunConfig, public: &PublicDataset, mut keys: Keys) -> Value {
    let corpus = config.dataset.corpus.map(corpus_name);
    keys.set("type", "public")
        .set("dataset", public.name)
        .maybe("repo", public.repo.clone())
        .maybe("subset", public.subset.clone())
        .maybe("filters", filters(public))
        .maybe("synthesis", synthesis(typed))
        .maybe("sampling", typed.text("--dataset-sampling-strategy"))
        .maybe("entries", public.entries)
        .maybe("random_seed", config.seed_given.then_some(config.seed))
        .maybe("inter_turn_delay_cap_seconds", typed.number("--inter-turn-delay-cap-seconds"))
        .maybe("osl", normal(typed, "--osl", "--osl-stddev", 0.0, false))
        .maybe("trace_idle_gap_cap_seconds", typed.number("--trace-idle-gap-cap-seconds"))
        .maybe("ignore_trace_delays", typed.switch("--ignore-trace-delays"))
        .maybe("use_think_time_only", typed.switch("--use-think-time-only"))
        .maybe("max_context_length", typed.count("--max-context-length"))
        .maybe("prompts", corpus.map(|corpus| json!({"corpus": corpus})));
    keys.maybe("cache_bust", config.dataset.cache_bust.map(|target| json!({"target": target.export_name()})));
    keys.done()
}

fn corpus_name(corpus: Corpus) -> &'static str {
    match corpus {
        Corpus::Sonnet => "sonnet",
        Corpus::Coding => "coding",
        Corpus::Random => "random",
    }
}

/// Which rows of a public data set are kept.
fn filters(public: &PublicDataset) -> Option<Value> {
    let keys: Map<String, Value> =
        public.filters.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    (!keys.is_empty()).then_some(keys.into())
}

/// What was said of how a trace is changed.
fn synthesis(typed: &Typed) -> Option<Value> {
    let keys = Keys::default()
        .maybe("speedup_ratio", typed.number("--synthesis-speedup-ratio"))
        .maybe("prefix_len_multiplier", typed.number("--synthesis-prefix-len-multiplier"))
        .maybe("prefix_root_multiplier", typed.count("--synthesis-prefix-root-multiplier"))
        .maybe("prompt_len_multiplier", typed.number("--synthesis-prompt-len-multiplier"))
        .maybe("output_len_multiplier", typed.number("--synthesis-output-len-multiplier"))
        .maybe("max_isl", typed.count("--synthesis-max-isl"))
        .maybe("max_osl", typed.count("--synthesis-max-osl"))
        .done();
    keys.as_object().is_some_and(|keys| !keys.is_empty()).then_some(keys)
}

fn images(typed: &Typed, media: &SyntheticMedia) -> Option<Value> {
    let images = media.images.as_ref()?;
    Some(
        Keys::default()
            .maybe("batch_size", typed.count("--image-batch-size"))
            .set("width", spread(images.width))
            .set("height", spread(images.height))
            .maybe("format", typed.text("--image-format"))
            .maybe("source", typed.text("--image-source"))
            .maybe("source_sampling", typed.text("--image-source-sampling"))
            .done(),
    )
}

fn audio(typed: &Typed, media: &SyntheticMedia) -> Option<Value> {
    let audio = media.audio.as_ref()?;
    let rates: Vec<f64> =
        media::numbers(typed, "--audio-sample-rates").into_iter().filter_map(Result::ok).collect();
    Some(
        Keys::default()
            .maybe("batch_size", typed.count("--audio-batch-size"))
            .set("length", spread(audio.length))
            .maybe("format", typed.text("--audio-format"))
            .maybe("sample_rates", (!rates.is_empty()).then_some(rates))
            .maybe("depths", typed.has("--audio-depths").then(|| audio.depths.clone()))
            .maybe("channels", typed.count("--audio-num-channels"))
            .done(),
    )
}

fn video(typed: &Typed, media: &SyntheticMedia) -> Option<Value> {
    let video = media.video.as_ref()?;
    let sound = video.sound.as_ref().map(|_| {
        Keys::default()
            .maybe("channels", typed.count("--video-audio-num-channels"))
            .maybe("sample_rate", typed.count("--video-audio-sample-rate"))
            .maybe("codec", typed.text("--video-audio-codec"))
            .maybe("depth", typed.text("--video-audio-depth").and_then(|depth| depth.parse::<u8>().ok()))
            .done()
    });
    Some(
        Keys::default()
            .maybe("batch_size", typed.count("--video-batch-size"))
            .set("width", video.width)
            .set("height", video.height)
            .maybe("duration", typed.number("--video-duration"))
            .maybe("fps", typed.count("--video-fps"))
            .maybe("synth_type", typed.text("--video-synth-type"))
            .maybe("format", typed.text("--video-format"))
            .maybe("codec", typed.text("--video-codec"))
            .maybe("audio", sound)
            .done(),
    )
}

/// What was said of queries and passages.
fn rankings(typed: &Typed) -> Option<Value> {
    let of = |name: &str, default| {
        let (mean, stddev) = (format!("--rankings-{name}-mean"), format!("--rankings-{name}-stddev"));
        normal(typed, &mean, &stddev, default, false)
    };
    let keys = Keys::default()
        .maybe("passages", of("passages", 1.0))
        .maybe("passage_tokens", of("passages-prompt-token", 550.0))
        .maybe("query_tokens", of("query-prompt-token", 550.0))
        .done();
    keys.as_object().is_some_and(|keys| !keys.is_empty()).then_some(keys)
}

/// A mean, and a deviation where there is one.
fn spread(normal: Normal) -> Value {
    Keys::default()
        .set("mean", normal.mean)
        .maybe("stddev", (normal.stddev > 0.0).then_some(normal.stddev))
        .done()
}

fn length_pairs(lengths: &Lengths) -> Option<Vec<Value>> {
    let Lengths::Pairs(pairs) = lengths else { return None };
    let normal = |normal: Normal| json!({"mean": normal.mean, "stddev": normal.stddev});
    let pair = |pair: &LengthPair| json!({"isl": normal(pair.input), "osl": normal(pair.output), "probability": pair.share});
    Some(pairs.list().iter().map(pair).collect())
}

fn isl(typed: &Typed) -> Value {
    let mean = typed.number("--isl").unwrap_or(lengths::DEFAULT_ISL);
    Keys::default().set("mean", mean).maybe("stddev", typed.number("--isl-stddev")).done()
}

fn phase(typed: &Typed, phase: &PhaseConfig) -> Value {
    let warmup = phase.kind == PhaseKind::Warmup;
    let kind = match phase.mode {
        LoadMode::Burst => "concurrency",
        LoadMode::FixedSchedule(_) => "fixed_schedule",
        LoadMode::Rate { arrival: Arrival::Constant, .. } => "constant",
        LoadMode::Rate { arrival: Arrival::Poisson, .. } => "poisson",
        LoadMode::Rate { arrival: Arrival::Gamma(_), .. } => "gamma",
    };
    let ramp = |time: Option<std::time::Duration>| time.map(|time| json!({"duration": time.as_secs_f64()}));
    // The limit of 1 that nobody asked for is written for a warmup only, as in the reference.
    let concurrency = phase.concurrency.filter(|_| warmup || typed.has("--concurrency"));
    // `null` is a grace period without end.
    let grace_given = if warmup { typed.has("--warmup-grace-period") } else { phase.stop.duration.is_some() };
    let (rate, smoothness) = match phase.mode {
        LoadMode::Rate { rate, arrival } => (
            Some(rate),
            match arrival {
                Arrival::Gamma(shape) => typed.has("--arrival-smoothness").then_some(shape),
                _ => None,
            },
        ),
        _ => (None, None),
    };
    let mut keys = Keys::default();
    keys.set("name", phase.kind.name())
        .set("kind", phase.kind.name())
        .set("type", kind)
        .maybe("exclude_from_results", warmup.then_some(true))
        .maybe("requests", phase.stop.requests)
        .maybe("duration", phase.stop.duration.map(|time| time.as_secs_f64()))
        .maybe("sessions", phase.stop.sessions)
        .maybe("concurrency", concurrency)
        .maybe("concurrency_ramp", ramp(phase.ramps.concurrency))
        .maybe(
            "grace_period",
            grace_given.then(|| phase.grace.map_or(Value::Null, |time| json!(time.as_secs_f64()))),
        )
        .maybe(
            "cancellation",
            phase.cancellation.and_then(|cancellation| {
                let percent = typed.number("--request-cancellation-rate")?;
                Some(json!({"rate": percent, "delay": cancellation.delay.as_secs_f64()}))
            }),
        )
        .maybe("failed_request_threshold", typed.number("--failed-request-threshold"))
        .maybe("rate", rate)
        .maybe("rate_ramp", ramp(phase.ramps.rate))
        .maybe("smoothness", smoothness);
    if let LoadMode::FixedSchedule(_) = phase.mode {
        let start = typed.count("--fixed-schedule-start-offset");
        let auto = typed.switch("--fixed-schedule-auto-offset").or(start.map(|_| false));
        keys.maybe("auto_offset", auto)
            .maybe("start_offset", start)
            .maybe("end_offset", typed.count("--fixed-schedule-end-offset"));
    }
    keys.done()
}

fn artifacts(typed: &Typed, config: &RunConfig) -> Value {
    let level = typed.text("--export-level");
    let records = level.map(|level| if level == "summary" { json!(false) } else { json!(["jsonl"]) });
    Keys::default()
        .set("dir", config.output.dir.display().to_string())
        .maybe("prefix", typed.text("--profile-export-prefix"))
        .maybe("records", records)
        .maybe("raw", level.map(|level| level == "raw"))
        .maybe("trace", typed.switch("--export-http-trace"))
        .maybe("show_trace_timing", typed.switch("--show-trace-timing"))
        .set("auto_plot", false)
        .set("plot_required", false)
        .done()
}

fn tokenizer(typed: &Typed, config: &RunConfig) -> Value {
    let name = match &config.tokenizer.source {
        TokenizerSource::Builtin => Some("builtin"),
        TokenizerSource::Named(name) => Some(name.as_str()).filter(|_| typed.has("--tokenizer")),
    };
    Keys::default()
        .maybe("name", name)
        .maybe("revision", typed.text("--tokenizer-revision"))
        .maybe("trust_remote_code", typed.switch("--tokenizer-trust-remote-code"))
        .maybe("apply_chat_template", typed.switch("--apply-chat-template"))
        .done()
}

fn runtime(typed: &Typed, config: &RunConfig) -> Value {
    let ui = match config.runtime.ui {
        Ui::Simple => "simple",
        Ui::None | Ui::Lines => "none",
    };
    Keys::default()
        .set("ui", ui)
        .maybe("workers", typed.count("--workers-max"))
        .maybe("record_processors", typed.count("--record-processors"))
        .maybe("stats_interval", typed.number("--stats-interval"))
        .done()
}
