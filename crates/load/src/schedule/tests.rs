//! Scenarios with a virtual clock and a server of known service time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use aiperf_clock::Mono;
use aiperf_config::{Arrival, FixedSchedule, LoadMode, StopRule};
use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

mod ahead;
mod idle;

const MS: u64 = 1_000_000;
const T0: Mono = Mono(1_000_000_000_000);

/// Conversations of known turns and times.
struct Data {
    /// Per conversation, per turn: (timestamp, delay), ms.
    conversations: Vec<Vec<(Option<f64>, Option<f64>)>>,
    next: u64,
    wrap: bool,
}

impl Data {
    fn single_turns() -> Data {
        Data { conversations: vec![vec![(None, None)]], next: 0, wrap: true }
    }

    fn sessions(turns: &[(Option<f64>, Option<f64>)]) -> Data {
        Data { conversations: vec![turns.to_vec()], next: 0, wrap: true }
    }

    fn trace(conversations: Vec<Vec<(Option<f64>, Option<f64>)>>) -> Data {
        Data { conversations, next: 0, wrap: false }
    }
}

impl SessionSource for Data {
    type Ticket = ();

    fn draw(&mut self) -> Draw<()> {
        let n = self.conversations.len() as u64;
        if !self.wrap && self.next >= n {
            return Draw::Exhausted;
        }
        let conversation = self.next % n;
        self.next += 1;
        let turns = &self.conversations[conversation as usize];
        Draw::Session(NewSession {
            conversation,
            turns: turns.len() as u32,
            first_ms: turns[0].0,
            run: self.next - 1,
            ticket: (),
        })
    }

    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming {
        let (timestamp_ms, delay_ms) = self.conversations[conversation as usize][turn as usize];
        TurnTiming { timestamp_ms, delay_ms }
    }
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(3)
}

fn requests(n: u64) -> StopRule {
    StopRule { requests: Some(n), ..StopRule::default() }
}

fn fixed(zero_ms: Option<f64>, cap: Option<u32>) -> Plan {
    let mut plan = Plan::burst(1, StopRule::default(), rng());
    plan.mode = LoadMode::FixedSchedule(FixedSchedule { zero_ms });
    plan.cap = cap.map(|cap| CapRamp::new(cap, 0));
    plan
}

/// One send as the simulated server saw it, offsets from T0 in ns.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    conversation: u64,
    turn: u32,
    at: u64,
    plan: PlanInstants,
}

struct World {
    schedule: Schedule<Data>,
    sent: Vec<Sent>,
    ended: u64,
}

/// Plays `plan` with answers after `service(number)` ns; the machine is asked `late` ns after it wished.
fn play_late(plan: Plan, data: Data, service: impl Fn(u64) -> u64, late: impl Fn(u64) -> u64) -> World {
    let mut schedule = Schedule::new(plan, data, T0);
    let mut back: BinaryHeap<Reverse<(u64, u64, u32)>> = BinaryHeap::new();
    let mut sent = Vec::new();
    let mut now = 0_u64;
    let mut out = Vec::new();
    for _ in 0..2_000_000 {
        let wake = schedule.poll(T0.plus(now), &mut out);
        for issue in out.drain(..) {
            back.push(Reverse((now + service(issue.number), issue.number, issue.session.0)));
            sent.push(Sent {
                number: issue.number,
                conversation: issue.conversation,
                turn: issue.turn,
                at: now,
                plan: issue.plan,
            });
        }
        let wished = match wake {
            Wake::Done => return World { schedule, sent, ended: now },
            Wake::OnEvent => u64::MAX,
            Wake::At(at) => at.saturating_since(T0).max(now),
        };
        let arrival = back.peek().map_or(u64::MAX, |Reverse((at, _, _))| *at);
        let next = wished.min(arrival);
        assert!(next < u64::MAX, "the machine waits for nothing");
        now = next + late(next);
        while let Some(&Reverse((at, _, key))) = back.peek() {
            if at > now {
                break;
            }
            back.pop();
            schedule.returned(SessionKey(key), T0.plus(at), TurnEnding::Finished);
        }
    }
    panic!("the run does not end");
}

fn play(plan: Plan, data: Data, service: impl Fn(u64) -> u64) -> World {
    play_late(plan, data, service, |_| 0)
}

fn at_ms(world: &World) -> Vec<f64> {
    world.sent.iter().map(|sent| sent.at as f64 / MS as f64).collect()
}

#[test]
fn a_closed_loop_keeps_exactly_its_concurrency_and_issues_exactly_n() {
    let service = |n: u64| (n * 7919 % 23 + 1) * MS;
    let world = play(Plan::burst(64, requests(10_000), rng()), Data::single_turns(), service);
    assert_eq!(world.sent.len(), 10_000);
    assert_eq!(world.schedule.counts().max_in_flight, 64);
    assert_eq!(world.sent.iter().filter(|sent| sent.plan.initial_fill).count(), 64);
    // Every refill is due when its slot came free, and leaves at once.
    assert!(world.sent.iter().skip(64).all(|sent| sent.plan.due == T0.plus(sent.at)));
    let numbers: Vec<_> = world.sent.iter().map(|sent| sent.number).collect();
    assert_eq!(numbers, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn constant_rate_sends_sixty_thousand_arrivals_in_a_minute_without_drift() {
    let stop = StopRule { duration: Some(Duration::from_mins(1)), ..StopRule::default() };
    let mut plan = Plan::burst(1, stop, rng()).with_rate(1000.0, Arrival::Constant);
    plan.cap = None;
    let world = play(plan, Data::single_turns(), |_| 5 * MS);
    // The first arrival is one interval in; the one at exactly T0 + D no longer leaves.
    assert_eq!(world.sent.len(), 59_999);
    assert!(world.sent.iter().enumerate().all(|(k, sent)| sent.at == (k as u64 + 1) * MS));
    assert_eq!(world.schedule.counts().unsent, 0);
}

// https://github.com/huggingface/inference-benchmarker `src/executors.rs`: arrivals were let go in ticks of 10 ms.
#[test]
fn inference_benchmarker_executors_every_arrival_has_an_instant_of_its_own() {
    let mut plan = Plan::burst(1, requests(5_000), rng()).with_rate(1000.0, Arrival::Poisson);
    plan.cap = None;
    let world = play(plan, Data::single_turns(), |_| 5 * MS);
    assert_eq!(world.sent.len(), 5_000);
    assert!(world.sent.windows(2).all(|pair| pair[0].at < pair[1].at), "two sends share an instant");
    assert!(world.sent.iter().all(|sent| sent.plan.due == T0.plus(sent.at)), "a send waited for a tick");
    let mut on_a_tick = 0;
    for sent in &world.sent {
        on_a_tick += u64::from(sent.at % (MS / 10) < MS / 1000);
    }
    assert!(on_a_tick < 150, "{on_a_tick} of 5,000 sends within 1 us after a tenth of a millisecond");
}

#[test]
fn an_arrival_without_a_slot_is_skipped_and_the_clock_goes_on() {
    let mut plan = Plan::burst(3, requests(6), rng()).with_rate(50.0, Arrival::Constant);
    plan.cap = Some(CapRamp::new(3, 0));
    let world = play(plan, Data::single_turns(), |_| 2000 * MS + 1);
    // Arrivals at 20, 40, 60, …; the first slot is free again just after 2020.
    assert_eq!(at_ms(&world), [20.0, 40.0, 60.0, 2040.0, 2060.0, 2080.0]);
    assert_eq!(world.schedule.counts().skipped, 98);
}

#[test]
fn a_stalled_pacer_loses_no_arrival_and_moves_none() {
    let mut plan = Plan::burst(1, requests(1000), rng()).with_rate(1000.0, Arrival::Constant);
    plan.cap = None;
    // Asleep for 300 ms once, at 200 ms.
    let world = play_late(plan, Data::single_turns(), |_| MS, |at| if at == 200 * MS { 300 * MS } else { 0 });
    assert_eq!(world.sent.len(), 1000);
    for (k, sent) in world.sent.iter().enumerate() {
        let due = (k as u64 + 1) * MS;
        assert_eq!(sent.plan.due, T0.plus(due));
        assert_eq!(sent.at, if (200 * MS..=500 * MS).contains(&due) { 500 * MS } else { due });
    }
}

#[test]
fn a_catch_up_bound_gives_schedule_time_up_and_counts_it() {
    let mut plan = Plan::burst(1, requests(1000), rng()).with_rate(1000.0, Arrival::Constant);
    plan.cap = None;
    plan.max_catch_up_ns = Some(100 * MS);
    let world = play_late(plan, Data::single_turns(), |_| MS, |at| if at == 200 * MS { 300 * MS } else { 0 });
    assert_eq!(world.sent.len(), 1000);
    assert_eq!(world.schedule.counts().catch_up_ns, 299 * MS);
}

#[test]
fn continuations_go_before_new_sessions_and_wait_for_their_delay() {
    let data = Data::sessions(&[(None, None), (None, Some(100.0)), (None, None)]);
    let world =
        play(Plan::burst(1, StopRule { sessions: Some(2), ..StopRule::default() }, rng()), data, |_| 10 * MS);
    assert_eq!(at_ms(&world), [0.0, 110.0, 120.0, 130.0, 240.0, 250.0]);
    assert_eq!(world.sent.iter().map(|sent| sent.turn).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
    // The delay of a turn is the plan's doing: it is due when the delay is over.
    assert_eq!(world.sent[1].plan.due, T0.plus(110 * MS));
}

#[test]
fn every_turn_of_a_session_consumes_an_arrival() {
    let mut plan = Plan::burst(1, requests(6), rng()).with_rate(10.0, Arrival::Constant);
    plan.cap = None;
    let data = Data::sessions(&[(None, None), (None, None)]);
    let world = play(plan, data, |_| 150 * MS);
    // 100: a0; 200: b0; a back at 250 → 300: a1; b back at 350 → 400: b1; 500: c0; 600: d0.
    assert_eq!(at_ms(&world), [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]);
    assert_eq!(world.sent.iter().map(|sent| sent.turn).collect::<Vec<_>>(), [0, 0, 1, 1, 0, 0]);
}

#[test]
fn a_fixed_schedule_follows_timestamps_then_delays_then_answers() {
    let data = Data::trace(vec![
        vec![(Some(1000.0), None), (Some(1050.0), None), (None, Some(30.0)), (Some(1500.5), None)],
        vec![(Some(1010.25), None), (None, None)],
    ]);
    let world = play(fixed(Some(1000.0), None), data, |_| 100 * MS);
    let mut seen: Vec<_> =
        world.sent.iter().map(|s| (s.conversation, s.turn, s.at as f64 / MS as f64)).collect();
    seen.sort_by_key(|sent| (sent.0, sent.1));
    assert_eq!(
        seen,
        [(0, 0, 0.0), (0, 1, 100.0), (0, 2, 230.0), (0, 3, 500.5), (1, 0, 10.25), (1, 1, 110.25)]
    );
    // The late answer moved turn 1 by 50 ms: slip, not lateness.
    let moved = world.sent.iter().find(|s| s.conversation == 0 && s.turn == 1).unwrap();
    assert_eq!(moved.plan.due.since(moved.plan.scheduled.unwrap()), 50 * MS as i64);
    assert_eq!(moved.plan.due, T0.plus(moved.at));
}

#[test]
fn a_capped_fixed_schedule_waits_in_due_order_and_knows_why() {
    let data = Data::trace((0..6).map(|i| vec![(Some(f64::from(i) * 10.0), None)]).collect());
    let world = play(fixed(None, Some(2)), data, |_| 100 * MS);
    assert_eq!(at_ms(&world), [0.0, 10.0, 100.0, 110.0, 200.0, 210.0]);
    assert_eq!(world.sent.iter().map(|sent| sent.conversation).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(world.sent.iter().all(|sent| sent.plan.let_go == T0.plus(sent.at)));
    assert_eq!(world.sent[2].plan.due, T0.plus(20 * MS));
    let counts = world.schedule.counts();
    assert_eq!((counts.last_due, counts.last_let_go), (Some(T0.plus(50 * MS)), Some(T0.plus(210 * MS))));
}

#[test]
fn a_request_count_caps_a_fixed_schedule() {
    let data = Data::trace((0..6).map(|i| vec![(Some(f64::from(i)), None)]).collect());
    let mut plan = fixed(None, None);
    plan.stop = requests(4);
    assert_eq!(play(plan, data, |_| MS).sent.len(), 4);
}

#[test]
fn the_duration_ends_issuing_and_names_what_was_left() {
    let stop = StopRule { duration: Some(Duration::from_millis(100)), ..StopRule::default() };
    let mut plan = Plan::burst(1, stop, rng()).with_rate(100.0, Arrival::Constant);
    plan.cap = None;
    // The pacer sleeps from 50 ms to past the end: five arrivals were due and did not leave.
    let world = play_late(plan, Data::single_turns(), |_| MS, |at| if at == 50 * MS { 200 * MS } else { 0 });
    let counts = world.schedule.counts();
    assert_eq!((counts.issued, counts.planned, counts.unsent), (4, 9, 5));
}

#[test]
fn kubernetes_sigs_inference_perf_245_a_stage_that_ends_declares_its_unsent_requests() {
    let stop = StopRule { duration: Some(Duration::from_millis(35)), ..StopRule::default() };
    let mut plan = fixed(None, Some(1));
    plan.stop = stop;
    let data = Data::trace((0..6).map(|i| vec![(Some(f64::from(i) * 10.0), None)]).collect());
    let counts = play(plan, data, |_| 1000 * MS).schedule.counts();
    // Due at 0, 10, 20, 30: one was sent, three were held by the cap.
    assert_eq!((counts.issued, counts.planned, counts.skipped, counts.unsent), (1, 4, 3, 0));
}

#[test]
fn a_concurrency_ramp_opens_one_slot_at_a_time() {
    let mut plan = Plan::burst(5, requests(5), rng());
    plan.cap = Some(CapRamp::new(5, 400 * MS));
    let world = play(plan, Data::single_turns(), |_| 10_000 * MS);
    assert_eq!(at_ms(&world), [0.0, 100.0, 200.0, 300.0, 400.0]);
    assert_eq!(world.sent.iter().filter(|sent| sent.plan.initial_fill).count(), 1);
}

/// A source that never has anything yet.
struct Empty;

impl SessionSource for Empty {
    type Ticket = ();

    fn draw(&mut self) -> Draw<()> {
        Draw::NotYet
    }

    fn timing(&self, _: u64, _: u32) -> TurnTiming {
        TurnTiming::default()
    }
}

#[test]
fn a_source_that_has_nothing_yet_is_asked_again_after_a_pause() {
    let mut open_loop = Plan::burst(1, requests(9), rng()).with_rate(1000.0, Arrival::Constant);
    open_loop.cap = None;
    for plan in [Plan::burst(3, requests(9), rng()), open_loop, fixed(None, Some(3))] {
        let mode = plan.mode;
        let mut schedule = Schedule::new(plan, Empty, T0);
        // Some arrivals are overdue.
        let now = T0.plus(5 * MS);
        match schedule.poll(now, &mut Vec::new()) {
            Wake::At(at) => assert!(at > now && at < now.plus(MS), "{mode:?}"),
            other => panic!("{mode:?}: {other:?}"),
        }
    }
}

#[test]
fn slots_that_nobody_will_take_do_not_keep_the_machine_awake() {
    // One session, answered long after the ramp is over.
    let mut plan = fixed(None, Some(5));
    plan.cap = Some(CapRamp::new(5, 400 * MS));
    let world = play(plan, Data::trace(vec![vec![(Some(0.0), None)]]), |_| 10_000 * MS);
    assert_eq!(at_ms(&world), [0.0]);
}

#[test]
fn nothing_leaves_after_an_interrupt() {
    let mut schedule = Schedule::new(Plan::burst(4, requests(100), rng()), Data::single_turns(), T0);
    let mut out = Vec::new();
    schedule.poll(T0, &mut out);
    assert_eq!(out.len(), 4);
    schedule.close(T0.plus(5));
    out.clear();
    schedule.returned(SessionKey(0), T0.plus(6), TurnEnding::Finished);
    assert_eq!(schedule.poll(T0.plus(7), &mut out), Wake::OnEvent);
    assert!(out.is_empty());
    for key in 1..3 {
        schedule.returned(SessionKey(key), T0.plus(8), TurnEnding::Cut);
    }
    schedule.returned(SessionKey(3), T0.plus(8), TurnEnding::NeverSent);
    assert_eq!(schedule.poll(T0.plus(9), &mut out), Wake::Done);
    let counts = schedule.counts();
    assert_eq!((counts.returned, counts.cut, counts.never_sent), (1, 2, 1));
}

#[test]
fn cancellations_are_drawn_per_turn_with_a_seed() {
    let draw = |share| {
        let mut plan = Plan::burst(1, requests(2000), rng());
        plan.cancel_share = share;
        let mut schedule = Schedule::new(plan, Data::single_turns(), T0);
        let mut out = Vec::new();
        for step in 0..2000 {
            schedule.poll(T0.plus(step), &mut out);
            schedule.returned(SessionKey(0), T0.plus(step), TurnEnding::Finished);
        }
        out.iter().map(|issue| issue.cancel).collect::<Vec<_>>()
    };
    assert!(draw(0.0).iter().all(|&cancel| !cancel));
    assert!(draw(1.0).iter().all(|&cancel| cancel));
    let some = draw(0.4);
    assert_eq!(some, draw(0.4));
    let count = some.iter().filter(|&&cancel| cancel).count();
    assert!((700..900).contains(&count), "{count}");
}

proptest! {
    #[test]
    fn counts_agree_and_caps_hold_in_every_mode(
        cap in 1_u32..20,
        n in 1_u64..300,
        rate in 1.0_f64..5000.0,
        mode in 0..3,
        turns in 1_usize..4,
        ramp in 0_u64..300,
        seed in any::<u64>(),
    ) {
        let mut plan = Plan::burst(cap, requests(n), ChaCha12Rng::seed_from_u64(seed));
        plan.cap = Some(CapRamp::new(cap, ramp * MS));
        let data = match mode {
            0 => Data::sessions(&vec![(None, Some(3.0)); turns]),
            1 => {
                plan = plan.with_rate(rate, Arrival::Poisson);
                Data::sessions(&vec![(None, None); turns])
            }
            _ => {
                plan.mode = LoadMode::FixedSchedule(FixedSchedule { zero_ms: None });
                Data::trace((0..n).map(|i| vec![(Some(i as f64), None); turns]).collect())
            }
        };
        let world = play(plan, data, |number| (number * 31 % 50) * MS + 1);
        let counts = world.schedule.counts();
        prop_assert_eq!(counts.issued, world.sent.len() as u64);
        prop_assert_eq!(counts.issued, n);
        prop_assert_eq!(counts.returned, n);
        prop_assert!(counts.max_in_flight <= cap);
        prop_assert_eq!(counts.planned, counts.issued + counts.skipped + counts.unsent);
        for sent in &world.sent {
            prop_assert!(sent.plan.let_go >= sent.plan.due);
            prop_assert!(T0.plus(sent.at) >= sent.plan.let_go);
        }
        prop_assert!(world.ended > 0);
    }
}
