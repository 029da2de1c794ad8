//! Whether the client delivered the load it was asked for.

use std::fmt::Write as _;

use aiperf_config::{Arrival, LoadMode};
use aiperf_metrics::delivery::{DeliveryFacts, LoadMode as Mode, Verdict};
use aiperf_metrics::{Block, LoadDelivery, Metric};

use crate::number::{count, two_decimals, with_thousands};
use crate::results::RunResults;
use crate::style::{Palette, Style};
use crate::text::wrap;

/// Share by which drawn arrivals may miss the rate without a word about it.
const WORTH_A_WORD: f64 = 0.005;
/// A first fill of a closed loop slower than this is worth a line.
const SLOW_FILL_NS: u64 = 10_000_000;
/// Waits for a place that are shorter are not worth a line.
const LONG_WAIT_NS: f64 = 1e6;

/// The verdict and what it rests on; unknown parts are left out.
pub(super) fn section(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let Some(delivery) = results.profiling().and_then(|phase| phase.load_delivery.as_ref()) else { return };
    let (verdict, style) = match delivery.verdict {
        Verdict::Valid => ("VALID", Style::Green),
        Verdict::Suspect => ("SUSPECT", Style::Yellow),
    };
    let _ = writeln!(out, "Load Delivery: {}", palette.paint(style, verdict));
    let facts = &delivery.facts;
    let lines = [
        if facts.mode == Mode::Concurrency { looped(results, facts) } else { rate(facts) },
        asked(results, facts),
        Some(format!(
            "Sends     {} planned, {} sent, {} skipped by a cap, {} unsent",
            count(facts.planned_count),
            count(facts.sent_count),
            count(facts.skipped_count),
            count(facts.unsent_count)
        )),
        held(facts),
        blocked(results),
        facts.lateness.map(|spread| {
            // A closed loop's first fill is issued at once, so the lag of its sends is not part of any lateness.
            let of_what = if facts.initial_fill_ns.is_some() {
                "from due to sent, without the first fill, which the send lag above includes"
            } else {
                "from due to sent; the send lag above is the last part of it"
            };
            let (p50, p99, max) = (ms(spread.p50), ms(spread.p99), ms(spread.max));
            format!("Lateness  p50 {p50}, p99 {p99}, max {max} ({of_what})")
        }),
        // Not part of lateness, yet part of the latencies from the intended start below.
        facts
            .initial_fill_ns
            .filter(|&fill| fill >= SLOW_FILL_NS)
            .map(|fill| format!("Fill      the slots took {} to fill at the start", ms(fill as f64))),
        client(facts),
        latency("Latency   ", facts.service.request_latency, facts.from_intended.request_latency),
        latency("TTFT      ", facts.service.time_to_first_token, facts.from_intended.time_to_first_token),
    ];
    for line in lines.into_iter().flatten() {
        hang(&line, NAMES, width, Palette::plain(), Style::Plain, out);
    }
    reasons(delivery, width, palette, out);
}

/// Columns of the names at the start of lines.
const NAMES: usize = 10;

/// Writes `line`, indented; what does not fit goes on further right, under its text.
fn hang(line: &str, under: usize, width: usize, palette: Palette, style: Style, out: &mut String) {
    for (index, part) in wrap(line, width.saturating_sub(INDENT + under).max(20)).iter().enumerate() {
        let indent = if index == 0 { INDENT } else { INDENT + under };
        let _ = writeln!(out, "{:indent$}{}", "", palette.paint(style, part));
    }
}

const INDENT: usize = 2;

fn reasons(delivery: &LoadDelivery, width: usize, palette: Palette, out: &mut String) {
    for reason in &delivery.reasons {
        let unit = if reason.unit.is_empty() { String::new() } else { format!(" {}", reason.unit) };
        let line = format!(
            "! {} ({}{unit}, limit {}{unit}). {}",
            reason.message,
            figure(reason.value),
            figure(reason.limit),
            reason.next_step
        );
        hang(&line, "! ".len(), width, palette, Style::Yellow, out);
    }
}

/// Whole figures are counts.
fn figure(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        count(value as u64)
    } else {
        with_thousands(value)
    }
}

fn rate(facts: &DeliveryFacts) -> Option<String> {
    let delivered = facts.delivered_rate?;
    Some(match facts.intended_rate {
        Some(intended) if intended > 0.0 => format!(
            "Rate      intended {} requests/sec, delivered {} ({:.1} %)",
            with_thousands(intended),
            with_thousands(delivered),
            100.0 * delivered / intended
        ),
        _ => format!("Rate      delivered {} requests/sec", with_thousands(delivered)),
    })
}

/// How long the cap held requests back, where it did.
fn held(facts: &DeliveryFacts) -> Option<String> {
    let (wait, cap) = (facts.cap_wait?, facts.concurrency?);
    (wait.max >= LONG_WAIT_NS).then(|| {
        format!(
            "Held      requests waited p50 {}, max {} for a place under --concurrency {}",
            ms(wait.p50),
            ms(wait.max),
            count(cap.limit)
        )
    })
}

/// How long requests waited for a connection, where their number is limited.
fn blocked(results: &RunResults<'_>) -> Option<String> {
    results.config.tuning.connection_limit?;
    let wait = results.profiling()?.summary.block(Metric::HttpReqBlocked)?;
    let (p50, max) = (wait.p50?, wait.max?);
    (max * 1e6 >= LONG_WAIT_NS).then(|| {
        format!(
            "Blocked   requests waited p50 {}, max {} for a connection (AIPERF_HTTP_CONNECTION_LIMIT); it is part of their \
             latencies",
            shown(p50, wait.unit),
            shown(max, wait.unit)
        )
    })
}

/// How far what left is off the rate that was asked for, where anyone would wonder: arrivals that a cap skipped are no
/// part of the intended rate, and drawn ones come to another.
fn asked(results: &RunResults<'_>, facts: &DeliveryFacts) -> Option<String> {
    let profiling = results.config.profiling();
    let LoadMode::Rate { rate, arrival } = profiling.mode else { return None };
    if let (1.., Some(cap)) = (facts.skipped_count, facts.concurrency) {
        return Some(format!(
            "Asked     {} requests/sec{}: {} of {} arrivals found no place under --concurrency {} and were skipped",
            with_thousands(rate),
            if profiling.ramps.rate.is_some() { " after the ramp" } else { "" },
            count(facts.skipped_count),
            count(facts.planned_count),
            count(cap.limit)
        ));
    }
    if arrival == Arrival::Constant || profiling.ramps.rate.is_some() {
        return None;
    }
    let intended = facts.intended_rate?;
    ((intended / rate - 1.0).abs() > WORTH_A_WORD).then(|| {
        let bursts = match arrival {
            Arrival::Gamma(smoothness) if smoothness < 1.0 => {
                format!(" in the bursts of --arrival-smoothness {smoothness}")
            }
            _ => String::new(),
        };
        format!(
            "Asked     {} requests/sec: the {} arrivals drawn at random{bursts} came to {} ({:+.1} %); the longer \
             the run, the closer",
            with_thousands(rate),
            count(facts.planned_count),
            with_thousands(intended),
            100.0 * (intended / rate - 1.0)
        )
    })
}

fn looped(results: &RunResults<'_>, facts: &DeliveryFacts) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(cap) = &facts.concurrency {
        // Of slots that nothing was there to fill it cannot be said that they were held.
        let sessions = results.config.profiling().stop.sessions;
        let can_fill = facts.sent_count.min(sessions.unwrap_or(u64::MAX)) >= cap.limit;
        let held = cap.lost_share.filter(|_| can_fill);
        let held = held.map(|lost| format!(" held {:.1} %", 100.0 * (1.0 - lost)));
        parts.push(format!("concurrency {}{}", count(cap.limit), held.unwrap_or_default()));
        if cap.max_in_flight < cap.limit {
            parts.push(format!("never more than {} at once", count(cap.max_in_flight)));
        }
        if cap.failed_connections > 0 {
            parts.push(format!(
                "{} failed connections kept their slots for up to {} each",
                count(cap.failed_connections),
                ms(cap.longest_pause_ns as f64)
            ));
        }
    }
    // The first fill says nothing about what the loop produces, and failures come back at once.
    let has_turned = facts.concurrency.is_none_or(|cap| facts.sent_count > cap.limit);
    if let Some(rate) = facts.delivered_rate
        && has_turned
        && !facts.nothing_succeeded()
    {
        parts.push(format!(
            "produced {} requests/sec up to the last send (the table's rate includes the drain)",
            with_thousands(rate)
        ));
    }
    (!parts.is_empty()).then(|| format!("Loop      {}", parts.join(", ")))
}

fn client(facts: &DeliveryFacts) -> Option<String> {
    let client = &facts.client;
    let mut parts = Vec::new();
    if let Some(used) = client.cores_used() {
        let of = client.cores.map(|cores| format!(" of {cores}")).unwrap_or_default();
        parts.push(format!("{}{of} cores", two_decimals(used)));
        if let Some(each) = client.cpu_us_per_request(facts.sent_count) {
            parts.push(format!("{each:.0} us per request"));
        }
    }
    if let Some(busiest) = client.busiest_worker_cpu_pct {
        parts.push(format!("busiest worker {busiest:.0} %"));
    }
    if let Some(bytes) = client.peak_rss_bytes {
        parts.push(format!("peak memory {} MiB", count(bytes >> 20)));
    }
    if let Some(delay) = &client.loop_delay {
        parts.push(format!("loop delay max {}", ms(delay.max)));
    }
    (!parts.is_empty()).then(|| format!("Client    {}", parts.join(", ")))
}

fn latency(name: &str, service: Option<Block>, intended: Option<Block>) -> Option<String> {
    let figures = |block: Option<Block>| {
        let block = block?;
        Some(format!("p50 {} p99 {}", shown(block.p50?, block.unit), shown(block.p99?, block.unit)))
    };
    let mut parts = Vec::new();
    if let Some(text) = figures(service) {
        parts.push(format!("from send {text}"));
    }
    if let Some(text) = figures(intended) {
        parts.push(format!("from intended start {text}"));
    }
    (!parts.is_empty()).then(|| format!("{name}{}", parts.join("; ")))
}

fn shown(value: f64, unit: &str) -> String {
    format!("{} {unit}", with_thousands(value))
}

fn ms(ns: f64) -> String {
    shown(ns / 1e6, "ms")
}
