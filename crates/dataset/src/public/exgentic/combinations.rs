//! Which harness was recorded with which model, in which version of the data.

/// A version of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// `exgentic`
    V1,
    /// `exgentic_v2`
    V2,
}

/// Models that made the traces, as they are called without the prefix of their provider.
pub(super) const MODELS: [&str; 6] = [
    "DeepSeek-V3.2",
    "Kimi-K2.5",
    "claude-opus-4-5",
    "gemini-3-pro-preview",
    "gpt-4.1",
    "gpt-5.2-2025-12-11",
];

/// Workloads of the second version.
pub(super) const BENCHMARKS: [&str; 6] =
    ["appworld", "browsecompplus", "swebench", "tau2_airline", "tau2_retail", "tau2_telecom"];

const NONE: u8 = 0;
const ONE: u8 = 1;
const TWO: u8 = 2;
const BOTH: u8 = 3;

/// Harnesses, and for each model the versions that hold the pair.
const HARNESSES: [(&str, [u8; MODELS.len()]); 5] = [
    ("claude_code", [BOTH, BOTH, BOTH, BOTH, ONE, BOTH]),
    ("openai_solo", [BOTH, BOTH, BOTH, BOTH, ONE, TWO]),
    ("smolagents_code", [BOTH, BOTH, TWO, TWO, ONE, TWO]),
    ("tool_calling", [BOTH, BOTH, BOTH, BOTH, ONE, TWO]),
    ("tool_calling_with_shortlisting", [BOTH, BOTH, NONE, BOTH, NONE, NONE]),
];

impl Version {
    fn bit(self) -> u8 {
        match self {
            Version::V1 => ONE,
            Version::V2 => TWO,
        }
    }

    /// The pairs of harness and model that it holds.
    pub(super) fn pairs(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        HARNESSES.iter().flat_map(move |(harness, held)| {
            MODELS
                .iter()
                .zip(held)
                .filter(move |(_, held)| **held & self.bit() != 0)
                .map(move |(model, _)| (*harness, *model))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_first_version_has_22_pairs_of_5_harnesses_and_6_models_and_the_second_23() {
        let of = |version: Version| {
            let (harnesses, models): (BTreeSet<_>, BTreeSet<_>) = version.pairs().unzip();
            (version.pairs().count(), harnesses.len(), models.len())
        };
        assert_eq!(of(Version::V1), (22, 5, 6));
        assert_eq!(of(Version::V2), (23, 5, 5));
        assert!(Version::V2.pairs().all(|(_, model)| model != "gpt-4.1"));
    }
}
