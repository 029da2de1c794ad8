//! `profile_export_aiperf.csv`: the aggregates as two tables.

use std::io;
use std::path::PathBuf;

use aiperf_metrics::{Block, Metric, Summary};

use super::Exporter;
use super::summary_json::shown;
use crate::files::write_atomic;
use crate::names::FileNames;
use crate::number::two_decimals;
use crate::results::RunResults;

const HEADER: &str = "Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std";

pub(super) struct SummaryCsv;

impl Exporter for SummaryCsv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "Statistics of all metrics as CSV"
    }

    fn label(&self) -> &'static str {
        "CSV Export"
    }

    fn export(&self, results: &RunResults<'_>, names: &FileNames) -> io::Result<Vec<PathBuf>> {
        let empty = Summary::default();
        let text = document(results, results.profiling().map_or(&empty, |phase| &phase.summary));
        Ok(vec![write_atomic(results.config.output.dir.join(names.summary_csv()), text.as_bytes())?])
    }
}

/// Distributions first, single values after a blank row; each table in the order of tags.
pub(super) fn document(results: &RunResults<'_>, summary: &Summary) -> String {
    let mut blocks: Vec<(Metric, &Block)> = shown(results, summary).collect();
    blocks.sort_by_key(|(metric, _)| metric.tag());
    let (distributions, singles): (Vec<_>, Vec<_>) =
        blocks.iter().partition(|(_, block)| block.has_percentiles());

    let mut out = String::from(HEADER);
    out.push_str("\r\n");
    for (metric, block) in distributions {
        out.push_str(&row_name(metric, block));
        let figures = [
            block.avg, block.min, block.max, block.sum, block.p1, block.p5, block.p10, block.p25, block.p50,
            block.p75, block.p90, block.p95, block.p99, block.std,
        ];
        for figure in figures {
            out.push(',');
            if let Some(figure) = figure {
                out.push_str(&two_decimals(figure));
            }
        }
        out.push_str("\r\n");
    }
    out.push_str("\r\nMetric,Value\r\n");
    for (metric, block) in singles {
        if let Some(value) = block.avg {
            out.push_str(&row_name(metric, block));
            out.push(',');
            out.push_str(&two_decimals(value));
            out.push_str("\r\n");
        }
    }
    out
}

fn row_name(metric: Metric, block: &Block) -> String {
    let header = metric.def().header;
    match block.unit {
        "" | "count" | "requests" => cell(header),
        unit => cell(&format!("{header} ({unit})")),
    }
}

/// Quotes a cell when it needs it.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
