//! What a record does not say itself but its values depend on: the settings of the run.

use aiperf_clock::Mono;
use aiperf_config::{EndpointKind, LoadMode, RunConfig, Target};

use crate::registry::{Flag, Metric};

/// The settings of a run that decide which metrics apply and how they are computed.
#[derive(Clone, Debug)]
pub struct Context {
    /// Streaming was asked for.
    pub streaming: bool,
    /// Answers are made of tokens.
    pub produces_tokens: bool,
    /// Inputs are counted in tokens.
    pub tokenizes_input: bool,
    /// The endpoint takes images.
    pub takes_images: bool,
    /// The endpoint takes audio.
    pub takes_audio: bool,
    /// The endpoint produces video.
    pub produces_video: bool,
    /// Token counts come from the server's usage.
    pub server_token_counts: bool,
    /// Usage was asked for on every chunk.
    pub per_chunk_usage: bool,
    /// Connections are secured by TLS.
    pub tls: bool,
    /// The profiling phase plays a fixed schedule.
    pub fixed_schedule: bool,
    /// When time 0 of the recorded schedule was due; known once the phase has started.
    pub schedule_origin: Option<Mono>,
    /// Answers are graded; output lengths are then not compared with the request.
    pub accuracy: bool,
    /// Internal metrics are exported and shown.
    pub show_internal: bool,
    /// Experimental metrics are computed, exported and shown.
    pub show_experimental: bool,
    /// Network round trip to subtract, ms.
    pub network_rtt_ms: Option<f64>,
    /// Output length is a mismatch beyond this share of the requested length, percent.
    pub osl_mismatch_pct: f64,
    /// … or beyond this many tokens, whichever is smaller.
    pub osl_mismatch_max_tokens: f64,
    /// Usage and own count disagree beyond this difference, percent.
    pub usage_diff_pct: f64,
}

impl Default for Context {
    /// Streamed chat, counted by the client, with the reference's thresholds.
    fn default() -> Self {
        Context {
            streaming: true,
            produces_tokens: true,
            tokenizes_input: true,
            takes_images: true,
            takes_audio: true,
            produces_video: false,
            server_token_counts: false,
            per_chunk_usage: false,
            tls: false,
            fixed_schedule: false,
            schedule_origin: None,
            accuracy: false,
            show_internal: false,
            show_experimental: false,
            network_rtt_ms: None,
            osl_mismatch_pct: 5.0,
            osl_mismatch_max_tokens: 50.0,
            usage_diff_pct: 10.0,
        }
    }
}

impl Context {
    /// The context of a run. `schedule_origin` is not known before the phase has started.
    pub fn of(config: &RunConfig) -> Context {
        let kind = config.endpoint.kind;
        Context {
            streaming: config.endpoint.streaming,
            produces_tokens: kind.produces_tokens(),
            tokenizes_input: kind.tokenizes_input(),
            takes_images: kind == EndpointKind::Chat,
            takes_audio: kind == EndpointKind::Chat,
            server_token_counts: config.endpoint.use_server_token_count,
            per_chunk_usage: config.endpoint.per_chunk_usage,
            tls: matches!(&config.endpoint.target, Target::Server(url) if url.expose().scheme() == "https"),
            fixed_schedule: matches!(config.profiling().mode, LoadMode::FixedSchedule(_)),
            show_internal: config.output.show_internal_metrics,
            show_experimental: config.output.show_experimental_metrics,
            network_rtt_ms: config.network_latency_mean_ms,
            osl_mismatch_pct: config.tuning.osl_mismatch_pct,
            osl_mismatch_max_tokens: config.tuning.osl_mismatch_max_tokens,
            usage_diff_pct: config.tuning.usage_diff_pct,
            ..Context::default()
        }
    }

    /// Whether a metric can exist in this run, by its own flags.
    pub fn applies(&self, metric: Metric) -> bool {
        metric.def().flags & self.flags_off() == 0
    }

    /// The flags of metrics that cannot exist in this run.
    pub(crate) fn flags_off(&self) -> u32 {
        let off = |flag: Flag, needed: bool| if needed { 0 } else { flag as u32 };
        off(Flag::Streaming, self.streaming)
            | off(Flag::Tokens, self.produces_tokens)
            | off(Flag::TokenizesInput, self.tokenizes_input)
            | off(Flag::Images, self.takes_images)
            | off(Flag::Audio, self.takes_audio)
            | off(Flag::Video, self.produces_video)
            | off(Flag::UsageDiff, !self.server_token_counts)
            | off(Flag::FixedSchedule, self.fixed_schedule)
            | off(Flag::NotInAccuracy, !self.accuracy)
            | off(Flag::Experimental, self.show_experimental)
            | off(Flag::NetworkCalibrated, self.network_rtt_ms.is_some())
            | Flag::Goodput as u32
            | Flag::GpuTelemetry as u32
    }

    /// Whether a line per record carries this metric.
    pub fn exported_per_record(&self, metric: Metric) -> bool {
        let def = metric.def();
        def.per_record_export && self.shown(metric)
    }

    /// Whether exports and tables of the run carry this metric.
    pub fn shown(&self, metric: Metric) -> bool {
        self.applies(metric) && (!metric.def().has(Flag::Internal) || self.show_internal)
    }
}
