//! `azure_llm_trace`: requests of the public Azure traces, with times as dates and lengths of inputs and outputs.

use aiperf_config::FileFormat;

use super::table_trace::{self, Table, Times};
use super::{Format, Near};

const TABLE: Table =
    Table { time: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens", times: Times::Instants };

pub(crate) const FORMAT: Format = Format {
    fields: &TABLE.columns(),
    fits: |_, look| look.has_columns(&TABLE.columns()),
    near: Some(Near { keys: &TABLE.columns(), fault: |line| TABLE.fault(line) }),
    ..table_trace::format_of(FileFormat::AzureLlmTrace, |opening| {
        let format = table_trace::format(&TABLE, &opening)?;
        opening.records(format)
    })
};
