//! Marks that keep the prefix cache of a server from answering.

/// Where a mark goes, and which runs of a conversation share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheBust {
    /// In front of the system message.
    SystemPrefix,
    /// After the system message.
    SystemSuffix,
    /// In front of the first turn.
    FirstTurnPrefix,
    /// After the first turn.
    FirstTurnSuffix,
    /// In front of the system message, the same mark in all of warmup and none in profiling.
    WarmupIsolationSystem,
    /// In front of the first turn, the same mark in all of warmup and none in profiling.
    WarmupIsolationFirstTurn,
}

impl CacheBust {
    /// All of them.
    pub const ALL: [CacheBust; 6] = [
        CacheBust::SystemPrefix,
        CacheBust::SystemSuffix,
        CacheBust::FirstTurnPrefix,
        CacheBust::FirstTurnSuffix,
        CacheBust::WarmupIsolationSystem,
        CacheBust::WarmupIsolationFirstTurn,
    ];

    /// The target that the command line calls `name`.
    pub fn named(name: &str) -> Option<CacheBust> {
        CacheBust::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CacheBust::SystemPrefix => "system-prefix",
            CacheBust::SystemSuffix => "system-suffix",
            CacheBust::FirstTurnPrefix => "first-turn-prefix",
            CacheBust::FirstTurnSuffix => "first-turn-suffix",
            CacheBust::WarmupIsolationSystem => "warmup-isolation-system",
            CacheBust::WarmupIsolationFirstTurn => "warmup-isolation-first-turn",
        }
    }

    /// The name in exports.
    pub fn export_name(self) -> String {
        self.name().replace('-', "_")
    }

    /// Whether the mark goes into the system message, where there is one.
    pub fn is_system(self) -> bool {
        matches!(self, CacheBust::SystemPrefix | CacheBust::SystemSuffix | CacheBust::WarmupIsolationSystem)
    }

    /// Whether the mark follows what it marks.
    pub fn is_suffix(self) -> bool {
        matches!(self, CacheBust::SystemSuffix | CacheBust::FirstTurnSuffix)
    }

    /// Whether warmup alone is marked, and all of it alike.
    pub fn is_warmup_isolation(self) -> bool {
        matches!(self, CacheBust::WarmupIsolationSystem | CacheBust::WarmupIsolationFirstTurn)
    }

    /// The mark that says `what`, with the blank line that sets it off.
    pub fn mark(self, what: &str) -> String {
        if self.is_suffix() { format!("\n\n[{what}]") } else { format!("[{what}]\n\n") }
    }
}
