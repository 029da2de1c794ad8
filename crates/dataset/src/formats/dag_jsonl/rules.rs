//! What must hold of a graph as a whole, and what becomes of it.

use std::collections::HashMap;
use std::sync::Arc;

use aiperf_types::{BranchChild, BranchGroup, BranchPlan, BranchStart, ContextMode, Spine};

use super::record::{Record, in_turn, within_session};
use crate::graph::Node;
use crate::json::{self, Fault};
use crate::{Outline, TurnOutline};

/// An edge of the graph.
struct Edge<'a> {
    child: &'a str,
    forks: bool,
    /// The turn it starts after; none for what starts before the first turn or without one.
    turn: Option<u32>,
    before: bool,
}

fn edges(record: &Record) -> impl Iterator<Item = Edge<'_>> {
    let of_turns = record.turns.iter().zip(0..).flat_map(|(turn, number)| {
        let forks = turn.forks.iter().map(move |fork| Edge {
            child: &fork.child,
            forks: true,
            turn: Some(number),
            before: false,
        });
        let spawns = turn.spawns.iter().flat_map(|group| &group.children).map(move |child| Edge {
            child,
            forks: false,
            turn: Some(number),
            before: false,
        });
        forks.chain(spawns)
    });
    let before = record.before.iter().map(|child| Edge { child, forks: false, turn: None, before: true });
    let rounds = record
        .orchestrator
        .iter()
        .flat_map(|orchestrator| &orchestrator.rounds)
        .flat_map(|round| &round.children)
        .map(|child| Edge { child, forks: false, turn: None, before: false });
    of_turns.chain(before).chain(rounds)
}

/// A rule that a record breaks: its number and what is wrong.
pub(super) type Broken = (usize, Fault);

/// Checks records against each other; which of them are drawn, in order.
pub(super) fn check(records: &[Record], taken: &[usize]) -> Result<Vec<usize>, Broken> {
    let by_id: HashMap<&str, usize> = taken.iter().map(|at| (records[*at].id.as_str(), *at)).collect();
    let broken = |at: usize, edge: &Edge<'_>, rule: String| -> Broken {
        let key = if edge.before {
            "pre_session_spawns"
        } else if edge.forks {
            "forks"
        } else {
            "spawns"
        };
        let fault = Fault::new(key, rule);
        let fault = edge.turn.map_or(fault.clone(), |turn| in_turn(fault, turn));
        (at, within_session::<()>(&records[at].id, || Err(fault)).err().unwrap_or_else(|| Fault::new("", "")))
    };
    let mut referenced = vec![false; records.len()];
    let mut fork_parent: HashMap<usize, usize> = HashMap::new();
    for &at in taken {
        for edge in edges(&records[at]) {
            let name = json::excerpt(edge.child);
            let Some(&child) = by_id.get(edge.child) else {
                return Err(broken(at, &edge, format!("no conversation has the session_id `{name}`")));
            };
            referenced[child] = true;
            if !edge.forks {
                continue;
            }
            if let Some(other) = fork_parent.insert(child, at) {
                let rule = format!(
                    "`{name}` is forked by session `{}` already; a child goes on from one parent only",
                    json::excerpt(&records[other].id)
                );
                return Err(broken(at, &edge, rule));
            }
            if records[at].mode != ContextMode::DeltasWithoutResponses {
                let rule = format!(
                    "`{name}` would go on from what its parent heard, and the context_mode of the parent keeps no \
                     answers; use `spawns`, or deltas_without_responses"
                );
                return Err(broken(at, &edge, rule));
            }
            if records[child].mode == ContextMode::MessageArrayWithResponses {
                let rule = format!(
                    "`{name}` has the context_mode message_array_with_responses, which takes nothing over from a parent; \
                     use `spawns`"
                );
                return Err(broken(at, &edge, rule));
            }
            if records[child].orchestrator.is_some() {
                let rule = format!("`{name}` is an orchestrator, which says nothing; use `spawns`");
                return Err(broken(at, &edge, rule));
            }
        }
    }
    for &at in taken {
        let Some(edge) = edges(&records[at]).find(|edge| edge.before) else { continue };
        if referenced[at] {
            let rule = "goes with a conversation that no other starts".to_owned();
            return Err(broken(at, &edge, rule));
        }
        let forked = edges(&records[at])
            .filter(|edge| edge.before)
            .find(|edge| by_id.get(edge.child).is_some_and(|child| fork_parent.contains_key(child)));
        if let Some(edge) = forked {
            let rule = format!("`{}` is a fork of another conversation", json::excerpt(edge.child));
            return Err(broken(at, &edge, rule));
        }
    }
    acyclic(records, taken, &by_id).map_err(|(at, child)| {
        let edge = edges(&records[at]).find(|edge| edge.child == records[child].id);
        let rule = format!("`{}` would start itself: a cycle", json::excerpt(&records[child].id));
        match edge {
            Some(edge) => broken(at, &edge, rule),
            None => (at, Fault::new("", rule)),
        }
    })?;
    for &at in taken {
        systems(&records[at], !referenced[at]).map_err(|fault| (at, fault))?;
    }
    Ok(taken.iter().copied().filter(|at| !referenced[*at]).collect())
}

/// Finds an edge that closes a cycle: parent, child.
fn acyclic(records: &[Record], taken: &[usize], by_id: &HashMap<&str, usize>) -> Result<(), (usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut state = vec![State::New; records.len()];
    for &start in taken {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let children = |at: usize| {
            edges(&records[at]).filter_map(|edge| by_id.get(edge.child).copied()).collect::<Vec<_>>()
        };
        let mut path = vec![(start, children(start).into_iter())];
        while let Some((at, rest)) = path.last_mut() {
            match rest.next() {
                None => {
                    state[*at] = State::Done;
                    path.pop();
                }
                Some(child) => match state[child] {
                    State::Done => {}
                    State::Open => return Err((*at, child)),
                    State::New => {
                        state[child] = State::Open;
                        path.push((child, children(child).into_iter()));
                    }
                },
            }
        }
    }
    Ok(())
}

/// A system message opens a drawn conversation, or a turn that stands alone; elsewhere it would land in the middle.
fn systems(record: &Record, drawn: bool) -> Result<(), Fault> {
    let alone = record.mode == ContextMode::MessageArrayWithResponses;
    for (turn, number) in record.turns.iter().zip(0..) {
        let allowed = alone || drawn && number == 0;
        let misplaced = match turn.system_at {
            None => false,
            Some(0) => !allowed || turn.system_again,
            Some(_) => true,
        };
        if misplaced {
            let rule = "a `system` message may only be the first message of the first turn of a conversation that no \
                        other starts, or of a turn that stands alone (message_array_with_responses)";
            return within_session(&record.id, || Err(in_turn(Fault::new("messages", rule), number)));
        }
    }
    Ok(())
}

/// The node of a checked record; `place` says where each conversation is in the dataset.
pub(super) fn node(record: &Record, drawn: bool, place: &HashMap<&str, u64>) -> Node {
    let child = |name: &str, inherits| BranchChild {
        // Invariant: `check` found every child.
        conversation: place.get(name).copied().unwrap_or(0),
        inherits,
        offset_ms: 0.0,
    };
    let group = |start, children: &[String], joins| BranchGroup {
        start,
        children: children.iter().map(|name| child(name, false)).collect(),
        joins,
    };
    let id: Arc<str> = record.id.as_str().into();
    if let Some(orchestrator) = &record.orchestrator {
        // What is drawn holds its place until its children are done, or a closed loop would start without end.
        let waits = drawn || !orchestrator.once;
        let rounds = orchestrator.rounds.iter().zip(0..);
        let groups = rounds
            .map(|(round, turn)| group(BranchStart::After(turn), &round.children, waits.then_some(turn + 1)))
            .collect();
        let think = orchestrator.rounds.iter().map(|round| round.think).collect();
        let turns = orchestrator.rounds.len() + usize::from(waits);
        let rest = vec![TurnOutline::default(); turns - 1];
        let plan = BranchPlan { id, groups, spine: Some(Spine { think }) };
        return Node { outline: Outline::new(TurnOutline::default(), rest), branches: Some(Arc::new(plan)) };
    }
    let mut groups = Vec::new();
    if !record.before.is_empty() {
        groups.push(group(BranchStart::BeforeFirst, &record.before, None));
    }
    for (turn, number) in record.turns.iter().zip(0..) {
        let start = BranchStart::After(number);
        groups.extend(turn.spawns.iter().map(|spawn| group(start, &spawn.children, spawn.joins)));
        groups.extend(turn.forks.iter().map(|fork| BranchGroup {
            start,
            children: vec![child(&fork.child, true)],
            joins: None,
        }));
    }
    let mut times = record
        .turns
        .iter()
        .map(|turn| TurnOutline { timestamp_ms: None, delay_ms: Some(turn.delay_ms).filter(|ms| *ms > 0.0) });
    let first = times.next().unwrap_or_default();
    let plan = BranchPlan { id, groups, spine: None };
    Node {
        outline: Outline::new(first, times.collect::<Vec<_>>()),
        branches: (!plan.groups.is_empty()).then(|| Arc::new(plan)),
    }
}
