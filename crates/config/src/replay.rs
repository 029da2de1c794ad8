//! How a recorded trace of completions is played again.

use std::time::Duration;

/// Columns that may say which session a row of a trace belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionColumn {
    /// `provided_session_id`: what the client said.
    Provided,
    /// `poor_man_session_id`: what was guessed from the prompts.
    PoorMan,
}

impl SessionColumn {
    /// Both, the one that wins a tie first.
    pub const ALL: [SessionColumn; 2] = [SessionColumn::Provided, SessionColumn::PoorMan];

    /// The name of the column.
    pub fn name(self) -> &'static str {
        match self {
            SessionColumn::Provided => "provided_session_id",
            SessionColumn::PoorMan => "poor_man_session_id",
        }
    }
}

/// How rows become requests and when these leave.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceReplay {
    /// Times are divided by this; above 0.
    pub speedup: f64,
    /// Longest time in which nothing happens, on the clock of the replay.
    pub idle_gap_cap: Option<Duration>,
    /// Share of the sessions that are kept, above 0, at most 1.
    pub session_sample_ratio: Option<f64>,
    /// Every turn has its recorded time; else a turn follows the answer before it after a think time.
    pub open_loop: bool,
    /// Every row is a conversation of its own.
    pub strict: bool,
    /// Rows say nothing about the cache of the recorded server.
    pub omit_kv_hints: bool,
    /// Answers are to be as long as recorded.
    pub force_min_tokens: bool,
    /// The column that names sessions; else the one whose values repeat more.
    pub session_column: Option<SessionColumn>,
}

impl Default for TraceReplay {
    fn default() -> Self {
        TraceReplay {
            speedup: 1.0,
            idle_gap_cap: None,
            session_sample_ratio: None,
            open_loop: true,
            strict: false,
            omit_kv_hints: false,
            force_min_tokens: true,
            session_column: None,
        }
    }
}

/// How recorded agents are replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentReplay {
    /// Wait for the recorded think time alone, not for the gap between requests.
    pub think_time_only: bool,
    /// No gap between the starts of a trace is longer.
    pub idle_gap_cap: Option<Duration>,
    /// Traces that need more context than this are left out, tokens.
    pub max_context_length: Option<u64>,
    /// More sessions than there are traces may run at once.
    pub wrap: bool,
    /// Agents in one list are told apart by their prompts.
    pub split_flattened: bool,
    /// Sessions that ran inside a call of another one are its subagents.
    pub join_sessions: bool,
    /// The same for sessions of codex, by its own tools.
    pub join_codex_sessions: bool,
    /// Calls shorter than this start no subagent.
    pub min_spawn: Duration,
}

impl Default for AgentReplay {
    fn default() -> AgentReplay {
        AgentReplay {
            think_time_only: false,
            idle_gap_cap: None,
            max_context_length: None,
            wrap: true,
            split_flattened: true,
            join_sessions: true,
            join_codex_sessions: true,
            min_spawn: Duration::from_secs(10),
        }
    }
}
