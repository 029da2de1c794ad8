//! The one list of metrics: what each is called, in which unit, when it applies and where it is shown.

mod curves;
mod definition;
mod energy;
mod http_trace;
mod latency;
mod media;
mod metric;
mod replay;
mod requests;
mod speculative;
mod tokens;
pub(crate) mod units;
mod usage;

pub use definition::{Flag, Fold, Kind, MetricDef, ValueType};
pub use metric::Metric;

/// A table of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConsoleGroup {
    /// In no table (or, for trace timings, in one of its own on demand).
    Hidden,
    /// The main table.
    Default,
    /// What servers report about token usage.
    Usage,
    /// Step curves over the whole window.
    Effective,
    /// Step curves over the time something ran.
    Active,
    /// Speculative decoding.
    SpecDecode,
    /// Efficiency of NVIDIA GPUs.
    NvidiaEfficiency,
    /// Efficiency of AMD GPUs.
    AmdEfficiency,
}

impl ConsoleGroup {
    /// The group's name in machine-readable lists.
    pub const fn name(self) -> &'static str {
        match self {
            ConsoleGroup::Hidden => "none",
            ConsoleGroup::Default => "default",
            ConsoleGroup::Usage => "usage",
            ConsoleGroup::Effective => "effective",
            ConsoleGroup::Active => "active",
            ConsoleGroup::SpecDecode => "spec_decode",
            ConsoleGroup::NvidiaEfficiency => "gpu_power_efficiency_nvidia",
            ConsoleGroup::AmdEfficiency => "gpu_power_efficiency_amd",
        }
    }
}

const TABLES: [&[MetricDef]; 10] = [
    latency::ROWS,
    tokens::ROWS,
    requests::ROWS,
    usage::ROWS,
    speculative::ROWS,
    http_trace::ROWS,
    curves::ROWS,
    replay::ROWS,
    media::ROWS,
    energy::ROWS,
];

/// Every metric's definition, at the index of its variant.
static DEFINITIONS: [MetricDef; Metric::COUNT] = assemble();

/// Puts the rows of all tables where their variants say; does not compile when one is missing or doubled.
#[expect(clippy::large_stack_arrays, reason = "evaluated by the compiler only")]
const fn assemble() -> [MetricDef; Metric::COUNT] {
    let mut all = [TABLES[0][0]; Metric::COUNT];
    let mut seen = [false; Metric::COUNT];
    let mut table = 0;
    while table < TABLES.len() {
        let mut row = 0;
        while row < TABLES[table].len() {
            let def = TABLES[table][row];
            let index = def.metric as usize;
            assert!(!seen[index], "a metric has two rows");
            seen[index] = true;
            all[index] = def;
            row += 1;
        }
        table += 1;
    }
    let mut index = 0;
    while index < Metric::COUNT {
        assert!(seen[index], "a metric has no row");
        index += 1;
    }
    all
}

impl Metric {
    /// What is fixed about this metric.
    #[inline]
    pub fn def(self) -> &'static MetricDef {
        &DEFINITIONS[self as usize]
    }

    /// Its key in exports.
    #[inline]
    pub fn tag(self) -> &'static str {
        self.def().tag
    }

    /// The metric of this tag.
    pub fn from_tag(tag: &str) -> Option<Metric> {
        DEFINITIONS.iter().find(|def| def.tag == tag).map(|def| def.metric)
    }

    /// The metric at a place in the order of exports.
    #[inline]
    pub fn from_index(index: usize) -> Option<Metric> {
        DEFINITIONS.get(index).map(|def| def.metric)
    }
}

/// All metrics, in the order of exports.
pub fn all() -> impl ExactSizeIterator<Item = &'static MetricDef> {
    DEFINITIONS.iter()
}
