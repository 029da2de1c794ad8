//! Requests of later turns that are made one by one.

use super::*;

/// Conversations whose later turns are asked for one by one; a ticket says when and for what.
struct OneByOne {
    data: Data,
    now: std::rc::Rc<std::cell::Cell<u64>>,
}

type Made = (u64, u64, u32);

impl SessionSource for OneByOne {
    type Ticket = Made;

    fn draw(&mut self) -> Draw<Made> {
        match self.data.draw() {
            Draw::Session(NewSession { conversation, turns, first_ms, run, .. }) => {
                Draw::Session(NewSession {
                    conversation,
                    turns,
                    first_ms,
                    run,
                    ticket: (self.now.get(), conversation, 0),
                })
            }
            Draw::NotYet => Draw::NotYet,
            Draw::Exhausted => Draw::Exhausted,
        }
    }

    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming {
        self.data.timing(conversation, turn)
    }

    fn makes_turns_ahead(&self) -> bool {
        true
    }

    fn turn_ahead(&mut self, conversation: u64, turn: u32, _: u64) -> Option<Made> {
        Some((self.now.get(), conversation, turn))
    }
}

/// Plays a trace; every send with the time it was due and its ticket.
fn made(plan: Plan, data: Data, service_ns: u64) -> Vec<(u64, u64, u32, Made)> {
    let now = std::rc::Rc::new(std::cell::Cell::new(0));
    let source = OneByOne { data, now: std::rc::Rc::clone(&now) };
    let mut schedule = Schedule::new(plan, source, T0);
    let mut back: BinaryHeap<Reverse<(u64, u64, u32)>> = BinaryHeap::new();
    let (mut sent, mut out) = (Vec::new(), Vec::new());
    loop {
        let wake = schedule.poll(T0.plus(now.get()), &mut out);
        for issue in out.drain(..) {
            back.push(Reverse((now.get() + service_ns, issue.number, issue.session.0)));
            let ticket = issue.ticket.expect("every turn brings its request");
            sent.push((now.get(), issue.conversation, issue.turn, ticket));
        }
        let wished = match wake {
            Wake::Done => return sent,
            Wake::OnEvent => u64::MAX,
            Wake::At(at) => at.saturating_since(T0).max(now.get()),
        };
        let arrival = back.peek().map_or(u64::MAX, |Reverse((at, _, _))| *at);
        now.set(wished.min(arrival));
        while let Some(&Reverse((at, _, key))) = back.peek() {
            if at > now.get() {
                break;
            }
            back.pop();
            schedule.returned(SessionKey(key), T0.plus(at), TurnEnding::Finished);
        }
    }
}

#[test]
fn a_turn_that_is_far_off_is_made_a_second_before_it_is_due() {
    let session = vec![(Some(0.0), None), (Some(60_000.0), None), (Some(60_300.0), None)];
    let sent = made(fixed(Some(0.0), None), Data::trace(vec![session]), 10 * MS);
    let times: Vec<_> = sent.iter().map(|(at, _, turn, made)| (at / MS, *turn, made.0 / MS)).collect();
    assert_eq!(times, [(0, 0, 0), (60_000, 1, 59_000), (60_300, 2, 60_000)]);
}

#[test]
fn a_think_time_is_counted_from_the_earliest_return() {
    let session = vec![(Some(0.0), None), (None, Some(5000.0))];
    let sent = made(fixed(Some(0.0), None), Data::trace(vec![session]), 700 * MS);
    assert_eq!((sent[1].0 / MS, sent[1].3.0 / MS), (5700, 4000));
}

proptest! {
    #[test]
    fn every_turn_brings_its_own_request_made_no_earlier_than_needed(
        sessions in prop::collection::vec(
            (0u32..20_000, prop::collection::vec((any::<bool>(), 0u32..20_000), 0..5)),
            1..10,
        ),
        cap in prop::option::of(1u64..4000),
        service in 1u64..3000,
    ) {
        let mut trace: Vec<Vec<(Option<f64>, Option<f64>)>> = sessions
            .iter()
            .map(|(first, turns)| {
                let mut at = f64::from(*first);
                let mut session = vec![(Some(at), None)];
                for (recorded, gap) in turns {
                    at += f64::from(*gap);
                    session.push(if *recorded { (Some(at), None) } else { (None, Some(f64::from(*gap))) });
                }
                session
            })
            .collect();
        trace.sort_by(|a, b| a[0].0.unwrap().total_cmp(&b[0].0.unwrap()));
        let plan = Plan { idle_gap_cap_ns: cap.map(|cap| cap * MS), ..fixed(Some(0.0), None) };
        let sent = made(plan, Data::trace(trace.clone()), service * MS);
        prop_assert_eq!(sent.len(), trace.iter().map(Vec::len).sum::<usize>());
        for (at, conversation, turn, made) in sent {
            prop_assert_eq!((made.1, made.2), (conversation, turn));
            let early = at - made.0;
            // A second, and the answer before it, which cannot be foreseen.
            prop_assert!(turn == 0 || early <= (1000 + service) * MS, "{} ms early", early / MS);
        }
    }
}
