//! Caps and totals, as the server counts them.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_config::StopRule;
use aiperf_load::schedule::{CapRamp, Plan};
use aiperf_load::{CpuClock, PacerPlace, PhaseRun};
use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng as _;

use crate::harness::{Gauge, LAYOUTS, Server, conversation, phase, setup, singles, talks};

pub(crate) fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(7)
}

pub(crate) fn requests(n: u64) -> StopRule {
    StopRule { requests: Some(n), ..StopRule::default() }
}

/// A closed loop of `cap` that sends `n` requests.
pub(crate) fn burst(cap: u32, n: u64) -> Plan {
    Plan::burst(cap, requests(n), rng())
}

/// A server that counts requests between their last byte and the first of their answer. The first `fill` wait
/// for each other; later ones take up to 300 µs, differing from one to the next.
fn counting(fill: usize) -> (Server, Arc<Gauge>) {
    let gauge = Arc::new(Gauge::default());
    let inside = Arc::clone(&gauge);
    let server = Server::start(move |conn| {
        for turn in 0_u64.. {
            conn.request()?;
            inside.enter();
            inside.reached(fill)?;
            // What is waited for here is the service itself, not another thread.
            std::thread::sleep(Duration::from_micros((conn.index as u64 * 7919 + turn * 104_729) % 300));
            inside.leave();
            conn.ok()?;
        }
        Some(())
    });
    (server, gauge)
}

#[test]
fn sixty_four_are_in_flight_and_never_sixty_five() {
    for (layout, n) in LAYOUTS.into_iter().zip([10_000_u64, 1000, 2000, 2000]) {
        let (server, gauge) = counting(64);
        let mut rig = setup(server.addr).layout(layout).start();
        let (outcome, exchanges) = rig.run(phase(burst(64, n), singles()));
        assert_eq!(gauge.most(), 64, "{layout:?}");
        assert_eq!(server.accepted(), 64, "{layout:?}: connections are used again");
        assert_eq!((outcome.counts.issued, outcome.counts.returned), (n, n), "{layout:?}");
        assert_eq!(outcome.counts.max_in_flight, 64, "{layout:?}");
        assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()), "{layout:?}");
        assert!(exchanges.iter().map(|exchange| exchange.identity.number).eq(0..n), "{layout:?}");
        assert_eq!(outcome.tally.sent, n, "{layout:?}");
        assert_eq!(outcome.tally.lateness.count(), n - 64, "{layout:?}: the first fill is not lateness");
        assert_eq!(outcome.tally.negative_differences, 0, "{layout:?}");
        let workers: HashSet<_> = exchanges.iter().map(|exchange| exchange.identity.worker).collect();
        assert_eq!(workers.len(), layout.0, "{layout:?}: every worker has its part");
        assert_eq!(outcome.cpu.workers_ns.iter().filter(|&&ns| ns > 0).count(), layout.0);
    }
}

/// A clock by which each look costs more than all before it, and which knows when it was looked at.
#[derive(Default)]
struct Looks(Mutex<Vec<Mono>>);

impl CpuClock for Looks {
    fn process_ns(&self) -> u64 {
        let mut looks = self.0.lock().unwrap();
        looks.push(now());
        1 << looks.len()
    }

    fn apart_ns(&self) -> u64 {
        3 * self.0.lock().unwrap().len() as u64
    }

    fn thread_ns(&self, tid: i32) -> u64 {
        assert!(tid > 0);
        7 * self.0.lock().unwrap().len() as u64
    }
}

/// What is made ready before a phase, and what is done after it, is no cost of its requests.
#[test]
fn cpu_time_is_that_from_the_start_of_a_phase_to_its_end() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        let clock = Arc::new(Looks::default());
        let mut rig = setup(server.addr).layout(layout).start();
        let (outcome, _) = rig
            .run(PhaseRun { cpu: Arc::clone(&clock) as Arc<dyn CpuClock>, ..phase(burst(4, 40), singles()) });
        let looks = clock.0.lock().unwrap().clone();
        let [before, after] = looks[..] else { panic!("{looks:?}") };
        assert!(before <= outcome.t0 && outcome.end <= after, "{layout:?}");
        let cpu = &outcome.cpu;
        assert_eq!((cpu.process_ns, cpu.apart_ns, &cpu.workers_ns), (2, 3, &vec![7; layout.0]), "{layout:?}");
        assert!(cpu.span_ns >= outcome.end.saturating_since(outcome.t0), "{layout:?}");
    }
}

#[test]
fn ids_are_one_per_request_and_one_per_session() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        let setup = setup(server.addr).layout(layout);
        let talk = |n: usize| conversation(&format!("s{n}"), &["a", "b", "c"]);
        let source = talks((0..20).map(talk).collect(), &setup.settings.format, 0.0);
        let (_, exchanges) = setup.start().run(phase(Plan::burst(4, StopRule::default(), rng()), source));
        assert_eq!(exchanges.len(), 60);
        let ids: HashSet<_> = exchanges.iter().map(|exchange| exchange.identity.request_id).collect();
        assert_eq!(ids.len(), 60);
        let sessions: HashSet<_> = exchanges
            .iter()
            .map(|exchange| {
                let identity = &exchange.identity;
                (identity.conversation_id.clone(), identity.correlation_id.clone(), identity.worker)
            })
            .collect();
        assert_eq!(sessions.len(), 20, "{layout:?}: one id and one worker for all turns of a session");
        let correlations: HashSet<_> = sessions.iter().map(|session| session.1.clone()).collect();
        assert_eq!(correlations.len(), 20);
    }
}

#[test]
fn a_set_connection_limit_holds_for_all_workers_and_its_wait_shows() {
    let (server, gauge) = counting(4);
    let mut setup = setup(server.addr).layout((2, PacerPlace::Thread));
    setup.settings.connection_limit = NonZeroU32::new(4);
    let (outcome, exchanges) = setup.start().run(phase(burst(16, 200), singles()));
    assert_eq!(outcome.counts.max_in_flight, 16);
    assert_eq!(gauge.most(), 4);
    // Idle connections count: none was opened beyond them.
    assert_eq!(server.accepted(), 4);
    for exchange in &exchanges {
        let (from, until) = exchange.trace.pool_wait.unwrap();
        assert!(exchange.start <= from && from <= until && Some(until) <= exchange.trace.send_start);
    }
    let waited = |exchange: &&aiperf_load::Exchange| {
        exchange.trace.pool_wait.is_some_and(|(from, until)| until.since(from) > 100_000)
    };
    assert!(exchanges.iter().filter(waited).count() > 100);
}

#[test]
fn fewer_connections_than_workers_are_not_exceeded_and_uneven_shares_are_used_up() {
    for (limit, workers) in [(1, 3), (2, 3), (5, 3)] {
        let (server, gauge) = counting(limit as usize);
        let mut setup = setup(server.addr).layout((workers, PacerPlace::Thread));
        setup.settings.connection_limit = NonZeroU32::new(limit);
        let (outcome, exchanges) = setup.start().run(phase(burst(12, 60), singles()));
        assert_eq!((outcome.counts.max_in_flight, exchanges.len()), (12, 60));
        assert_eq!((gauge.most(), server.accepted()), (limit as usize, limit as usize), "{workers} workers");
    }
}

#[test]
fn without_a_limit_nothing_waits_for_a_connection() {
    let (server, gauge) = counting(200);
    let mut rig = setup(server.addr).layout((2, PacerPlace::Thread)).start();
    let (_, exchanges) = rig.run(phase(burst(200, 200), singles()));
    assert_eq!(gauge.most(), 200);
    assert!(exchanges.iter().all(|exchange| exchange.trace.pool_wait.is_none()));
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/86>: a client that is busy sending stamps late what it could
/// have read long ago.
#[test]
fn inference_perf_86_a_large_first_fill_lets_answers_in_between() {
    // On a busy host the server may have no time to answer before the last request leaves: one fill of many shows it.
    let lets_answers_in = |layout| {
        let server = Server::friendly();
        let mut rig = setup(server.addr).layout(layout).start();
        let (_, exchanges) = rig.run(phase(burst(600, 600), singles()));
        let last_start = exchanges.iter().map(|exchange| exchange.start).max().unwrap();
        exchanges.iter().any(|exchange| exchange.end < last_start)
    };
    for layout in LAYOUTS {
        let is_read = (0..50).any(|_| lets_answers_in(layout));
        assert!(is_read, "{layout:?}: nothing was ever read before the last request of a fill left");
    }
}

#[test]
fn a_ramp_of_the_cap_opens_slots_one_by_one() {
    let (server, gauge) = counting(1);
    let mut plan = burst(5, 300);
    plan.cap = Some(CapRamp::new(5, 200_000_000));
    let (outcome, exchanges) = setup(server.addr).start().run(phase(plan, singles()));
    assert!(gauge.most() <= 5);
    assert_eq!(outcome.counts.issued, 300);
    for sent in &exchanges {
        let open = 1 + (sent.start.saturating_since(outcome.t0) / 50_000_000).min(4);
        let in_flight = exchanges.iter().filter(|other| other.start <= sent.start && other.end > sent.start);
        assert!(in_flight.count() as u64 <= open);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A share of the cap for each worker, rounded up to one, would exceed it; so would shares of the total.
    #[test]
    fn caps_and_totals_hold_for_every_number_of_workers(
        workers in 1_usize..6,
        cap in 1_u32..9,
        n in 1_u64..40,
        turns in 1_usize..4,
    ) {
        let (server, gauge) = counting(1);
        let setup = setup(server.addr).layout((workers, PacerPlace::Thread));
        let says = ["x"; 3];
        let source = talks(
            (0..n).map(|i| conversation(&format!("s{i}"), &says[..turns])).collect(),
            &setup.settings.format,
            0.0,
        );
        let (outcome, exchanges) = setup.start().run(phase(burst(cap, n), source));
        prop_assert!(gauge.most() <= cap as usize);
        prop_assert!(outcome.counts.max_in_flight <= cap);
        prop_assert_eq!(outcome.counts.issued, n);
        prop_assert_eq!(exchanges.len() as u64, n);
        prop_assert!(exchanges.iter().map(|exchange| exchange.identity.number).eq(0..n));
    }
}
