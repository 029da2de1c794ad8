//! How a phase ends: limits, grace, interrupts, requests broken off on purpose, and the phase after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_config::{Arrival, StopRule};
use aiperf_load::schedule::{Draw, NewSession, Plan};
use aiperf_load::{Exchange, PacerPlace, PhaseRun, Received, StopCause};
use aiperf_types::PhaseKind;

use crate::closed_loop::{burst, requests, rng};
use crate::harness::{
    DEADLINE, Feed, Gate, Gauge, LAYOUTS, Server, body, phase, prepared, setup, singles, ticket,
};

const MS: u64 = 1_000_000;

/// A server that never answers, and tells when its clients close.
fn silent() -> (Server, Arc<Gauge>, std::sync::mpsc::Receiver<Mono>) {
    let (gauge, (tell, closes)) = (Arc::new(Gauge::default()), channel());
    let inside = Arc::clone(&gauge);
    let server = Server::start(move |conn| {
        conn.request()?;
        inside.enter();
        let _ = tell.send(conn.closed()?);
        Some(())
    });
    (server, gauge, closes)
}

#[test]
fn requests_are_broken_off_after_their_delay_and_not_before_they_are_sent() {
    for layout in LAYOUTS {
        for delay in [Duration::ZERO, Duration::from_millis(60)] {
            let (tell, closes) = channel();
            let server = Server::start(move |conn| {
                // Whole: a request that is broken off was sent to its last byte.
                let request = conn.request()?;
                assert_eq!(request.body.len(), 300_000);
                tell.send((request.at, conn.closed()?)).unwrap();
                Some(())
            });
            let source = Feed::new(|| {
                let ticket = ticket(prepared("c", vec![body("x".repeat(300_000))]));
                Draw::Session(NewSession { conversation: 0, turns: 1, first_ms: None, run: 0, ticket })
            });
            let plan = Plan { cancel_share: 1.0, ..burst(2, 6) };
            let run = PhaseRun { cancel_delay: delay, ..phase(plan, source.boxed()) };
            let (outcome, exchanges) = setup(server.addr).layout(layout).start().run(run);
            assert_eq!((outcome.counts.returned, outcome.counts.cut), (6, 0));
            let mut sent: Vec<_> =
                exchanges.iter().map(|exchange| exchange.trace.send_end.unwrap()).collect();
            sent.sort();
            let mut seen: Vec<_> = (0..6).map(|_| closes.recv_timeout(DEADLINE).unwrap().1).collect();
            seen.sort();
            assert_eq!(server.accepted(), 6, "a broken-off connection is not used again");
            let ns = delay.as_nanos() as u64;
            assert!(sent.iter().zip(&seen).all(|(sent, seen)| *seen >= sent.plus(ns)), "{layout:?}");
            for exchange in &exchanges {
                let error = exchange.failure.as_ref().unwrap();
                assert_eq!((error.code, error.kind.as_str()), (Some(499), "RequestCancellationError"));
                assert!(exchange.cancelled_at.unwrap() >= exchange.trace.send_end.unwrap().plus(ns));
                assert!(exchange.end >= exchange.cancelled_at.unwrap());
            }
        }
    }
}

#[test]
fn an_answer_before_the_delay_is_a_success_and_what_came_is_kept() {
    let server = Server::start(|conn| {
        loop {
            conn.request()?;
            if conn.index == 0 {
                conn.ok()?;
            } else {
                conn.stream_head()?;
                conn.chunk("data: {}\n\n")?;
            }
        }
    });
    let plan = Plan { cancel_share: 1.0, ..burst(1, 1) };
    let run = |n| PhaseRun {
        cancel_delay: Duration::from_millis(n),
        ..phase(Plan { cancel_share: 1.0, ..burst(1, 1) }, singles())
    };
    let (_, exchanges) = setup(server.addr).start().run(PhaseRun { plan, ..run(5000) });
    assert!(exchanges[0].failure.is_none() && exchanges[0].cancelled_at.is_none());
    let (_, exchanges) = setup(server.addr).start().run(run(300));
    let exchange = &exchanges[0];
    assert_eq!(exchange.failure.as_ref().unwrap().code, Some(499));
    let Received::Bytes(bytes) = &exchange.received else { panic!("what came is kept") };
    assert_eq!(bytes.data, b"data: {}\n\n");
    assert!(exchange.trace.receive_start.is_some_and(|at| at < exchange.cancelled_at.unwrap()));
}

#[test]
fn only_the_drawn_share_is_broken_off() {
    let server = Server::friendly();
    let plan = Plan { cancel_share: 0.3, ..burst(4, 200) };
    let run = PhaseRun { cancel_delay: Duration::ZERO, ..phase(plan, singles()) };
    let (_, exchanges) = setup(server.addr).start().run(run);
    let cancelled = exchanges.iter().filter(|exchange| exchange.cancelled_at.is_some()).count();
    assert!((35..=85).contains(&cancelled), "{cancelled}");
    assert_eq!(exchanges.iter().filter(|exchange| exchange.failure.is_none()).count(), 200 - cancelled);
}

#[test]
fn grace_ends_and_what_is_left_is_cut_without_a_record() {
    for layout in LAYOUTS {
        let (server, gauge, closes) = silent();
        let stop = StopRule { duration: Some(Duration::from_millis(200)), ..StopRule::default() };
        let run = PhaseRun {
            grace: Some(Duration::from_millis(60)),
            ..phase(Plan::burst(3, stop, rng()), singles())
        };
        let (outcome, exchanges) = setup(server.addr).layout(layout).start().run(run);
        assert_eq!((outcome.counts.issued, outcome.counts.cut, outcome.counts.returned), (3, 3, 0));
        assert_eq!((exchanges.len(), gauge.most(), outcome.stopped), (0, 3, None));
        assert!(outcome.end >= outcome.t0.plus(260 * MS));
        assert!(outcome.counts.closed_at.unwrap() >= outcome.t0.plus(200 * MS));
        for _ in 0..3 {
            assert!(closes.recv_timeout(DEADLINE).unwrap() >= outcome.t0.plus(260 * MS));
        }
    }
}

#[test]
fn what_finishes_within_the_grace_counts() {
    let server = Server::start(|conn| {
        conn.request()?;
        assert!(conn.idle_for(Duration::from_millis(120)));
        conn.ok()
    });
    let stop = StopRule { duration: Some(Duration::from_millis(50)), ..StopRule::default() };
    let (outcome, exchanges) = setup(server.addr).start().run(phase(Plan::burst(2, stop, rng()), singles()));
    assert_eq!((outcome.counts.issued, outcome.counts.returned, outcome.counts.cut), (2, 2, 0));
    assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()));
}

#[test]
fn no_grace_at_all_cuts_at_the_end_of_the_duration() {
    let (server, _, _) = silent();
    let stop = StopRule { duration: Some(Duration::from_millis(40)), ..StopRule::default() };
    let plan = Plan { cap: None, ..Plan::burst(1, stop, rng()).with_rate(200.0, Arrival::Constant) };
    let run = PhaseRun { grace: Some(Duration::ZERO), ..phase(plan, singles()) };
    let (outcome, exchanges) = setup(server.addr).start().run(run);
    // Arrivals at 5, 10, … 35 ms; the one at 40 ms no longer leaves.
    assert_eq!(outcome.counts.planned, 7);
    assert_eq!(outcome.counts.issued, outcome.counts.cut + outcome.counts.never_sent);
    assert!(exchanges.is_empty());
}

#[test]
fn an_interrupt_cuts_what_is_in_flight_and_nothing_leaves_after_it() {
    for layout in LAYOUTS {
        for cause in [StopCause::Interrupt, StopCause::Threshold, StopCause::BadRecord] {
            let (server, gauge, closes) = silent();
            let mut rig = setup(server.addr).layout(layout).start();
            rig.begin(phase(burst(5, 1000), singles()));
            gauge.reached(5).unwrap();
            rig.control.stop(cause);
            // The first cause counts.
            rig.control.stop(StopCause::Interrupt);
            let (outcome, exchanges) = rig.finish();
            assert_eq!((outcome.stopped, rig.control.stopped()), (Some(cause), Some(cause)));
            assert_eq!((outcome.counts.issued, outcome.counts.cut), (5, 5), "{layout:?}");
            assert!(exchanges.is_empty());
            for _ in 0..5 {
                closes.recv_timeout(DEADLINE).unwrap();
            }
            assert_eq!(server.accepted(), 5);
            // What comes after an interrupt does not begin.
            let (outcome, exchanges) = rig.run(phase(burst(5, 1000), singles()));
            assert_eq!((outcome.counts.issued, exchanges.len()), (0, 0));
        }
    }
}

#[test]
fn an_interrupt_between_a_decision_and_its_send_loses_no_turn() {
    for layout in LAYOUTS {
        let (server, _, _) = silent();
        let mut rig = setup(server.addr).layout(layout).start();
        let control = Arc::clone(&rig.control);
        let mut drawn = 0;
        let source = Feed::new(move || {
            drawn += 1;
            if drawn == 4 {
                control.stop(StopCause::Interrupt);
            }
            let ticket = ticket(prepared("c", vec![body("{}")]));
            Draw::Session(NewSession { conversation: 0, turns: 1, first_ms: None, run: 0, ticket })
        });
        let run = PhaseRun { cancel_drain: DEADLINE, ..phase(burst(4, 100), source.boxed()) };
        let (outcome, exchanges) = rig.run(run);
        assert!(outcome.end.since(outcome.t0) < 5_000 * MS as i64, "{layout:?}: a turn never came back");
        let counts = outcome.counts;
        assert_eq!(counts.issued, 4);
        assert_eq!(counts.cut + counts.never_sent + counts.returned, 4, "{layout:?}");
        assert_eq!(counts.returned, exchanges.len() as u64);
    }
}

/// What is decided at once leaves bit by bit; an interrupt that comes first is not kept waiting by it.
#[test]
fn an_interrupt_waits_for_no_burst() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        let mut rig = setup(server.addr).layout(layout).start();
        let control = Arc::clone(&rig.control);
        let mut n = 0;
        let source = Feed::new(move || {
            n += 1;
            if n == 20_000 {
                control.stop(StopCause::Interrupt);
            }
            let ticket = ticket(prepared("c", vec![body("{}")]));
            Draw::Session(NewSession { conversation: 0, turns: 1, first_ms: None, run: 0, ticket })
        });
        rig.begin(phase(burst(20_000, 20_000), source.boxed()));
        let (outcome, exchanges) = rig.finish();
        let counts = outcome.counts;
        assert_eq!((counts.issued, counts.never_sent, counts.returned), (20_000, 20_000, 0), "{layout:?}");
        assert_eq!((exchanges.len(), server.accepted()), (0, 0), "{layout:?}");
    }
}

#[test]
fn an_interrupt_reaches_those_that_wait_for_a_connection_or_a_prompt() {
    for layout in LAYOUTS {
        let (server, gauge, _) = silent();
        let mut setup = setup(server.addr).layout(layout);
        setup.settings.connection_limit = std::num::NonZeroU32::new(2);
        let mut rig = setup.start();
        let promises = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (kept, mut n) = (Arc::clone(&promises), 0);
        let source = Feed::new(move || {
            n += 1;
            let ticket = if n > 4 {
                let (promise, ticket) = aiperf_load::Ticket::new();
                kept.lock().unwrap().push(promise);
                ticket
            } else {
                ticket(prepared("c", vec![body("{}")]))
            };
            Draw::Session(NewSession { conversation: 0, turns: 1, first_ms: None, run: 0, ticket })
        });
        rig.begin(phase(burst(6, 100), source.boxed()));
        gauge.reached(2).unwrap();
        rig.control.stop(StopCause::Interrupt);
        let (outcome, exchanges) = rig.finish();
        let counts = outcome.counts;
        assert_eq!((counts.issued, counts.returned, exchanges.len()), (6, 0, 0));
        // Two had no prompt; a third may not have been taken up by its thread yet.
        assert!(counts.never_sent >= 2 && counts.cut >= 2, "{layout:?}: {counts:?}");
        assert_eq!(counts.cut + counts.never_sent, 6, "{layout:?}");
        // Another worker may take up a connection that is free before it hears of the interrupt itself.
        assert!(server.accepted() == 2 || layout.0 > 1);
        assert!(outcome.end.since(outcome.t0) < 2_500 * MS as i64, "nothing had to be given up");
    }
}

#[test]
fn a_turn_on_record_is_not_cut_while_its_slot_waits_after_a_refused_connection() {
    let closed = crate::harness::closed_port();
    for layout in LAYOUTS {
        let stop = StopRule { duration: Some(Duration::from_millis(150)), ..StopRule::default() };
        let run = PhaseRun { grace: Some(Duration::ZERO), ..phase(Plan::burst(4, stop, rng()), singles()) };
        let (outcome, exchanges) = setup(closed.addr).layout(layout).start().run(run);
        let counts = outcome.counts;
        assert_eq!(counts.returned, exchanges.len() as u64, "{layout:?}");
        assert_eq!(counts.issued, counts.returned + counts.cut + counts.never_sent);
    }
}

fn of(kind: PhaseKind, index: u16, run: PhaseRun) -> PhaseRun {
    PhaseRun { kind, index, ..run }
}

#[test]
fn profiling_starts_when_all_of_warmup_is_back_and_goes_on_in_the_data() {
    for layout in LAYOUTS {
        let answered = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&answered);
        let (asked, order) = channel();
        let server = Server::start(move |conn| {
            loop {
                let n = conn.request()?.json()["n"].as_u64().unwrap();
                asked.send((n, count.load(Ordering::Acquire))).unwrap();
                if n % 4 == 3 {
                    conn.answer("500 Oops", "", "")?;
                } else {
                    conn.ok()?;
                }
                count.fetch_add(1, Ordering::AcqRel);
            }
        });
        let mut rig = setup(server.addr).layout(layout).start();
        let warmup = PhaseRun { grace: None, ..phase(burst(4, 10), singles()) };
        let (warm, first) = rig.run(of(PhaseKind::Warmup, 0, warmup));
        let (profiled, second) = rig.run(of(PhaseKind::Profiling, 1, phase(burst(8, 20), warm.source)));
        // Failures of the warmup stop nothing.
        assert_eq!((warm.counts.returned, profiled.counts.returned), (10, 20));
        assert!(profiled.t0 >= warm.end);
        let kinds = |exchanges: &[Exchange]| {
            exchanges
                .iter()
                .map(|exchange| (exchange.identity.phase, exchange.identity.phase_index))
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds(&first), [(PhaseKind::Warmup, 0); 10]);
        assert_eq!(kinds(&second), [(PhaseKind::Profiling, 1); 20]);
        assert!(second.iter().enumerate().all(|(n, exchange)| exchange.identity.number == n as u64));
        assert!(second.iter().all(|exchange| exchange.start >= profiled.t0));
        let ids: Vec<_> =
            second.iter().map(|exchange| exchange.identity.conversation_id.to_string()).collect();
        assert_eq!(ids, (10..30).map(|n| format!("c{n}")).collect::<Vec<_>>(), "{layout:?}");
        for (n, answered) in order.try_iter() {
            // Answers are counted after they were written, so the last few may be missing from the count.
            assert!(n < 10 || answered + 4 >= 10, "{layout:?}: {n} with {answered} answers");
        }
        // What a phase counts is its own.
        assert_eq!((warm.tally.sent, profiled.tally.sent), (10, 20));
    }
}

#[test]
fn turns_given_up_in_one_phase_do_not_disturb_the_next() {
    for layout in [(1, PacerPlace::Thread), (2, PacerPlace::Thread)] {
        let (server, gauge, _) = silent();
        let held = Arc::new(Gate::default());
        let gate = Arc::clone(&held);
        // The record of the refused request holds its network thread up, with other turns in flight there.
        let rig = setup(server.addr).layout(layout).timeout(Duration::from_millis(30));
        let mut rig = rig.start_holding(move |_| gate.pass().unwrap());
        let stop = StopRule { duration: Some(Duration::from_millis(150)), ..StopRule::default() };
        let plan = Plan { cap: None, ..Plan::burst(1, stop, rng()).with_rate(1000.0, Arrival::Constant) };
        let drain = Duration::from_millis(50);
        rig.begin(PhaseRun { grace: Some(Duration::ZERO), cancel_drain: drain, ..phase(plan, singles()) });
        gauge.reached(2).unwrap();
        let from = now();
        while now().since(from) < 500 * MS as i64 {
            std::thread::yield_now();
        }
        held.open();
        let (outcome, _) = rig.finish();
        let counts = outcome.counts;
        assert!(
            counts.returned + counts.cut + counts.never_sent < counts.issued,
            "{layout:?}: none was given up"
        );
        let (outcome, _) = rig.run(phase(burst(3, 12), outcome.source));
        let counts = outcome.counts;
        assert_eq!((counts.issued, counts.returned, counts.max_in_flight), (12, 12, 3), "{layout:?}");
    }
}

#[test]
fn an_engine_that_stops_closes_its_idle_connections() {
    for layout in LAYOUTS {
        let (tell, closes) = channel();
        let server = Server::start(move |conn| {
            while conn.request().is_some() {
                conn.ok()?;
            }
            tell.send(now()).unwrap();
            Some(())
        });
        let mut rig = setup(server.addr).layout(layout).start();
        rig.run(phase(burst(6, 60), singles()));
        assert!(closes.try_recv().is_err(), "idle connections stay for the next phase");
        rig.stop();
        for _ in 0..server.accepted() {
            closes.recv_timeout(DEADLINE).unwrap();
        }
    }
}

#[test]
fn progress_can_be_watched_from_outside() {
    let (server, gauge, _) = silent();
    let mut rig = setup(server.addr).start();
    let before = now();
    rig.begin(PhaseRun { index: 3, ..phase(burst(2, 9), singles()) });
    gauge.reached(2).unwrap();
    let control = &rig.control;
    assert_eq!(control.phase.load(Ordering::Acquire), 3);
    assert!(control.phase_start.load(Ordering::Acquire) >= before.0);
    control.stop(StopCause::Interrupt);
    rig.finish();
    assert_eq!(rig.control.issued.load(Ordering::Acquire), 2);
    assert_eq!(rig.control.sessions.load(Ordering::Acquire), 2);
}

#[test]
fn the_first_of_several_limits_ends_the_phase() {
    let server = Server::friendly();
    let stops = [
        (StopRule { sessions: Some(7), duration: Some(DEADLINE), ..requests(9) }, 7),
        (StopRule { sessions: Some(9), duration: Some(DEADLINE), ..requests(7) }, 7),
    ];
    for (stop, expected) in stops {
        let (outcome, exchanges) =
            setup(server.addr).start().run(phase(Plan::burst(3, stop, rng()), singles()));
        assert_eq!((outcome.counts.issued, exchanges.len()), (expected, expected as usize));
        assert!(outcome.end.since(outcome.t0) < 5_000 * MS as i64);
    }
}
