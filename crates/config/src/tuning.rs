//! What the environment may set: knobs that no command line needs.

use std::time::Duration;

use crate::{AgentReplay, IpVersion, SessionColumn};

/// Settings that come from environment variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// How long cancelled requests may take to come back before their slots are reclaimed.
    pub cancel_drain: Duration,
    /// Overdue arrivals older than this are given up; `None` keeps all.
    pub max_catch_up: Option<Duration>,
    /// The rate ramp starts at what it reaches after this time.
    pub rate_ramp_interval: Duration,
    /// Spin for the last microseconds before a send where cores allow it.
    pub high_resolution_timer: bool,
    /// The pacer has a thread of its own even when there is one network worker.
    pub pacer_thread: bool,
    /// How long an idle connection is kept.
    pub keep_alive: Duration,
    /// Connections of the whole process; `None` is no limit.
    pub connection_limit: Option<u32>,
    /// Receive buffer of sockets, bytes; `None` leaves it to the kernel.
    pub receive_buffer: Option<u32>,
    /// Send buffer of sockets, bytes; `None` leaves it to the kernel.
    pub send_buffer: Option<u32>,
    /// Which addresses a name may resolve to.
    pub ip_version: IpVersion,
    /// Certificates are checked.
    pub verify_tls: bool,
    /// Proxies named by the environment are used.
    pub trust_environment_proxies: bool,
    /// Headers that carry the correlation id, in order.
    pub affinity_headers: Vec<&'static str>,
    /// Message content is an array of parts even for one text.
    pub force_content_parts: bool,
    /// An output length is a mismatch beyond this share of the requested one, percent …
    pub osl_mismatch_pct: f64,
    /// … or beyond this many tokens, whichever is smaller.
    pub osl_mismatch_max_tokens: f64,
    /// Usage and own count disagree beyond this difference, percent.
    pub usage_diff_pct: f64,
    /// Columns of `profile_export_console.txt`.
    pub console_width: u16,
    /// Smallest step of a progress bar, percent.
    pub min_update_pct: f64,
    /// The column that names the sessions of a trace of completions; else the one whose values repeat more.
    pub session_column: Option<SessionColumn>,
    /// How recorded agents are told apart, unless an option says otherwise.
    pub agents: AgentReplay,
    /// Colour is allowed (`NO_COLOR` is not set, and the terminal knows colours).
    pub color: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            cancel_drain: Duration::from_secs(10),
            max_catch_up: None,
            rate_ramp_interval: Duration::from_millis(100),
            high_resolution_timer: true,
            pacer_thread: false,
            keep_alive: Duration::from_mins(5),
            connection_limit: None,
            receive_buffer: None,
            send_buffer: None,
            ip_version: IpVersion::V4,
            verify_tls: true,
            trust_environment_proxies: false,
            affinity_headers: vec!["X-Session-Affinity"],
            force_content_parts: false,
            osl_mismatch_pct: 5.0,
            osl_mismatch_max_tokens: 50.0,
            usage_diff_pct: 10.0,
            console_width: 140,
            min_update_pct: 1.0,
            session_column: None,
            agents: AgentReplay::default(),
            color: true,
        }
    }
}
