//! How many connections the plan of a run may hold at once.

use aiperf_config::PhaseConfig;
use aiperf_load::preflight::Wanted;
use aiperf_types::PhaseKind;

/// The name by which connections are limited.
const LIMIT: &str = "AIPERF_HTTP_CONNECTION_LIMIT";

/// Most connections that any of the phases may hold, as far as that is known beforehand; `limit` is that of the process.
pub(crate) fn wanted(phases: &[PhaseConfig], limit: Option<u32>) -> Option<Wanted> {
    phases.iter().filter_map(|phase| of_phase(phase, limit)).max_by_key(|wanted| wanted.connections)
}

/// Most connections that the run may hold, where each phase has a bound.
pub(crate) fn bound(phases: &[PhaseConfig], limit: Option<u32>) -> Option<u64> {
    phases
        .iter()
        .map(|phase| Some(of_phase(phase, limit)?.connections))
        .try_fold(0, |most, of| Some(of?.max(most)))
}

/// How many an open loop without a cap needs depends on the server, unless a limit says it.
fn of_phase(phase: &PhaseConfig, limit: Option<u32>) -> Option<Wanted> {
    let cap = match phase.kind {
        PhaseKind::Warmup => "--warmup-concurrency",
        PhaseKind::Profiling => "--concurrency",
    };
    let capped = phase.concurrency.map(|most| Wanted { connections: most.into(), lower: cap });
    let limited = limit.map(|most| Wanted { connections: most.into(), lower: LIMIT });
    let wanted = capped.into_iter().chain(limited).min_by_key(|wanted| wanted.connections)?;
    // No more are in flight than there are.
    let stop = &phase.stop;
    let all = stop.requests.into_iter().chain(stop.sessions).min().unwrap_or(u64::MAX);
    Some(Wanted { connections: wanted.connections.min(all), ..wanted })
}

#[cfg(test)]
mod tests {
    use aiperf_config::{LoadMode, RampTimes, StopRule};

    use super::*;

    fn phase(kind: PhaseKind, concurrency: Option<u32>, requests: Option<u64>) -> PhaseConfig {
        PhaseConfig {
            kind,
            mode: LoadMode::Burst,
            concurrency,
            ramps: RampTimes::default(),
            ends_by_default: false,
            stop: StopRule { requests, ..StopRule::default() },
            grace: None,
            cancellation: None,
            idle_gap_cap: None,
        }
    }

    #[test]
    fn the_least_of_cap_limit_and_requests_is_wanted_and_what_to_lower_is_named() {
        let wanted = |concurrency, requests, limit| {
            let wanted = wanted(&[phase(PhaseKind::Profiling, concurrency, requests)], limit)?;
            Some((wanted.connections, wanted.lower))
        };
        assert_eq!(wanted(Some(1000), None, None), Some((1000, "--concurrency")));
        assert_eq!(wanted(Some(1000), Some(8), None), Some((8, "--concurrency")));
        assert_eq!(wanted(Some(1000), None, Some(600)), Some((600, LIMIT)));
        // An open loop.
        assert_eq!(wanted(None, None, Some(600)), Some((600, LIMIT)));
        assert_eq!(wanted(None, Some(5), Some(600)), Some((5, LIMIT)));
        assert_eq!(wanted(None, Some(5), None), None);
    }

    #[test]
    fn a_warmup_under_a_cap_says_nothing_of_a_schedule_without_one() {
        let warmup = phase(PhaseKind::Warmup, Some(1), Some(10));
        let phases = [warmup.clone(), phase(PhaseKind::Profiling, None, None)];
        assert_eq!(wanted(&phases, None).map(|wanted| wanted.connections), Some(1));
        assert_eq!(bound(&phases, None), None);
        assert_eq!(bound(&phases, Some(600)), Some(600));
        let phases = [warmup, phase(PhaseKind::Profiling, Some(4), None)];
        assert_eq!(bound(&phases, None), Some(4));
        let larger = phase(PhaseKind::Warmup, Some(50), None);
        assert_eq!(wanted(&[larger], None).unwrap().lower, "--warmup-concurrency");
    }
}
