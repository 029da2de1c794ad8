//! The longest time in which nothing is in flight.

use super::*;

fn capped(cap_ms: u64, zero_ms: Option<f64>, sessions: Option<u32>) -> Plan {
    Plan { idle_gap_cap_ns: Some(cap_ms * MS), ..fixed(zero_ms, sessions) }
}

/// A first turn at `ms`, and think times after it.
fn thinking(ms: f64, delays: &[f64]) -> Vec<(Option<f64>, Option<f64>)> {
    let mut turns = vec![(Some(ms), None)];
    turns.extend(delays.iter().map(|delay| (None, Some(*delay))));
    turns
}

/// Spans in which nothing was in flight before a send, ns; from T0.
fn idle_spans(sent: &[Sent], service: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut busy_until = 0;
    let mut spans = Vec::new();
    for send in sent {
        spans.push(send.at.saturating_sub(busy_until));
        busy_until = busy_until.max(send.at + service(send.number));
    }
    spans
}

#[test]
fn aiperf_1201_a_think_time_beyond_the_cap_is_cut_and_every_timer_moves_alike() {
    let data = Data::trace(vec![thinking(0.0, &[5000.0]), thinking(8000.0, &[]), thinking(8030.0, &[])]);
    let world = play(capped(100, Some(0.0), None), data, |_| 20 * MS);
    // The first answer is back at 20 and the second turn, planned for 5020, leaves at 120: 4900 sooner. The first
    // turns, planned for 8000 and 8030, are then due at 3100 and 3130; nothing is in flight from 140 on, so that
    // they move to 240 and 270.
    assert_eq!(at_ms(&world), [0.0, 120.0, 240.0, 270.0]);
    assert_eq!(world.schedule.counts().moved_up_ns, 7760 * MS);
}

#[test]
fn the_plan_moves_with_it_so_that_nothing_is_late() {
    let data = Data::trace(vec![thinking(0.0, &[]), thinking(9000.0, &[50.0])]);
    let world = play(capped(500, Some(0.0), None), data, |_| 10 * MS);
    let second = &world.sent[1];
    assert_eq!(second.at, 510 * MS);
    let due = T0.plus(510 * MS);
    assert_eq!((second.plan.scheduled, second.plan.due, second.plan.let_go), (Some(due), due, due));
    assert_eq!(world.sent[2].at, 570 * MS);
    assert_eq!(world.schedule.counts().last_due, Some(T0.plus(570 * MS)));
}

#[test]
fn lateness_of_the_client_is_not_hidden_by_a_move() {
    let data = Data::trace(vec![thinking(0.0, &[]), thinking(9000.0, &[])]);
    let late = |at: u64| if at > 100 * MS { 3 * MS } else { 0 };
    let world = play_late(capped(500, Some(0.0), None), data, |_| 10 * MS, late);
    assert_eq!(world.sent[1].plan.due, T0.plus(510 * MS));
    assert_eq!(world.sent[1].at, 513 * MS);
}

#[test]
fn aiperf_1201_nothing_moves_while_a_request_is_in_flight_or_a_timer_is_near() {
    let data = Data::trace(vec![thinking(0.0, &[]), thinking(900.0, &[]), thinking(990.0, &[])]);
    let world = play(capped(100, Some(0.0), None), data, |number| if number == 0 { 850 * MS } else { MS });
    assert_eq!(at_ms(&world), [0.0, 900.0, 990.0]);
    assert_eq!(world.schedule.counts().moved_up_ns, 0);
}

#[test]
fn the_wait_before_the_first_request_is_dead_air_too() {
    let data = Data::trace(vec![thinking(4000.0, &[]), thinking(4050.0, &[])]);
    let world = play(capped(100, Some(0.0), None), data, |_| MS);
    assert_eq!(at_ms(&world), [100.0, 150.0]);
}

#[test]
fn a_recorded_time_inside_a_session_moves_up_as_well() {
    let session = vec![(Some(0.0), None), (Some(3000.0), None), (Some(3040.0), None)];
    let world = play(capped(200, Some(0.0), None), Data::trace(vec![session]), |_| 10 * MS);
    assert_eq!(at_ms(&world), [0.0, 210.0, 250.0]);
    assert_eq!(world.sent[1].plan.scheduled, Some(T0.plus(210 * MS)));
}

#[test]
fn a_turn_that_a_session_cap_holds_keeps_its_instant() {
    let data = Data::trace(vec![thinking(0.0, &[3000.0]), thinking(50.0, &[])]);
    let world = play(capped(100, Some(0.0), Some(1)), data, |_| 10 * MS);
    // Due at 50, held until the first session is over at 120.
    assert_eq!(at_ms(&world), [0.0, 110.0, 120.0]);
    let held = &world.sent[2].plan;
    assert_eq!((held.due, held.let_go), (T0.plus(50 * MS), T0.plus(120 * MS)));
}

#[test]
fn a_closed_loop_without_a_schedule_does_not_idle_either() {
    let plan = Plan { idle_gap_cap_ns: Some(100 * MS), ..Plan::burst(1, requests(3), rng()) };
    let data = Data::sessions(&thinking(0.0, &[5000.0, 20.0]));
    assert_eq!(at_ms(&play(plan, data, |_| 10 * MS)), [0.0, 110.0, 140.0]);
}

#[test]
fn time_limits_are_on_the_clock() {
    let mut plan = capped(100, Some(0.0), None);
    plan.stop.duration = Some(Duration::from_millis(250));
    let data = Data::trace((0..9).map(|n| thinking(f64::from(n) * 5000.0, &[])).collect());
    assert_eq!(at_ms(&play(plan, data, |_| 10 * MS)), [0.0, 110.0, 220.0]);
}

proptest! {
    #[test]
    fn no_span_with_nothing_in_flight_is_longer_than_the_cap(
        sessions in prop::collection::vec(
            (0u32..60_000, prop::collection::vec(0u32..20_000, 0..4)),
            1..12,
        ),
        cap in 1u64..3000,
        service in 1u64..2000,
        slots in prop::option::of(1u32..4),
    ) {
        let mut trace: Vec<_> = sessions
            .iter()
            .map(|(first, delays)| {
                thinking(f64::from(*first), &delays.iter().map(|ms| f64::from(*ms)).collect::<Vec<_>>())
            })
            .collect();
        trace.sort_by(|a, b| a[0].0.unwrap().total_cmp(&b[0].0.unwrap()));
        let turns: usize = trace.iter().map(Vec::len).sum();
        let took = |number: u64| (number * 7919 % service + 1) * MS;
        let world = play(capped(cap, Some(0.0), slots), Data::trace(trace.clone()), took);
        prop_assert_eq!(world.sent.len(), turns);
        for span in idle_spans(&world.sent, took) {
            prop_assert!(span <= cap * MS, "{} ns idle", span);
        }
        for sent in &world.sent {
            // On time, as far as a cap on sessions lets it go.
            prop_assert_eq!(T0.plus(sent.at), sent.plan.let_go.max(sent.plan.due));
        }
        // Never later than without the cap.
        let free = play(fixed(Some(0.0), slots), Data::trace(trace), took);
        prop_assert!(world.ended <= free.ended);
    }
}
