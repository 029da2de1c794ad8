//! The report for programs.

use serde_json::{Map, Value};

use crate::analysis::Analysis;
use crate::histogram;
use crate::mooncake::Mooncake;
use crate::stats::Stats;

/// The report as JSON: of a Mooncake trace the keys of the reference first, absent figures as null; beyond these,
/// what is not known has no key.
pub fn to_json(analysis: &Analysis) -> Value {
    let mut out = Map::new();
    match &analysis.mooncake {
        Some(mooncake) => as_the_reference(mooncake, &mut out),
        None => general(analysis, &mut out),
    }
    out.insert("format".into(), analysis.format.name().into());
    out.insert("conversations".into(), analysis.conversations.into());
    if let (Some(subagents), Some(depth)) = (analysis.subagents, analysis.depth) {
        out.insert("subagents".into(), subagents.into());
        out.insert("subagent_depth".into(), depth.into());
    }
    for quantity in &analysis.quantities {
        out.entry(format!("{}_stats", quantity.key)).or_insert_with(|| quantity.stats.json());
    }
    if let Some(span) = analysis.span_ms {
        out.insert("span_ms".into(), span.into());
    }
    if let Some(rates) = analysis.rates {
        out.insert("rates".into(), rates.json());
    }
    if let Some(cache) = &analysis.cache {
        out.insert("infinite_cache_hit_ratio".into(), cache.json());
        out.insert("working_set_blocks".into(), cache.working_set_blocks.into());
        if let Some(tokens) = cache.working_set_tokens {
            out.insert("working_set_tokens".into(), tokens.into());
        }
    }
    if let Some(size) = analysis.block_size {
        out.insert("block_size".into(), size.into());
    }
    if let Some(cumulative) = analysis.cumulative {
        let mut ratio = Map::new();
        ratio.insert("by_block".into(), cumulative.by_block.into());
        ratio.insert("by_request".into(), cumulative.by_request.into());
        out.insert("cumulative_hit_ratio".into(), Value::Object(ratio));
    }
    let mut rows = Map::new();
    for (name, count) in [
        ("cancelled", analysis.cancelled),
        ("without_output", analysis.without_output),
        ("skipped", analysis.skipped),
    ] {
        if let Some(count) = count {
            rows.insert(name.into(), count.into());
        }
    }
    if !rows.is_empty() {
        out.insert("rows".into(), Value::Object(rows));
    }
    let histograms = analysis.quantities.iter().filter(|quantity| !quantity.bins.is_empty());
    let histograms = histograms.map(|quantity| (quantity.key.to_owned(), histogram::json(&quantity.bins)));
    out.insert("histograms".into(), Value::Object(histograms.collect()));
    Value::Object(out)
}

fn as_the_reference(mooncake: &Mooncake, out: &mut Map<String, Value>) {
    let figure = |stats: Option<Stats>, pick: fn(&Stats) -> f64| stats.as_ref().map_or(0.0, pick);
    out.insert("total_requests".into(), mooncake.requests.into());
    out.insert("unique_prefixes".into(), mooncake.unique_prefixes.into());
    out.insert("num_prefix_groups".into(), mooncake.prefix_groups.into());
    out.insert("cache_hit_rate".into(), figure(mooncake.hit_rate, |stats| stats.mean).into());
    for (name, stats) in [("isl", mooncake.input), ("osl", mooncake.output)] {
        // Lengths are whole.
        out.insert(format!("min_{name}"), (figure(stats, |stats| stats.min) as u64).into());
        out.insert(format!("max_{name}"), (figure(stats, |stats| stats.max) as u64).into());
        out.insert(format!("avg_{name}"), figure(stats, |stats| stats.mean).into());
    }
    out.insert("prefix_reuse_ratio".into(), mooncake.reuse_ratio.into());
    for (name, stats) in [
        ("isl", mooncake.input),
        ("osl", mooncake.output),
        ("context_length", mooncake.context),
        ("unique_prompt_length", mooncake.unique_prompt),
        ("hit_rate", mooncake.hit_rate),
    ] {
        out.insert(format!("{name}_stats"), stats.map_or(Value::Null, |stats| stats.json()));
    }
    // They count as 0 above.
    for (name, rows) in [("input", mooncake.without_input), ("output", mooncake.without_output)] {
        if rows > 0 {
            out.insert(format!("rows_without_{name}_length"), rows.into());
        }
    }
}

fn general(analysis: &Analysis, out: &mut Map<String, Value>) {
    out.insert("total_requests".into(), analysis.requests.into());
    if let Some(cache) = &analysis.cache {
        out.insert("cache_hit_rate".into(), cache.by_request.into());
    }
    for key in ["isl", "osl"] {
        if let Some(quantity) = analysis.quantities.iter().find(|quantity| quantity.key == key) {
            out.insert(format!("min_{key}"), (quantity.stats.min as u64).into());
            out.insert(format!("max_{key}"), (quantity.stats.max as u64).into());
            out.insert(format!("avg_{key}"), quantity.stats.mean.into());
        }
    }
}
