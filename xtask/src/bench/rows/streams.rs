//! Many streams at once.

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::progress::say;

use super::memory::peak;

/// 10,000 streams at once, each of 300 events 100 ms apart: half a minute.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "streams";
    let count = bench.size(10_000, 1_000);
    let (count_text, tokens) = (count.to_string(), bench.size(300, 50).to_string());
    let arguments = [
        "--concurrency",
        &count_text,
        "--request-count",
        &count_text,
        "--isl",
        "128",
        "--osl",
        &tokens,
        "--streaming",
    ];
    let (mut peaks, mut at_once) = (Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "100ms")])?;
        let run_of_client = client::profile(bench, &folder, &mock.url(), &arguments)?;
        peaks.push(peak(&run_of_client.used)? / 1_048_576.0);
        at_once.push(run_of_client.number(&["load_delivery", "concurrency", "max_in_flight"])?);
        say(format_args!(
            "  run {run} {:.1} MiB, {} at once, {:.1} s of CPU",
            peaks[run - 1],
            at_once[run - 1],
            run_of_client.used.cpu_sec
        ));
    }
    Ok(vec![
        Figure::new(row, format!("peak memory, {count} streams"), "MiB", peaks)
            .bounded(Limit::AtMost(600.0), Limit::AtMost(250.0))
            .note("every request succeeded"),
        Figure::new(row, "most streams at once", "", at_once).must(Limit::AtLeast(count as f64)),
    ])
}
