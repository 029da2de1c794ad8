//! What makes the figures of a phase suspect, and what to do about it.

use super::facts::{DeliveryFacts, LoadMode};

/// Delivered rate, percent of the intended one, below which load is missing.
const LEAST_RATE_PCT: f64 = 99.0;
/// Lateness that one send in a hundred may reach, ms.
const MOST_LATENESS_MS: f64 = 1.0;
/// Lateness that no send may reach, ms.
const MOST_STALL_MS: f64 = 100.0;
/// Share of a closed loop's slots that may stand idle for the client's sake, percent.
const MOST_LOST_PCT: f64 = 1.0;
/// Busiest worker, percent of a core.
const MOST_WORKER_PCT: f64 = 90.0;
/// Phases shorter than this say nothing about a worker's load, ns.
const SHORT_PHASE_NS: u64 = 1_000_000_000;
/// Share of records that may have run while their worker was late to its sockets, percent.
const MOST_DELAYED_PCT: f64 = 1.0;

const SPREAD_LOAD: &str = "Give the client more cores or raise --workers-max, spread the load over several clients, or lower the rate";
const SPREAD_SLOTS: &str = "Give the client more cores or raise --workers-max, spread the load over several \
                            clients, or lower the concurrency";
const SETTLE_ERRORS: &str =
    "Settle the errors first: how load is delivered can be judged once requests succeed";
const MORE_WORKERS: &str = "Raise --workers-max or spread the load over several clients";
const LATE_PROMPTS: &str = "Prompts were not ready in time: give the client more cores, or replay a dataset \
                            made beforehand";
const LOADED_HOST: &str = "The client was kept from its sockets: stop other load on the host, or raise its CPU \
                           quota";

/// Something that speaks against the figures.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Reason {
    /// Its name.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// The figure, in `unit`.
    pub value: f64,
    /// What it may not exceed (or fall below), in `unit`.
    pub limit: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// What to do about it.
    pub next_step: String,
}

/// The reasons that hold, in their fixed order.
pub(super) fn reasons(facts: &DeliveryFacts) -> Vec<Reason> {
    [
        rate_shortfall(facts),
        late_sends(facts),
        send_stall(facts),
        slots_idle(facts),
        worker_saturated(facts),
        stamps_delayed(facts),
        unsent(facts),
        catch_up_cut(facts),
        client_limits(facts),
        clock_disorder(facts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn rate_shortfall(facts: &DeliveryFacts) -> Option<Reason> {
    // What a cap holds back is what was asked for.
    let wanted = facts.let_go_rate.or(facts.intended_rate)?;
    let delivered = facts.delivered_rate?;
    let share = 100.0 * delivered / wanted;
    (delivered < wanted * LEAST_RATE_PCT / 100.0).then(|| Reason {
        code: "rate_shortfall",
        message: "Fewer requests per second left than were intended".into(),
        value: share,
        limit: LEAST_RATE_PCT,
        unit: "%",
        next_step: SPREAD_LOAD.into(),
    })
}

fn late_sends(facts: &DeliveryFacts) -> Option<Reason> {
    let p99 = facts.lateness?.p99 / 1e6;
    (p99 > MOST_LATENESS_MS).then(|| Reason {
        code: "late_sends",
        message: "One request in a hundred left later than this after it was due".into(),
        value: p99,
        limit: MOST_LATENESS_MS,
        unit: "ms",
        next_step: why_late(facts).into(),
    })
}

fn send_stall(facts: &DeliveryFacts) -> Option<Reason> {
    let max = facts.lateness?.max / 1e6;
    (max > MOST_STALL_MS).then(|| Reason {
        code: "send_stall",
        message: "A request left much later than it was due".into(),
        value: max,
        limit: MOST_STALL_MS,
        unit: "ms",
        next_step: "Look for other load on the host, a CPU quota, or swapping".into(),
    })
}

fn slots_idle(facts: &DeliveryFacts) -> Option<Reason> {
    let lost = 100.0 * facts.concurrency?.lost_share?;
    let (message, next_step) = if facts.nothing_succeeded() {
        ("Requests failed so fast that filling their slots again took a share of the time", SETTLE_ERRORS)
    } else {
        ("Slots stood idle because the client was late to fill them", SPREAD_SLOTS)
    };
    (lost > MOST_LOST_PCT).then(|| Reason {
        code: "slots_idle",
        message: message.into(),
        value: lost,
        limit: MOST_LOST_PCT,
        unit: "%",
        next_step: next_step.into(),
    })
}

fn worker_saturated(facts: &DeliveryFacts) -> Option<Reason> {
    let busiest = facts.client.busiest_worker_cpu_pct?;
    (facts.phase_ns >= SHORT_PHASE_NS && busiest > MOST_WORKER_PCT).then(|| Reason {
        code: "worker_saturated",
        message: "A network worker had hardly any time left".into(),
        value: busiest,
        limit: MOST_WORKER_PCT,
        unit: "%",
        next_step: MORE_WORKERS.into(),
    })
}

fn stamps_delayed(facts: &DeliveryFacts) -> Option<Reason> {
    if facts.record_count == 0 {
        return None;
    }
    let delayed = 100.0 * facts.client.delayed_request_count as f64 / facts.record_count as f64;
    (delayed > MOST_DELAYED_PCT).then(|| Reason {
        code: "stamps_delayed",
        message:
            "Requests ran while their worker was late to its sockets, so their latencies may be too long"
                .into(),
        value: delayed,
        limit: MOST_DELAYED_PCT,
        unit: "%",
        next_step: why_late_to_sockets(facts).into(),
    })
}

fn unsent(facts: &DeliveryFacts) -> Option<Reason> {
    (facts.unsent_count > 0).then(|| Reason {
        code: "unsent",
        message: "Requests were due and not sent, though no cap held them".into(),
        value: facts.unsent_count as f64,
        limit: 0.0,
        unit: "requests",
        next_step: "Run longer or lower the rate".into(),
    })
}

fn catch_up_cut(facts: &DeliveryFacts) -> Option<Reason> {
    let given_up = facts.catch_up_ns.filter(|ns| *ns > 0)?;
    Some(Reason {
        code: "catch_up_cut",
        message: "Schedule time was given up instead of caught up".into(),
        value: given_up as f64 / 1e9,
        limit: 0.0,
        unit: "sec",
        next_step: "Unset AIPERF_TIMING_MAX_CATCHUP_SECONDS".into(),
    })
}

fn client_limits(facts: &DeliveryFacts) -> Option<Reason> {
    let errors = facts.client.resource_error_count;
    (errors > 0).then(|| Reason {
        code: "client_limits",
        message: "Requests failed because the client ran out of descriptors, ports or buffers".into(),
        value: errors as f64,
        limit: 0.0,
        unit: "errors",
        next_step: format!(
            "Raise {}",
            facts.client.resource_limit.unwrap_or(
                "the limit on open files (ulimit -n), widen net.ipv4.ip_local_port_range, or add source \
                 addresses with --bind-address"
            )
        ),
    })
}

fn clock_disorder(facts: &DeliveryFacts) -> Option<Reason> {
    let negative = facts.client.negative_difference_count;
    (negative > 0).then(|| Reason {
        code: "clock_disorder",
        message: "Instants came out in the wrong order".into(),
        value: negative as f64,
        limit: 0.0,
        unit: "differences",
        next_step: "This is a fault of aiperf: report it with the records JSONL".into(),
    })
}

/// The remedy for the likeliest cause of lateness: whichever of late prompts, the busiest worker and loop delay
/// is furthest beyond what is harmless. A closed loop whose requests all fail is driven by their failures, which come
/// back at once: then no client is quick enough.
fn why_late(facts: &DeliveryFacts) -> &'static str {
    if facts.mode == LoadMode::Concurrency && facts.nothing_succeeded() {
        return SETTLE_ERRORS;
    }
    let late_prompts = 100.0 * facts.late_prompt_count as f64 / facts.sent_count.max(1) as f64;
    let [worker, host] = socket_causes(facts);
    furthest([(late_prompts, LATE_PROMPTS), worker, host])
}

/// The same where a worker was late to its sockets, which prompts have no part in.
fn why_late_to_sockets(facts: &DeliveryFacts) -> &'static str {
    furthest(socket_causes(facts))
}

/// The load of the busiest worker and the delay of its loop, in parts of what is harmless, each with its remedy.
fn socket_causes(facts: &DeliveryFacts) -> [(f64, &'static str); 2] {
    let busiest = facts.client.busiest_worker_cpu_pct.unwrap_or_default();
    let loop_delay_ms = facts.client.loop_delay.map_or(0.0, |delay| delay.p99 / 1e6);
    [(busiest / MOST_WORKER_PCT, MORE_WORKERS), (loop_delay_ms / MOST_LATENESS_MS, LOADED_HOST)]
}

fn furthest<const N: usize>(causes: [(f64, &'static str); N]) -> &'static str {
    causes.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(LOADED_HOST, |(_, remedy)| remedy)
}
