//! What there is to rank, for endpoints that rank.

use aiperf_config::{EndpointKind, Normal, SyntheticRankings};

use super::refuse_all;
use crate::typed::Typed;
use crate::usage::UsageError;

const PASSAGES: [&str; 2] = ["--rankings-passages-mean", "--rankings-passages-stddev"];
const PASSAGE_TOKENS: [&str; 2] =
    ["--rankings-passages-prompt-token-mean", "--rankings-passages-prompt-token-stddev"];
const QUERY_TOKENS: [&str; 2] =
    ["--rankings-query-prompt-token-mean", "--rankings-query-prompt-token-stddev"];

/// Flags that shape prompts, of which a request to rank has none.
const OF_PROMPTS: [&str; 8] = [
    "--isl",
    "--isl-stddev",
    "--seq-dist",
    "--random-range-ratio",
    "--random-corpus-style",
    "--batch-size",
    "--num-prefix-prompts",
    "--prefix-prompt-length",
];

/// `None` where the endpoint does not rank.
pub(super) fn settle(typed: &Typed, kind: EndpointKind) -> Result<Option<SyntheticRankings>, UsageError> {
    if !kind.ranks() {
        let needs = format!("shapes requests of endpoints that rank, and {} does not", kind.name());
        refuse_each(
            typed,
            &needs,
            "use --endpoint-type nim-rankings, cohere-rankings or hf-tei-rankings, or drop it",
        )?;
        return Ok(None);
    }
    refuse_all(
        typed,
        &OF_PROMPTS,
        &format!("shapes prompts, and a request of {} has a query and passages", kind.name()),
        "use --rankings-query-prompt-token-mean, --rankings-passages-mean and --rankings-passages-prompt-token-mean",
    )?;
    let normal = |[mean, stddev]: [&'static str; 2], default: f64| {
        let normal = Normal {
            mean: typed.number(mean).unwrap_or(default),
            stddev: typed.number(stddev).unwrap_or(0.0),
        };
        if normal.mean > 0.0 {
            return Ok(normal);
        }
        Err(UsageError::combination(format!("{mean} 0 leaves nothing to rank"), "give 1 or more"))
    };
    Ok(Some(SyntheticRankings {
        passages: normal(PASSAGES, 1.0)?,
        passage_tokens: normal(PASSAGE_TOKENS, 550.0)?,
        query_tokens: normal(QUERY_TOKENS, 550.0)?,
    }))
}

/// Refuses what shapes generated queries and passages where `source` brings its own.
pub(super) fn refuse(typed: &Typed, source: &str) -> Result<(), UsageError> {
    refuse_each(
        typed,
        &format!("shapes generated queries and passages, and {source} brings its own"),
        &format!("drop it, or drop {source}"),
    )
}

fn refuse_each(typed: &Typed, needs: &str, fix: &str) -> Result<(), UsageError> {
    for flags in [PASSAGES, PASSAGE_TOKENS, QUERY_TOKENS] {
        refuse_all(typed, &flags, needs, fix)?;
    }
    Ok(())
}
