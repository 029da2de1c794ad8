//! `azure_llm_trace`: requests of the public Azure traces, with times as dates and lengths of inputs and outputs.

use aiperf_config::{Corpus, FileFormat};

use super::table_trace::{self, OPTIONS, Table, Times};
use super::{Files, FirstTimes, Format};

const TABLE: Table =
    Table { time: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens", times: Times::Instants };

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
    ..Format::new(FileFormat::AzureLlmTrace, Files::Csv, "one request")
};
