//! Every dataset type that has a name, built or not: a file of a type that is not built yet is refused by that
//! name instead of being taken for something else.

use aiperf_config::FileFormat;

/// A dataset type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A format of this version.
    Built(FileFormat),
    /// A format of a later one, by name.
    Later(&'static str),
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Built(format) => format.name(),
            Kind::Later(name) => name,
        }
    }
}

/// Types that are not built yet; SPEED-Bench apart.
const LATER: [&str; 8] = [
    "bailian_trace",
    "burst_gpt_trace",
    "azure_llm_trace",
    "baseten_trace",
    "sagemaker_data_capture",
    "tracelab",
    "weka_trace",
    "dag_jsonl",
];

/// SPEED-Bench splits: file stem, type.
pub(crate) const SPEED_BENCH: [(&str, &str); 6] = [
    ("qualitative", "speed_bench_qualitative"),
    ("throughput_1k", "speed_bench_throughput_1k"),
    ("throughput_2k", "speed_bench_throughput_2k"),
    ("throughput_8k", "speed_bench_throughput_8k"),
    ("throughput_16k", "speed_bench_throughput_16k"),
    ("throughput_32k", "speed_bench_throughput_32k"),
];

/// The type of this exact name.
pub(crate) fn named(name: &str) -> Option<Kind> {
    let built = FileFormat::ALL.into_iter().find(|format| format.name() == name).map(Kind::Built);
    let later = || LATER.into_iter().find(|later| *later == name).map(Kind::Later);
    let speed_bench =
        || SPEED_BENCH.into_iter().find(|(_, kind)| *kind == name).map(|(_, kind)| Kind::Later(kind));
    built.or_else(later).or_else(speed_bench)
}
