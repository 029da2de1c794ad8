//! `burst_gpt_trace`: requests of the `BurstGPT` trace, with times in seconds and lengths of inputs and outputs.

use aiperf_config::{Corpus, FileFormat};

use super::table_trace::{self, OPTIONS, Table, Times};
use super::{Files, FirstTimes, Format};

const TABLE: Table =
    Table { time: "Timestamp", input: "Request tokens", output: "Response tokens", times: Times::Seconds };

pub(crate) const FORMAT: Format = Format {
    trace: true,
    timed: true,
    promotes: true,
    makes_text: true,
    corpus: Some(Corpus::Sonnet),
    options: OPTIONS,
    fits: |_, look| look.has_columns(&[TABLE.time, TABLE.input, TABLE.output]),
    // Every row has one.
    times: |_| FirstTimes { timestamp: true, delay: false },
    open: Some(|opening| {
        let format = table_trace::format(&TABLE, &opening)?;
        opening.records(format)
    }),
    ..Format::new(FileFormat::BurstGptTrace, Files::Csv, "one request")
};
