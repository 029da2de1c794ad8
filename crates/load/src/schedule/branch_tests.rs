//! Conversations that start others, with a virtual clock and a server of known service time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use aiperf_config::{Arrival, FixedSchedule, LoadMode, StopRule};
use aiperf_types::{BranchChild, BranchGroup, BranchStart, Spine, ThinkTime};
use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

const MS: u64 = 1_000_000;
const T0: Mono = Mono(1_000_000_000_000);

/// A conversation of the test: (timestamp, delay) of each turn, and what it starts.
struct Node {
    turns: Vec<(Option<f64>, Option<f64>)>,
    plan: Option<BranchPlan>,
}

/// Nodes by index; the first `roots` are drawn.
struct Graph {
    nodes: Vec<Node>,
    roots: u64,
    next: u64,
    wrap: bool,
}

impl SessionSource for Graph {
    type Ticket = u64;

    fn draw(&mut self) -> Draw<u64> {
        if !self.wrap && self.next >= self.roots {
            return Draw::Exhausted;
        }
        let conversation = self.next % self.roots;
        self.next += 1;
        let turns = &self.nodes[conversation as usize].turns;
        Draw::Session(NewSession {
            conversation,
            turns: turns.len() as u32,
            first_ms: turns[0].0,
            run: self.next - 1,
            ticket: conversation,
        })
    }

    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming {
        let (timestamp_ms, delay_ms) = self.nodes[conversation as usize].turns[turn as usize];
        TurnTiming { timestamp_ms, delay_ms }
    }

    fn branches(&self, conversation: u64) -> Option<Arc<BranchPlan>> {
        self.nodes[conversation as usize].plan.clone().map(Arc::new)
    }

    fn child(&mut self, conversation: u64, _: bool, _: u64) -> Option<Child<u64>> {
        Some(Child {
            turns: self.nodes[conversation as usize].turns.len() as u32,
            ticket: Some(conversation),
        })
    }
}

fn leaf(delays: &[f64]) -> Node {
    Node { turns: delays.iter().map(|ms| (None, Some(*ms))).collect(), plan: None }
}

fn starting(delays: &[f64], groups: &[(BranchStart, &[u64], Option<u32>)]) -> Node {
    let groups = groups
        .iter()
        .map(|(start, children, joins)| BranchGroup {
            start: *start,
            joins: *joins,
            children: children.iter().map(|index| child(*index)).collect(),
        })
        .collect();
    Node { plan: Some(BranchPlan { id: "root".into(), groups, spine: None }), ..leaf(delays) }
}

fn child(conversation: u64) -> BranchChild {
    BranchChild { conversation, inherits: false, offset_ms: 0.0 }
}

fn graph(nodes: Vec<Node>, roots: u64) -> Graph {
    Graph { nodes, roots, next: 0, wrap: false }
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(5)
}

fn sessions(n: u64) -> StopRule {
    StopRule { sessions: Some(n), ..StopRule::default() }
}

#[derive(Debug)]
struct Sent {
    conversation: u64,
    turn: u32,
    ms: f64,
    family: Option<Arc<Family>>,
    fork: Option<Fork>,
    forked: bool,
    session: SessionKey,
    has_ticket: bool,
}

struct World {
    schedule: Schedule<Graph>,
    sent: Vec<Sent>,
}

impl World {
    /// Conversation, turn and ms of each send, in order.
    fn seen(&self) -> Vec<(u64, u32, f64)> {
        self.sent.iter().map(|sent| (sent.conversation, sent.turn, sent.ms)).collect()
    }

    fn of(&self, conversation: u64) -> Vec<f64> {
        self.sent.iter().filter(|sent| sent.conversation == conversation).map(|sent| sent.ms).collect()
    }
}

/// Plays to the end, or cuts off what is left at `cut` ms after T0.
fn play_until(plan: Plan, data: Graph, service_ms: impl Fn(u64) -> u64, cut: Option<u64>) -> World {
    let mut schedule = Schedule::new(plan, data, T0);
    let mut back: BinaryHeap<Reverse<(u64, u64, u32)>> = BinaryHeap::new();
    let (mut sent, mut out, mut now) = (Vec::new(), Vec::new(), 0_u64);
    for _ in 0..100_000 {
        let wake = schedule.poll(T0.plus(now), &mut out);
        for issue in out.drain(..) {
            back.push(Reverse((now + service_ms(issue.conversation) * MS, issue.number, issue.session.0)));
            sent.push(Sent {
                conversation: issue.conversation,
                turn: issue.turn,
                ms: now as f64 / MS as f64,
                family: issue.family,
                fork: issue.fork,
                forked: issue.forked,
                session: issue.session,
                has_ticket: issue.ticket.is_some(),
            });
        }
        let wished = match wake {
            Wake::Done => return World { schedule, sent },
            Wake::OnEvent => u64::MAX,
            Wake::At(at) => at.saturating_since(T0).max(now),
        };
        let next = wished.min(back.peek().map_or(u64::MAX, |Reverse((at, ..))| *at));
        assert!(next < u64::MAX, "the machine waits for nothing");
        now = next;
        if cut.is_some_and(|cut| now >= cut * MS) {
            schedule.abandon_children();
            for Reverse((_, _, key)) in back.drain() {
                schedule.returned(SessionKey(key), T0.plus(now), TurnEnding::Cut);
            }
        }
        while let Some(&Reverse((at, _, key))) = back.peek().filter(|Reverse((at, ..))| *at <= now) {
            back.pop();
            schedule.returned(SessionKey(key), T0.plus(at), TurnEnding::Finished);
        }
    }
    panic!("the run does not end");
}

fn play(plan: Plan, data: Graph, service_ms: impl Fn(u64) -> u64) -> World {
    play_until(plan, data, service_ms, None)
}

#[test]
fn a_turn_waits_for_the_children_it_joins_and_turns_before_it_do_not() {
    // As the published example: one child joins turn 1, a longer one turn 2.
    let root = starting(
        &[0.0, 20.0, 0.0],
        &[(BranchStart::After(0), &[1], Some(1)), (BranchStart::After(0), &[2], Some(2))],
    );
    let world = play(
        Plan::burst(1, sessions(1), rng()),
        graph(vec![root, leaf(&[0.0]), leaf(&[0.0])], 1),
        |conversation| [10, 50, 300][conversation as usize],
    );
    assert_eq!(world.seen(), [(0, 0, 0.0), (1, 0, 10.0), (2, 0, 10.0), (0, 1, 60.0), (0, 2, 310.0)]);
    let counts = world.schedule.branch_counts().unwrap();
    assert_eq!((counts.started, counts.finished, counts.waits, counts.resumed), (2, 2, 2, 2));
}

#[test]
fn a_gated_turn_keeps_its_own_delay_and_leaves_at_the_later_of_the_two() {
    for (delay, expected) in [(400.0, 410.0), (30.0, 110.0)] {
        let root = starting(&[0.0, delay], &[(BranchStart::After(0), &[1], Some(1))]);
        let world =
            play(Plan::burst(1, sessions(1), rng()), graph(vec![root, leaf(&[0.0])], 1), |conversation| {
                [10, 100][conversation as usize]
            });
        assert_eq!(world.of(0), [0.0, expected]);
        let turn = world.sent.last().unwrap();
        assert_eq!((turn.conversation, turn.turn), (0, 1));
    }
}

#[test]
fn a_gated_turn_of_a_schedule_keeps_its_recorded_time() {
    let mut root = starting(&[0.0, 0.0], &[(BranchStart::After(0), &[1], Some(1))]);
    root.turns = vec![(Some(1000.0), None), (Some(1700.0), None)];
    let mut plan = Plan::burst(1, StopRule::default(), rng());
    plan.mode = LoadMode::FixedSchedule(FixedSchedule { zero_ms: Some(1000.0) });
    plan.cap = None;
    let mut offset = leaf(&[0.0]);
    offset.turns = vec![(Some(1250.0), None), (Some(1400.0), None)];
    root.plan.as_mut().unwrap().groups[0].children[0].offset_ms = 150.0;
    let world = play(plan, graph(vec![root, offset], 1), |_| 100);
    // The child at its offset from its start, then on its recorded time; the parent on its own.
    assert_eq!(world.seen(), [(0, 0, 0.0), (1, 0, 250.0), (1, 1, 400.0), (0, 1, 700.0)]);
    assert_eq!(world.schedule.branch_counts().unwrap().delayed, 1);
}

#[test]
fn what_a_child_starts_in_the_background_does_not_hold_up_who_waits_for_it() {
    let root = starting(&[0.0, 0.0], &[(BranchStart::After(0), &[1], Some(1))]);
    let mut middle = starting(&[0.0], &[(BranchStart::After(0), &[2], None)]);
    middle.plan.as_mut().unwrap().groups[0].children[0].inherits = true;
    let world = play(
        Plan::burst(1, sessions(1), rng()),
        graph(vec![root, middle, leaf(&[0.0])], 1),
        |conversation| [10, 20, 500][conversation as usize],
    );
    // At equal times the child that has its turn goes first.
    assert_eq!(world.of(0), [0.0, 30.0]);
    assert_eq!(world.of(2), [30.0]);
    let fork = world.sent.iter().find(|sent| sent.conversation == 2).unwrap();
    let middle = world.sent.iter().find(|sent| sent.conversation == 1).unwrap();
    assert!(middle.forked);
    assert_eq!(fork.fork, Some(Fork { parent: middle.session, last: true }));
    let family = fork.family.as_ref().unwrap();
    assert_eq!((family.depth, family.root().depth), (2, 0));
    assert_eq!(family.parent, middle.family);
}

#[test]
fn a_fork_keeps_the_place_of_its_parent_until_it_has_left() {
    // The parent is over when its child starts; nobody may take its key before the child has looked it up.
    let mut root = starting(&[0.0], &[(BranchStart::After(0), &[1], None)]);
    root.plan.as_mut().unwrap().groups[0].children[0].inherits = true;
    let mut data = graph(vec![root, leaf(&[0.0])], 1);
    data.wrap = true;
    let world = play(Plan::burst(1, sessions(3), rng()), data, |_| 10);
    assert_eq!(world.seen().len(), 6);
    for pair in world.sent.windows(2).filter(|pair| pair[1].conversation == 1) {
        assert_ne!(pair[0].session, pair[1].session);
    }
    let forks: Vec<_> = world.sent.iter().filter_map(|sent| sent.fork).collect();
    assert_eq!(forks.len(), 3);
    assert!(forks.iter().all(|fork| fork.last));
}

#[test]
fn relatives_before_the_first_turn_start_first_and_have_no_parent() {
    let root = starting(&[0.0, 0.0], &[(BranchStart::BeforeFirst, &[1], None)]);
    let world =
        play(Plan::burst(1, sessions(1), rng()), graph(vec![root, leaf(&[0.0, 5.0])], 1), |conversation| {
            [10, 100][conversation as usize]
        });
    assert_eq!(world.seen(), [(1, 0, 0.0), (0, 0, 0.0), (0, 1, 10.0), (1, 1, 105.0)]);
    let family = world.sent[0].family.as_ref().unwrap();
    assert_eq!((family.depth, family.parent.is_none()), (1, true));
}

#[test]
fn children_take_no_slot() {
    let root = starting(&[0.0], &[(BranchStart::After(0), &[1, 1, 1], None)]);
    let mut data = graph(vec![root, leaf(&[0.0])], 1);
    data.wrap = true;
    let world =
        play(Plan::burst(1, sessions(3), rng()), data, |conversation| [10, 1000][conversation as usize]);
    assert_eq!(world.of(0), [0.0, 10.0, 20.0]);
    assert_eq!(world.of(1).len(), 9);
}

#[test]
fn an_orchestrator_thinks_before_each_round_and_ends_with_the_last() {
    let group = |turn| BranchGroup {
        start: BranchStart::After(turn),
        children: vec![child(2), child(3)],
        joins: Some(turn + 1),
    };
    let think = ThinkTime { median_ms: 300.0, sigma: 0.0, min_ms: 0.0, max_ms: f64::INFINITY };
    let spine = || Node {
        plan: Some(BranchPlan {
            id: "o".into(),
            groups: vec![group(0), group(1)],
            spine: Some(Spine { think: vec![Some(think); 2] }),
        }),
        ..leaf(&[0.0; 3])
    };
    let world = play(
        Plan::burst(1, sessions(2), rng()),
        graph(vec![spine(), spine(), leaf(&[0.0]), leaf(&[0.0, 50.0])], 2),
        |conversation| [0, 0, 70, 60][conversation as usize],
    );
    // Think 300; 3 at 300, then 60 + 50, back at 470; think 300; back at 940, and the next orchestrator thinks.
    assert_eq!(world.of(2), [300.0, 770.0, 1240.0, 1710.0]);
    assert_eq!(world.of(3), [300.0, 410.0, 770.0, 880.0, 1240.0, 1350.0, 1710.0, 1820.0]);
    assert!(world.sent.iter().filter(|sent| sent.turn == 0).all(|sent| sent.has_ticket));
    let depths: Vec<_> = world.sent.iter().filter_map(|sent| Some(sent.family.as_ref()?.depth)).collect();
    assert_eq!(depths, [1; 8]);
    // Two sessions, and nothing sent by the orchestrators themselves.
    assert_eq!((world.schedule.counts().sessions, world.schedule.counts().issued), (2, 12));
}

#[test]
fn drawn_think_times_are_log_normal_and_follow_the_seed() {
    let think = |seed, bounds: (f64, f64)| {
        let group = |turn| BranchGroup {
            start: BranchStart::After(turn),
            children: vec![child(1)],
            joins: Some(turn + 1),
        };
        let spine = Node {
            plan: Some(BranchPlan {
                id: "o".into(),
                groups: (0..400).map(group).collect(),
                spine: Some(Spine {
                    think: vec![
                        Some(ThinkTime {
                            median_ms: 200.0,
                            sigma: 0.5,
                            min_ms: bounds.0,
                            max_ms: bounds.1
                        });
                        400
                    ],
                }),
            }),
            ..leaf(&[0.0; 401])
        };
        let plan = Plan { think_rng: ChaCha12Rng::seed_from_u64(seed), ..Plan::burst(1, sessions(1), rng()) };
        let sends = play(plan, graph(vec![spine, leaf(&[0.0])], 1), |_| 10).of(1);
        let mut pauses: Vec<f64> = sends.windows(2).map(|pair| pair[1] - pair[0] - 10.0).collect();
        pauses.sort_by(f64::total_cmp);
        pauses
    };
    let pauses = think(1, (0.0, f64::INFINITY));
    assert!((170.0..235.0).contains(&pauses[pauses.len() / 2]), "{}", pauses[pauses.len() / 2]);
    // One deviation above the median is the factor e^0.5.
    let upper = pauses[pauses.len() * 84 / 100];
    assert!((280.0..400.0).contains(&upper), "{upper}");
    assert_eq!(pauses, think(1, (0.0, f64::INFINITY)));
    assert_ne!(pauses, think(2, (0.0, f64::INFINITY)));
    let clamped = think(1, (150.0, 260.0));
    assert!(clamped.iter().all(|pause| (149.9..260.1).contains(pause)));
}

#[test]
fn a_request_count_is_exact_also_where_children_wait() {
    for n in 1..8 {
        let root = starting(&[0.0, 0.0], &[(BranchStart::After(0), &[1], Some(1))]);
        let mut data = graph(vec![root, leaf(&[0.0, 5.0, 5.0])], 1);
        data.wrap = true;
        let stop = StopRule { requests: Some(n), ..StopRule::default() };
        assert_eq!(play(Plan::burst(2, stop, rng()), data, |_| 10).sent.len() as u64, n);
    }
}

#[test]
fn children_that_have_started_finish_when_no_more_sessions_start() {
    let root = starting(&[0.0], &[(BranchStart::After(0), &[1], None)]);
    let nodes = vec![root, leaf(&[0.0, 40.0, 40.0])];
    let world = play(Plan::burst(1, sessions(1), rng()), graph(nodes, 1), |_| 10);
    assert_eq!(world.seen(), [(0, 0, 0.0), (1, 0, 10.0), (1, 1, 60.0), (1, 2, 110.0)]);
    assert_eq!(world.schedule.counts().closed_at, Some(T0.plus(10 * MS)));
}

#[test]
fn the_duration_and_an_early_end_drop_what_children_still_wait_to_send() {
    let nodes = || {
        let root = starting(
            &[0.0, 0.0, 0.0],
            &[(BranchStart::After(0), &[1], Some(1)), (BranchStart::After(1), &[1], None)],
        );
        vec![root, leaf(&[0.0, 40.0, 40.0])]
    };
    let stop = StopRule { duration: Some(Duration::from_millis(65)), ..StopRule::default() };
    let world = play(Plan::burst(1, stop, rng()), graph(nodes(), 1), |_| 10);
    assert_eq!(world.seen(), [(0, 0, 0.0), (1, 0, 10.0), (1, 1, 60.0)]);
    let root = starting(&[0.0], &[(BranchStart::After(0), &[1], None)]);
    let data = graph(vec![root, leaf(&[0.0, 40.0])], 1);
    let world = play_until(Plan::burst(1, sessions(1), rng()), data, |_| 10, Some(55));
    assert_eq!(world.seen(), [(0, 0, 0.0), (1, 0, 10.0)]);
}

#[test]
fn an_interrupt_ends_children_too() {
    let root = starting(&[0.0, 0.0], &[(BranchStart::After(0), &[1], Some(1))]);
    let data = graph(vec![root, leaf(&[0.0, 40.0])], 1);
    let mut schedule = Schedule::new(Plan::burst(1, sessions(1), rng()), data, T0);
    let mut out = Vec::new();
    schedule.poll(T0, &mut out);
    schedule.returned(out[0].session, T0.plus(10 * MS), TurnEnding::Finished);
    schedule.poll(T0.plus(10 * MS), &mut out);
    assert_eq!(out.len(), 2);
    schedule.close(T0.plus(11 * MS));
    schedule.returned(out[1].session, T0.plus(12 * MS), TurnEnding::Finished);
    assert_eq!(schedule.poll(T0.plus(12 * MS), &mut out), Wake::Done);
    assert_eq!(out.len(), 2);
}

#[test]
fn children_and_gated_turns_wait_for_no_arrival() {
    let root = starting(&[0.0, 0.0, 0.0], &[(BranchStart::After(0), &[1], Some(1))]);
    let mut plan = Plan::burst(1, sessions(2), rng()).with_rate(2.0, Arrival::Constant);
    plan.cap = None;
    let mut data = graph(vec![root, leaf(&[0.0, 0.0])], 1);
    data.wrap = true;
    let world = play(plan, data, |_| 20);
    // 500: turn 0; its child at once; turn 1 when it is done; turn 2 takes the next arrival like any other.
    assert_eq!(world.of(0), [500.0, 560.0, 1000.0, 1500.0, 1560.0, 2000.0]);
    assert_eq!(world.of(1), [520.0, 540.0, 1520.0, 1540.0]);
}

#[test]
fn a_child_may_run_for_several_parents_at_once() {
    let root = || starting(&[0.0, 0.0], &[(BranchStart::After(0), &[2], Some(1))]);
    let world = play(
        Plan::burst(2, sessions(2), rng()),
        graph(vec![root(), root(), leaf(&[0.0])], 2),
        |conversation| [10, 20, 30][conversation as usize],
    );
    assert_eq!(world.of(0), [0.0, 40.0]);
    assert_eq!(world.of(1), [0.0, 50.0]);
}

/// Child, turn it starts after, turns later that wait for it, whether it inherits.
type Edge = (usize, u32, Option<u32>, bool);

/// A tree of spawns: node i may start later nodes after any of its turns.
fn tree() -> impl Strategy<Value = Vec<(usize, Vec<Edge>)>> {
    (2_usize..9).prop_flat_map(|count| {
        (0..count)
            .map(|node| {
                let edges = prop::collection::vec(
                    (node + 1..count.max(node + 2), 0_u32..3, prop::option::of(1_u32..3), any::<bool>()),
                    0..3,
                );
                (1_usize..4, edges)
            })
            .collect::<Vec<_>>()
    })
}

proptest! {
    #[test]
    fn every_graph_plays_to_its_end_and_no_gate_opens_early(nodes in tree(), cap in 1_u32..4, runs in 1_u64..4) {
        let count = nodes.len();
        let built: Vec<Node> = nodes
            .iter()
            .map(|(turns, edges)| {
                let last = *turns as u32 - 1;
                let groups: Vec<BranchGroup> = edges
                    .iter()
                    .filter(|(to, ..)| *to < count)
                    .map(|(to, after, joins, inherits)| {
                        let after = (*after).min(last);
                        BranchGroup {
                            start: BranchStart::After(after),
                            children: vec![BranchChild { inherits: *inherits, ..child(*to as u64) }],
                            joins: joins.map(|by| after + by).filter(|turn| *turn <= last),
                        }
                    })
                    .collect();
                let plan = BranchPlan { id: "x".into(), groups, spine: None };
                Node { plan: Some(plan), ..leaf(&vec![1.0; *turns]) }
            })
            .collect();
        // How often each node runs for one run of the root.
        let mut expected = vec![0_u64; count];
        expected[0] = 1;
        for node in 0..count {
            for group in &built[node].plan.as_ref().unwrap().groups {
                for child in &group.children {
                    expected[child.conversation as usize] += expected[node];
                }
            }
        }
        let turns: u64 = expected.iter().zip(&nodes).map(|(runs, (turns, _))| runs * *turns as u64).sum();
        prop_assume!(turns < 2_000);
        let mut data = graph(built, 1);
        data.wrap = true;
        let world = play(Plan::burst(cap, sessions(runs), rng()), data, |conversation| conversation * 7 + 3);
        prop_assert_eq!(world.sent.len() as u64, turns * runs);
        let counts = world.schedule.branch_counts().unwrap();
        prop_assert_eq!(counts.started, counts.finished);
        prop_assert_eq!(counts.waits, counts.resumed);
        // Nobody takes the place of a session that a fork still has to look up.
        let mut last_user = std::collections::HashMap::new();
        for sent in &world.sent {
            if let Some(fork) = sent.fork {
                let parent = sent.family.as_ref().and_then(|family| family.parent.as_ref()).unwrap();
                prop_assert_eq!(last_user.get(&fork.parent), Some(&parent.number));
            }
            if let Some(family) = &sent.family {
                last_user.insert(sent.session, family.number);
            }
        }
    }
}
