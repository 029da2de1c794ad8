//! Arrivals at a rate, prompts that are late, and sources that have nothing yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aiperf_clock::now;
use aiperf_config::{Arrival, StopRule};
use aiperf_load::schedule::{CapRamp, Draw, NewSession, Plan};
use aiperf_load::{PacerPlace, Ticket};

use crate::closed_loop::{burst, requests, rng};
use crate::harness::{
    DEADLINE, Feed, Gate, Gauge, LAYOUTS, Server, body, phase, prepared, setup, singles, ticket,
};

const MS: u64 = 1_000_000;

/// Arrivals at `rate` per second, evenly spaced.
fn constant(rate: f64, stop: StopRule) -> Plan {
    Plan { cap: None, ..Plan::burst(1, stop, rng()).with_rate(rate, Arrival::Constant) }
}

/// <https://github.com/ai-dynamo/aiperf/issues/1185>
#[test]
fn aiperf_1185_arrivals_leave_in_order_at_their_time_and_never_before() {
    for (layout, spin) in LAYOUTS.into_iter().flat_map(|layout| [(layout, false), (layout, true)]) {
        let server = Server::friendly();
        let setup = crate::harness::Setup { spin, ..setup(server.addr).layout(layout) };
        let (outcome, exchanges) = setup.start().run(phase(constant(1000.0, requests(300)), singles()));
        assert_eq!(outcome.spin_ns > 0, spin && layout.1 == PacerPlace::Thread, "{layout:?}");
        assert_eq!(exchanges.len(), 300);
        for (k, exchange) in exchanges.iter().enumerate() {
            let due = outcome.t0.plus((k as u64 + 1) * MS);
            assert_eq!((exchange.plan.scheduled, exchange.plan.due), (Some(due), due), "{layout:?}");
            assert!(exchange.start >= due && exchange.plan.issued >= due);
            assert!(!exchange.plan.initial_fill);
        }
        assert_eq!(outcome.tally.lateness.count(), 300);
        assert_eq!(outcome.tally.negative_differences, 0);
        assert_eq!((outcome.counts.planned, outcome.counts.skipped, outcome.counts.unsent), (300, 0, 0));
    }
}

#[test]
fn a_network_thread_held_up_loses_no_arrival_and_moves_none() {
    for layout in &LAYOUTS[..2] {
        let server = Server::friendly();
        let seen = AtomicU64::new(0);
        // Held up once, for 150 ms, by whoever takes its records.
        let mut rig = setup(server.addr).layout(*layout).start_holding(move |_| {
            let from = now();
            let hold = if seen.fetch_add(1, Ordering::Relaxed) == 20 { 150 * MS as i64 } else { 0 };
            while now().since(from) < hold {
                std::thread::yield_now();
            }
        });
        let (outcome, exchanges) = rig.run(phase(constant(500.0, requests(120)), singles()));
        for (k, exchange) in exchanges.iter().enumerate() {
            assert_eq!(exchange.plan.due, outcome.t0.plus((k as u64 + 1) * 2 * MS), "{layout:?}");
        }
        assert!(exchanges.is_sorted_by_key(|exchange| exchange.start), "{layout:?}");
        assert_eq!((exchanges.len(), outcome.counts.unsent), (120, 0));
        // An arrival fell due at the latest 2 ms after the thread was held.
        assert!(outcome.tally.lateness.max_ns() >= 140 * MS, "{layout:?}");
        assert!(outcome.tally.loop_delay.max_ns() >= 140 * MS, "{layout:?}: the thread knows of its delay");
    }
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/188>
#[test]
fn inference_perf_188_every_answer_that_came_while_its_thread_was_held_up_is_flagged() {
    for layout in &LAYOUTS[..2] {
        let (held, all) = (Arc::new(Gate::default()), Arc::new(Gauge::default()));
        let (gate, inside) = (Arc::clone(&held), Arc::clone(&all));
        let answered = Arc::new(Gauge::default());
        let answers = Arc::clone(&answered);
        let server = Server::start(move |conn| {
            conn.request()?;
            inside.enter();
            inside.reached(8)?;
            // One answer first; the others come while the client is busy with its record.
            if conn.index == 0 {
                return conn.ok();
            }
            gate.pass()?;
            conn.ok()?;
            answers.enter();
            Some(())
        });
        let first = std::sync::Once::new();
        let mut rig = setup(server.addr).layout(*layout).start_holding(move |_| {
            first.call_once(|| {
                held.open();
                answered.reached(7).unwrap();
                let from = now();
                while now().since(from) < 20 * MS as i64 {
                    std::thread::yield_now();
                }
            });
        });
        let (outcome, exchanges) = rig.run(phase(burst(8, 8), singles()));
        let flagged = exchanges.iter().filter(|exchange| exchange.client_delayed).count();
        assert!(flagged >= 7, "{layout:?}: {flagged}");
        assert_eq!(outcome.tally.delayed_requests, flagged as u64);
    }
}

#[test]
fn the_draws_of_arrivals_do_not_depend_on_the_number_of_workers() {
    let plans = LAYOUTS.map(|layout| {
        let server = Server::friendly();
        let plan = Plan { cap: None, ..burst(1, 100).with_rate(2000.0, Arrival::Gamma(0.5)) };
        let (outcome, exchanges) = setup(server.addr).layout(layout).start().run(phase(plan, singles()));
        exchanges.iter().map(|exchange| exchange.plan.due.since(outcome.t0)).collect::<Vec<_>>()
    });
    assert!(plans.iter().all(|plan| plan.len() == 100 && plan == &plans[0]));
}

#[test]
fn an_arrival_without_a_slot_is_skipped_and_its_conversation_kept() {
    for layout in LAYOUTS {
        let (go, gauge) = (Arc::new(Gate::default()), Arc::new(Gauge::default()));
        let (gate, inside) = (Arc::clone(&go), Arc::clone(&gauge));
        let server = Server::start(move |conn| {
            loop {
                conn.request()?;
                inside.enter();
                gate.pass()?;
                inside.leave();
                conn.ok()?;
            }
        });
        let mut plan = constant(1000.0, requests(8));
        plan.cap = Some(CapRamp::new(3, 0));
        let mut rig = setup(server.addr).layout(layout).start();
        rig.begin(phase(plan, singles()));
        gauge.reached(3).unwrap();
        let full = now();
        // Some arrivals pass while all slots are taken.
        while now().since(full) < 20 * MS as i64 {
            std::thread::yield_now();
        }
        go.open();
        let (outcome, exchanges) = rig.finish();
        assert_eq!(gauge.most(), 3, "{layout:?}");
        let skipped = outcome.counts.skipped;
        assert!(skipped >= 15, "{layout:?}: {skipped}");
        assert_eq!(outcome.counts.planned, 8 + skipped);
        let ids: Vec<_> =
            exchanges.iter().map(|exchange| exchange.identity.conversation_id.to_string()).collect();
        assert_eq!(ids, (0..8).map(|n| format!("c{n}")).collect::<Vec<_>>());
        // The clock of the arrivals was never touched.
        assert!(exchanges.iter().all(|exchange| exchange.plan.due.since(outcome.t0) % MS as i64 == 0));
    }
}

#[test]
fn a_prompt_that_is_not_ready_when_due_is_counted_and_sent_when_it_is() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        let (late, promise) = std::sync::mpsc::channel();
        let mut n = 0;
        let source = Feed::new(move || {
            n += 1;
            let ticket = if n == 2 {
                let (sender, ticket) = Ticket::new();
                late.send(sender).unwrap();
                ticket
            } else {
                ticket(prepared(format!("c{n}"), vec![body("{}")]))
            };
            Draw::Session(NewSession { conversation: n, turns: 1, first_ms: None, run: 0, ticket })
        });
        let mut rig = setup(server.addr).layout(layout).start();
        rig.begin(phase(constant(500.0, requests(3)), source.boxed()));
        let sender = promise.recv_timeout(DEADLINE).unwrap();
        // Those that are ready do not wait for the one that is not.
        let mut others = [rig.next(), rig.next()].map(|exchange| exchange.identity.number);
        others.sort_unstable();
        assert_eq!(others, [0, 2], "{layout:?}");
        let ready = now();
        sender.send(Ok(Arc::new(prepared("late", vec![body("{}")])))).unwrap();
        let (outcome, exchanges) = rig.finish();
        assert_eq!((exchanges[0].identity.number, &*exchanges[0].identity.conversation_id), (1, "late"));
        assert!(exchanges[0].start >= ready);
        assert_eq!(outcome.tally.late_prompts, 1);
        let lateness = exchanges[0].start.since(exchanges[0].plan.due) as u64;
        assert!(outcome.tally.lateness.max_ns() >= lateness, "{layout:?}: the wait shows as lateness");
    }
}

/// A source that has nothing for `time` after it is first asked, and counts how often it was asked meanwhile.
fn slow_to_start(time: Duration, asked: Arc<AtomicU64>) -> aiperf_load::Source {
    let mut until = None;
    let mut n = 0;
    Feed::new(move || {
        if now() < *until.get_or_insert_with(|| now().plus(time.as_nanos() as u64)) {
            asked.fetch_add(1, Ordering::Relaxed);
            return Draw::NotYet;
        }
        n += 1;
        let ticket = ticket(prepared(format!("c{n}"), vec![body("{}")]));
        Draw::Session(NewSession { conversation: n, turns: 1, first_ms: None, run: 0, ticket })
    })
    .boxed()
}

#[test]
fn a_source_that_has_nothing_yet_is_asked_again_without_haste() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        for plan in [burst(2, 20), constant(1000.0, requests(20))] {
            let open = plan.cap.is_none();
            let asked = Arc::new(AtomicU64::new(0));
            let source = slow_to_start(Duration::from_millis(60), Arc::clone(&asked));
            let (outcome, exchanges) = setup(server.addr).layout(layout).start().run(phase(plan, source));
            assert_eq!((exchanges.len(), outcome.counts.issued), (20, 20));
            // Every 200 µs would be 300 times.
            let asked = asked.load(Ordering::Relaxed);
            assert!((1..=400).contains(&asked), "{layout:?}, open loop {open}: asked {asked} times");
            // What was overdue left at once and in order, and its lateness shows.
            if open {
                assert!(outcome.tally.lateness.max_ns() >= 50 * MS);
                assert!(exchanges[0].plan.due.since(outcome.t0) == MS as i64);
            }
        }
    }
}

#[test]
fn an_exhausted_source_ends_the_phase() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        for plan in [Plan::burst(2, StopRule::default(), rng()), constant(1000.0, StopRule::default())] {
            let mut n = 0;
            let source = Feed::new(move || {
                n += 1;
                if n > 5 {
                    return Draw::Exhausted;
                }
                let ticket = ticket(prepared(format!("c{n}"), vec![body("{}"), body("{}")]));
                Draw::Session(NewSession { conversation: n, turns: 2, first_ms: None, run: 0, ticket })
            });
            let (outcome, exchanges) =
                setup(server.addr).layout(layout).start().run(phase(plan, source.boxed()));
            assert_eq!((outcome.counts.sessions, exchanges.len()), (5, 10), "{layout:?}");
        }
    }
}

#[test]
fn a_continuation_takes_the_next_arrival_before_a_new_session_does() {
    let server = Server::friendly();
    let mut n = 0;
    let source = Feed::new(move || {
        n += 1;
        let ticket = ticket(prepared(format!("c{n}"), vec![body("{}"), body("{}")]));
        Draw::Session(NewSession { conversation: n, turns: 2, first_ms: None, run: 0, ticket })
    });
    // Slow enough that every answer is back before the next arrival, unless the host stalls.
    let (_, exchanges) = setup(server.addr).start().run(phase(constant(50.0, requests(8)), source.boxed()));
    let turns: Vec<_> = exchanges.iter().map(|exchange| exchange.identity.turn_index).collect();
    let back = exchanges.windows(2).all(|pair| pair[0].end < pair[1].plan.due);
    assert!(!back || turns == [0, 1, 0, 1, 0, 1, 0, 1], "{turns:?}");
    for pair in exchanges.windows(2).filter(|pair| pair[1].identity.turn_index == 1) {
        let first = exchanges
            .iter()
            .find(|first| {
                first.identity.conversation_id == pair[1].identity.conversation_id
                    && first.identity.turn_index == 0
            })
            .unwrap();
        assert!(first.end <= pair[1].plan.issued);
    }
}
