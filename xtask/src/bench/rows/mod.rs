//! The rows of the table: one family of rows per module, one line of registration each.

use anyhow::{Result, bail};

use super::Bench;
use super::figure::Figure;

mod cost;
mod cross_check;
mod datasets;
mod generated;
mod lateness;
mod memory;
mod public;
mod remote;
mod replay;
mod sockets;
mod start;
mod streams;
mod synthesize;
mod ttft;

/// Measures one row.
pub(crate) type Measure = fn(&Bench) -> Result<Vec<Figure>>;

/// One row that can be asked for.
pub(crate) struct Row {
    /// As typed.
    pub(crate) name: &'static str,
    /// What it measures.
    pub(crate) about: &'static str,
    /// Whether the reference takes part.
    pub(crate) reference: bool,
    /// Measures it.
    pub(crate) measure: Measure,
}

/// All rows, in the order of the table.
pub(crate) const ALL: &[Row] = &[
    Row {
        name: "cpu",
        about: "CPU per non-streaming request, beside wrk",
        reference: false,
        measure: cost::plain,
    },
    Row {
        name: "cpu-streaming",
        about: "CPU per streaming request of 100 events, beside wrk",
        reference: false,
        measure: cost::streaming,
    },
    Row {
        name: "cpu-reference",
        about: "the same two beside the reference",
        reference: true,
        measure: cost::reference,
    },
    Row {
        name: "start",
        about: "start to first request on the wire",
        reference: true,
        measure: start::synthetic,
    },
    Row {
        name: "start-trace",
        about: "start to first request of the Mooncake trace",
        reference: true,
        measure: start::trace,
    },
    Row {
        name: "prepare-trace",
        about: "every body of the Mooncake trace made, none sent",
        reference: true,
        measure: datasets::prepare,
    },
    Row {
        name: "analyze-trace",
        about: "analysis and check of the Mooncake trace",
        reference: false,
        measure: datasets::analyze,
    },
    Row {
        name: "start-large",
        about: "start to first request of a file of 1,000,000 rows",
        reference: false,
        measure: datasets::large,
    },
    Row {
        name: "round-trip",
        about: "a recorded run replayed: times of its sends and answers",
        reference: false,
        measure: datasets::round_trip,
    },
    Row {
        name: "replay-large",
        about: "replay of a baseten_trace of 2 GB, in order and shuffled",
        reference: false,
        measure: replay::large,
    },
    Row {
        name: "memory-trace",
        about: "peak memory replaying that trace from 0 to 60 s",
        reference: false,
        measure: memory::trace,
    },
    Row {
        name: "lateness",
        about: "lateness of sends, constant 500/s for 30 s",
        reference: true,
        measure: lateness::measure,
    },
    Row {
        name: "throughput",
        about: "requests/s and SSE events/s at concurrency 64, beside wrk",
        reference: false,
        measure: cost::throughput,
    },
    Row {
        name: "memory-record",
        about: "memory kept per finished request, up to 1,000,000",
        reference: false,
        measure: memory::per_record,
    },
    Row {
        name: "ttft",
        about: "client TTFT minus the server's own",
        reference: false,
        measure: ttft::measure,
    },
    Row {
        name: "streams",
        about: "10,000 concurrent streams for 30 s",
        reference: false,
        measure: streams::measure,
    },
    Row {
        name: "cross-check",
        about: "rate and latency beside wrk and the server's own",
        reference: false,
        measure: cross_check::measure,
    },
    Row {
        name: "sockets",
        about: "limits in time on real sockets",
        reference: false,
        measure: sockets::measure,
    },
    Row {
        name: "prompts",
        about: "100,000 generated prompts of 1,000 tokens, none sent, beside the reference",
        reference: true,
        measure: generated::prompts,
    },
    Row {
        name: "images",
        about: "1,000 generated PNG images of 512x512, none sent, beside the reference; the same in JPEG",
        reference: true,
        measure: generated::images,
    },
    Row {
        name: "download",
        about: "dataset fetch of 1 GiB from loopback, beside curl, tee and sha256sum",
        reference: false,
        measure: remote::download,
    },
    Row {
        name: "start-cached",
        about: "start to first request of data in the cache, beside the same file on disk",
        reference: false,
        measure: remote::warm,
    },
    Row {
        name: "s3-listing",
        about: "access check of a prefix of S3 with 100,000 entries",
        reference: false,
        measure: remote::listing,
    },
    Row {
        name: "memory-public",
        about: "peak memory preparing recorded sessions of 178,000 tokens from a stub of the Hub",
        reference: false,
        measure: public::memory,
    },
    Row {
        name: "agentic-code",
        about: "1,000 sessions of synthesize agentic-code with all reports, beside the reference",
        reference: true,
        measure: synthesize::agentic_code,
    },
    Row {
        name: "synthesize-trace",
        about: "1,000,000 rows of synthesize trace",
        reference: false,
        measure: synthesize::trace,
    },
];

/// The rows with these names, in the order of the table; all for none.
pub(crate) fn select(names: &[&str]) -> Result<Vec<&'static Row>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|row| row.name != **name)) {
        let known = ALL.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        bail!("no row `{unknown}`; there are {known}");
    }
    Ok(ALL.iter().filter(|row| names.is_empty() || names.contains(&row.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_rows_in_table_order_and_unknown_ones_are_refused() {
        let names: Vec<_> = select(&["ttft", "cpu"]).unwrap().iter().map(|row| row.name).collect();
        assert_eq!(names, ["cpu", "ttft"]);
        assert_eq!(select(&[]).unwrap().len(), ALL.len());
        assert!(select(&["speed"]).err().unwrap().to_string().contains("cpu-streaming"));
    }

    /// <https://github.com/huggingface/text-generation-inference/issues/1733>: figures of a client that nobody has
    /// ever checked mislead. What checks ours is published with how it is done.
    #[test]
    fn text_generation_inference_1733_every_row_is_documented() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md");
        let page = std::fs::read_to_string(page).unwrap();
        for row in ALL {
            assert!(
                page.contains(&format!("| `{}` |", row.name)),
                "{} is not in docs/benchmarks.md",
                row.name
            );
        }
    }
}
