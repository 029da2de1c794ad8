//! `burst_gpt_trace`: requests of the `BurstGPT` trace, with times in seconds and lengths of inputs and outputs.

use aiperf_config::FileFormat;

use super::table_trace::{self, Table, Times};
use super::{Format, Near};

const TABLE: Table =
    Table { time: "Timestamp", input: "Request tokens", output: "Response tokens", times: Times::Seconds };

pub(crate) const FORMAT: Format = Format {
    fields: &TABLE.columns(),
    fits: |_, look| look.has_columns(&TABLE.columns()),
    near: Some(Near { keys: &TABLE.columns(), fault: |line| TABLE.fault(line) }),
    ..table_trace::format_of(FileFormat::BurstGptTrace, |opening| {
        let format = table_trace::format(&TABLE, &opening)?;
        opening.records(format)
    })
};
