//! What the engine saw of a phase, in the terms of the verdict.

use aiperf_clock::nanos;
use aiperf_config::{LoadMode, PhaseConfig};
use aiperf_load::{Durations, PhaseOutcome};
use aiperf_metrics::delivery::{
    ClientFacts, ConcurrencyFacts, DeliveryFacts, LoadMode as Mode, Spread, rate,
};
use aiperf_metrics::{ErrorGroup, Summary};
use rustix::io::Errno;

/// What the client has at its disposal, and what it has used so far.
pub(crate) struct Used {
    pub(crate) cores: f64,
    pub(crate) workers: usize,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) spilled: u64,
}

/// The facts of a phase.
pub(crate) fn facts(
    phase: &PhaseConfig,
    outcome: &PhaseOutcome,
    summary: &Summary,
    used: &Used,
) -> DeliveryFacts {
    let (counts, tally) = (&outcome.counts, &outcome.tally);
    let mode = match phase.mode {
        LoadMode::Burst => Mode::Concurrency,
        LoadMode::Rate { .. } => Mode::Rate,
        LoadMode::FixedSchedule(_) => Mode::FixedSchedule,
    };
    let closed_loop = mode == Mode::Concurrency;
    let since_t0 = |at: Option<aiperf_clock::Mono>| at.map(|at| at.saturating_since(outcome.t0));
    let issued_until =
        |last| since_t0(last).filter(|_| !closed_loop).and_then(|last| rate(counts.issued, last));
    let last_send = since_t0(tally.last_start);
    let phase_ns = outcome.end.saturating_since(outcome.t0);
    let ramp_ns = phase.ramps.concurrency.into_iter().chain(phase.ramps.rate).map(nanos).max();
    let concurrency = phase.concurrency.map(|limit| {
        let ramp = phase.ramps.concurrency.map_or(0, nanos);
        let busy = last_send.map(|last| last.saturating_sub(ramp)).filter(|&busy| busy > 0);
        ConcurrencyFacts {
            limit: u64::from(limit),
            max_in_flight: u64::from(counts.max_in_flight),
            lost_share: busy.map(|busy| tally.lateness.sum_ns() as f64 / (f64::from(limit) * busy as f64)),
            failed_connections: tally.failed_connections,
            longest_pause_ns: tally.longest_dial_pause_ns,
        }
    });
    let cpu = &outcome.cpu;
    let busiest = cpu.workers_ns.iter().max();
    let busiest = busiest.map(|&ns| (100.0 * ns as f64 / cpu.span_ns.max(1) as f64).min(100.0));
    let own_ns = cpu.process_ns.saturating_sub(cpu.apart_ns).saturating_sub(outcome.spin_ns);
    DeliveryFacts {
        mode,
        intended_rate: issued_until(counts.last_due),
        let_go_rate: issued_until(counts.last_let_go),
        delivered_rate: last_send.and_then(|last| rate(tally.sent, last)),
        planned_count: if closed_loop { tally.sent } else { counts.planned },
        sent_count: tally.sent,
        skipped_count: counts.skipped,
        // In a closed loop a turn is planned when it is sent.
        unsent_count: counts.unsent + if closed_loop { 0 } else { counts.never_sent },
        lateness: spread(&tally.lateness),
        cap_wait: phase.concurrency.and_then(|_| if closed_loop { None } else { spread(&tally.cap_wait) }),
        slip: if closed_loop { None } else { spread(&tally.slip) },
        initial_fill_ns: if closed_loop { since_t0(tally.last_fill) } else { None },
        concurrency,
        catch_up_ns: (counts.catch_up_ns > 0).then_some(counts.catch_up_ns),
        ramp_ns,
        drain_ns: tally.last_start.map(|last| outcome.end.saturating_since(last)),
        phase_ns,
        late_prompt_count: tally.late_prompts,
        record_count: summary.record_count(),
        service: summary.service,
        from_intended: summary.from_intended,
        client: ClientFacts {
            cores: Some(used.cores),
            workers: Some(used.workers as u64),
            cpu_sec: Some(own_ns as f64 / 1e9),
            cpu_span_ns: Some(cpu.span_ns),
            busiest_worker_cpu_pct: busiest,
            mock_cpu_sec: cpu.apart_ns as f64 / 1e9,
            pacer_spin_sec: outcome.spin_ns as f64 / 1e9,
            peak_rss_bytes: used.peak_rss_bytes,
            loop_delay: spread(&tally.loop_delay),
            delayed_request_count: tally.delayed_requests,
            spilled_record_count: used.spilled,
            negative_difference_count: tally.negative_differences + summary.negative_difference_count,
            resource_error_count: tally.resource_errors,
            resource_limit: resource_limit(&summary.error_groups),
        },
    }
}

/// The limit of the host that failed requests ran into, by the number of the error that they quote.
fn resource_limit(errors: &[ErrorGroup]) -> Option<&'static str> {
    const LIMITS: [(Errno, &str); 4] = [
        (Errno::MFILE, "the limit on open files of a process (ulimit -n)"),
        (Errno::NFILE, "the limit on open files of the host (fs.file-max)"),
        (
            Errno::ADDRNOTAVAIL,
            "the number of local ports (net.ipv4.ip_local_port_range), or add source addresses with --bind-address",
        ),
        (Errno::NOBUFS, "the memory for sockets (net.ipv4.tcp_mem)"),
    ];
    LIMITS.into_iter().find_map(|(errno, limit)| {
        let number = format!("(os error {})", errno.raw_os_error());
        let quotes = |text: &str| text.contains(&number);
        let is_it = |group: &ErrorGroup| {
            quotes(&group.error.message) || group.error.cause.as_deref().is_some_and(quotes)
        };
        errors.iter().any(is_it).then_some(limit)
    })
}

fn spread(durations: &Durations) -> Option<Spread> {
    (durations.count() > 0).then(|| Spread {
        avg: durations.mean_ns(),
        p50: durations.percentile_ns(50.0) as f64,
        p90: durations.percentile_ns(90.0) as f64,
        p99: durations.percentile_ns(99.0) as f64,
        max: durations.max_ns() as f64,
        count: durations.count(),
    })
}

#[cfg(test)]
mod tests {
    use aiperf_types::RequestError;

    use super::*;

    #[test]
    fn the_limit_that_was_met_is_named() {
        let group = |message: &str| ErrorGroup { error: RequestError::new(None, "x", message), count: 1 };
        let named = |message: &str| resource_limit(&[group("connection refused"), group(message)]);
        assert!(named("Too many open files (os error 24)").unwrap().contains("ulimit -n"));
        assert!(named("Cannot assign requested address (os error 99)").unwrap().contains("--bind-address"));
        assert_eq!(named("reset (os error 104)"), None);
    }
}
