//! Conversations that start others. A child takes no session slot, waits for no arrival, and finishes what it has
//! begun when no more sessions are to start; a turn that waits for children leaves when the last of them has
//! finished and its own time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use aiperf_clock::Mono;
use aiperf_types::{BranchPlan, BranchStart, PlanInstants, ThinkTime};
use rand::RngExt as _;
use rand_chacha::ChaCha12Rng;

use super::machine::{Schedule, Session, ms_to_ns};
use super::{Child, Fork, Issue, SessionKey, SessionSource};

/// A run of a conversation, and the run that started it.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Number of this run among those with relatives, from 0 in each phase.
    pub number: u64,
    /// Runs above this one.
    pub depth: u32,
    /// Turns of the conversation.
    pub turns: u32,
    /// Session id of a conversation that was drawn; children have none.
    pub drawn: Option<Arc<str>>,
    /// The run that started it.
    pub parent: Option<Arc<Family>>,
}

impl Family {
    /// The first of the line.
    pub fn root(&self) -> &Family {
        let mut family = self;
        while let Some(parent) = &family.parent {
            family = parent;
        }
        family
    }
}

/// What became of children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchCounts {
    /// Children started.
    pub started: u64,
    /// Children that sent their last turn and had it back.
    pub finished: u64,
    /// Children that started later than their parent allowed it, by their own offset.
    pub delayed: u64,
    /// Turns that had to wait for children.
    pub waits: u64,
    /// Of these, turns whose children all finished.
    pub resumed: u64,
}

/// Relatives of a session.
pub(super) struct Kin<T> {
    family: Arc<Family>,
    is_child: bool,
    plan: Option<Arc<BranchPlan>>,
    /// The turn of the parent that waits for this session.
    waiter: Option<Waiter>,
    ticket: Option<T>,
    fork: Option<Fork>,
    /// Children of the turn in flight, made ready ahead of their start, in the order of the plan.
    ahead: Vec<Option<Child<T>>>,
    /// Turns and how many children each still waits for.
    waits: Vec<(u32, u32)>,
    /// When the next turn would be ready but for its children.
    held: Option<Mono>,
}

#[derive(Clone, Copy)]
struct Waiter {
    parent: SessionKey,
    /// The parent may be gone and its key in other hands.
    number: u64,
    turn: u32,
}

/// What the machine keeps once there is a conversation with relatives.
pub(super) struct Branches {
    /// Turns that leave by themselves: (ready instant, order, session).
    ready: BinaryHeap<Reverse<(Mono, u64, SessionKey)>>,
    families: u64,
    counts: BranchCounts,
    abandoned: bool,
    think_rng: ChaCha12Rng,
}

impl Branches {
    pub(super) fn new(think_rng: ChaCha12Rng) -> Branches {
        Branches {
            ready: BinaryHeap::new(),
            families: 0,
            counts: BranchCounts::default(),
            abandoned: false,
            think_rng,
        }
    }

    /// When the next turn leaves by itself.
    pub(super) fn next_ready(&self) -> Option<Mono> {
        self.ready.peek().map(|Reverse((ready, ..))| *ready)
    }

    fn pop(&mut self, by: Mono) -> Option<(Mono, SessionKey)> {
        let &Reverse((ready, _, key)) = self.ready.peek()?;
        (ready <= by).then(|| {
            self.ready.pop();
            (ready, key)
        })
    }
}

impl<S: SessionSource> Schedule<S> {
    /// What became of children; `None` when no conversation had any.
    pub fn branch_counts(&self) -> Option<BranchCounts> {
        self.branches.as_ref().map(|branches| branches.counts)
    }

    /// Drops every turn of a child that has not left.
    pub fn abandon_children(&mut self) {
        if let Some(branches) = &mut self.branches {
            branches.ready.clear();
            branches.abandoned = true;
        }
    }

    /// Drops turns that waited for children: issuing has ended, and they are not children themselves.
    pub(super) fn keep_children_only(&mut self) {
        let Some(branches) = &mut self.branches else { return };
        let sessions = &self.sessions;
        branches.ready.retain(|Reverse((_, _, key))| kin_of(sessions, *key).is_some_and(|kin| kin.is_child));
    }

    /// Starts a drawn conversation that has children.
    pub(super) fn start_root(
        &mut self,
        key: SessionKey,
        plan: Arc<BranchPlan>,
        instants: PlanInstants,
        ticket: S::Ticket,
        out: &mut Vec<Issue<S::Ticket>>,
    ) {
        let turns = self.sessions.get(key.0 as usize).and_then(Option::as_ref).map_or(0, |root| root.turns);
        let family = self.new_family(0, turns, Some(Arc::clone(&plan.id)), None);
        let think = plan.spine.is_some().then(|| think_before(Some(&plan), 0));
        if let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) {
            session.kin = Some(Box::new(Kin::new(family, false, Some(plan))));
        }
        self.spawn(key, BranchStart::BeforeFirst, instants.issued);
        // Relatives that come before the first turn are sent before it.
        self.poll_branches(instants.issued, out);
        match think {
            None => self.issue(key, instants, Some(ticket), out),
            Some(think) => match self.think(think) {
                0 => self.step_spine(key, instants.issued),
                pause => self.queue_relative(instants.issued.plus(pause), key),
            },
        }
    }

    fn new_family(
        &mut self,
        depth: u32,
        turns: u32,
        drawn: Option<Arc<str>>,
        parent: Option<Arc<Family>>,
    ) -> Arc<Family> {
        let branches = self.branches_mut();
        branches.families += 1;
        Arc::new(Family { number: branches.families - 1, depth, turns, drawn, parent })
    }

    /// Fills in what a relative's turn tells the sender, and has the children ready that start after it.
    pub(super) fn relative_issued(&mut self, issue: &mut Issue<S::Ticket>) {
        let key = issue.session;
        let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else { return };
        let run = session.run;
        let Some(kin) = &mut session.kin else { return };
        if issue.turn == 0 {
            issue.family = Some(Arc::clone(&kin.family));
            issue.fork = kin.fork.take();
            if let Some(Fork { parent, last: true }) = issue.fork {
                self.free_keys.push(parent.0);
            }
        }
        let Some(plan) = &kin.plan else { return };
        issue.forked = plan.forks_after(issue.turn);
        for child in plan.starting(BranchStart::After(issue.turn)).flat_map(|group| &group.children) {
            kin.ahead.push(self.source.child(child.conversation, child.inherits, run));
        }
    }

    /// A turn of a session with relatives came back.
    pub(super) fn relative_returned(&mut self, key: SessionKey, at: Mono) {
        let Some(session) = self.sessions.get(key.0 as usize).and_then(Option::as_ref) else { return };
        let turn = session.next.saturating_sub(1);
        let is_child = session.kin.as_ref().is_some_and(|kin| kin.is_child);
        let goes_on = !self.blocked(at) && if is_child { !self.abandoned() } else { self.open };
        if goes_on {
            self.spawn(key, BranchStart::After(turn), at);
            self.advance(key, at);
        } else {
            self.end_relative(key, at);
        }
    }

    /// Goes on with a session whose last turn is over, or ends it.
    fn advance(&mut self, key: SessionKey, at: Mono) {
        let Some(session) = self.sessions.get(key.0 as usize).and_then(Option::as_ref) else { return };
        let (next, turns) = (session.next, session.turns);
        let Some(kin) = &session.kin else { return };
        if next >= turns {
            return self.end_relative(key, at);
        }
        let is_child = kin.is_child;
        let spine = kin.is_spine().then(|| think_before(kin.plan.as_deref(), next));
        let waits = kin.waits.iter().any(|(turn, left)| *turn == next && *left > 0);
        let ready = if spine.is_some() { at } else { self.next_ready(key, at) };
        if waits {
            self.branches_mut().counts.waits += 1;
            if let Some(kin) = kin_mut(&mut self.sessions, key) {
                kin.held = Some(ready);
            }
        } else if let Some(think) = spine {
            let think = self.think(think);
            self.queue_relative(at.plus(think), key);
        } else if is_child {
            self.queue_relative(ready, key);
        } else {
            self.queue_continuation(ready, key);
        }
    }

    /// Starts the children of a session that start at `start`.
    fn spawn(&mut self, key: SessionKey, start: BranchStart, at: Mono) {
        let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else { return };
        let (last_turn, run) = (session.next >= session.turns, session.run);
        let Some(kin) = &mut session.kin else { return };
        let Some(plan) = kin.plan.clone() else { return };
        let mut ahead = std::mem::take(&mut kin.ahead).into_iter();
        let (family, mut waits) = (Arc::clone(&kin.family), Vec::new());
        // A relative that comes before the first turn has no parent.
        let parent = matches!(start, BranchStart::After(_)).then(|| Arc::clone(&family));
        let mut last_fork = None;
        for group in plan.starting(start) {
            let mut started = 0;
            for child in &group.children {
                let made = match ahead.next() {
                    Some(made) => made,
                    None => self.source.child(child.conversation, child.inherits, run),
                };
                let Some(Child { turns, ticket }) = made else { continue };
                let branches = self.source.branches(child.conversation);
                let mut kin =
                    Kin::new(self.new_family(family.depth + 1, turns, None, parent.clone()), true, branches);
                kin.waiter = group.joins.map(|turn| Waiter { parent: key, number: family.number, turn });
                kin.ticket = ticket;
                kin.fork = child.inherits.then_some(Fork { parent: key, last: false });
                let child_key = self.enter(Session {
                    conversation: child.conversation,
                    turns,
                    run,
                    next: 0,
                    ticket: None,
                    kin: Some(Box::new(kin)),
                });
                if child.inherits {
                    last_fork = Some(child_key);
                }
                let offset = ms_to_ns(child.offset_ms);
                let counts = &mut self.branches_mut().counts;
                counts.started += 1;
                counts.delayed += u64::from(offset > 0);
                self.queue_relative(at.plus(offset), child_key);
                started += 1;
            }
            waits.extend(group.joins.filter(|_| started > 0).map(|turn| (turn, started)));
        }
        if let Some(fork) = last_fork.filter(|_| last_turn)
            && let Some(kin) = kin_mut(&mut self.sessions, fork)
        {
            kin.fork = Some(Fork { parent: key, last: true });
        }
        if let Some(kin) = kin_mut(&mut self.sessions, key) {
            kin.waits.append(&mut waits);
        }
    }

    fn end_relative(&mut self, key: SessionKey, at: Mono) {
        let Some(kin) = kin_of(&self.sessions, key) else { return };
        let (is_child, waiter) = (kin.is_child, kin.waiter);
        // The key of a session that a fork still has to look up is free when the fork has left.
        let turns =
            self.sessions.get(key.0 as usize).and_then(Option::as_ref).map_or(0, |session| session.turns);
        let forked = kin.plan.as_ref().is_some_and(|plan| turns > 0 && plan.forks_after(turns - 1));
        if is_child {
            self.sessions[key.0 as usize] = None;
            self.branches_mut().counts.finished += u64::from(!self.abandoned());
        } else {
            self.end_session(key, at);
        }
        if !forked {
            self.free_keys.push(key.0);
        }
        if let Some(waiter) = waiter {
            self.child_finished(waiter, at);
        }
    }

    fn child_finished(&mut self, waiter: Waiter, at: Mono) {
        let Some(session) = self.sessions.get_mut(waiter.parent.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let next = session.next;
        let Some(kin) = session.kin.as_mut().filter(|kin| kin.family.number == waiter.number) else { return };
        let Some(place) = kin.waits.iter().position(|(turn, left)| *turn == waiter.turn && *left > 0) else {
            return;
        };
        kin.waits[place].1 -= 1;
        let left = kin.waits.iter().any(|(turn, left)| *turn == next && *left > 0);
        if waiter.turn != next || left {
            return;
        }
        let Some(held) = kin.held.take() else { return };
        let spine = kin.is_spine().then(|| think_before(kin.plan.as_deref(), next));
        if !kin.is_child && !self.open {
            return;
        }
        self.branches_mut().counts.resumed += 1;
        let ready = match spine {
            None => held.max(at),
            Some(think) => {
                let think = self.think(think);
                at.plus(think)
            }
        };
        self.queue_relative(ready, waiter.parent);
    }

    /// Sends what leaves by itself by `now`.
    pub(super) fn poll_branches(&mut self, now: Mono, out: &mut Vec<Issue<S::Ticket>>) {
        loop {
            if self.blocked(now) {
                return self.abandon_children();
            }
            let Some((ready, key)) = self.branches.as_mut().and_then(|branches| branches.pop(now)) else {
                return;
            };
            let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else {
                continue;
            };
            let first = session.next == 0;
            let Some(kin) = &mut session.kin else { continue };
            let ticket = kin.ticket.take();
            let spine = kin.is_spine();
            if !kin.is_child && !self.open {
                continue;
            }
            if spine {
                self.step_spine(key, ready);
                continue;
            }
            // A child starts when its parent has come so far, not at a time of its own.
            let scheduled = if first { None } else { self.recorded(key) };
            let plan =
                PlanInstants { scheduled, due: ready, let_go: ready, issued: now, initial_fill: false };
            self.issue(key, plan, ticket, out);
        }
    }

    /// A turn without a request: it is over as soon as it begins.
    fn step_spine(&mut self, key: SessionKey, at: Mono) {
        let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else { return };
        let turn = session.next;
        session.next += 1;
        self.spawn(key, BranchStart::After(turn), at);
        self.advance(key, at);
    }

    fn queue_relative(&mut self, ready: Mono, key: SessionKey) {
        self.order += 1;
        let order = self.order;
        let branches = self.branches_mut();
        if !branches.abandoned {
            branches.ready.push(Reverse((ready, order, key)));
        }
    }

    fn abandoned(&self) -> bool {
        self.branches.as_ref().is_some_and(|branches| branches.abandoned)
    }

    /// A pause, ns.
    fn think(&mut self, think: Option<ThinkTime>) -> u64 {
        let Some(ThinkTime { median_ms, sigma, min_ms, max_ms }) = think else { return 0 };
        let rng = &mut self.branches_mut().think_rng;
        let drawn = if sigma > 0.0 {
            // Box and Muller; the second value is not kept.
            let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
            median_ms * (sigma * normal).exp()
        } else {
            median_ms
        };
        ms_to_ns(drawn.max(min_ms).min(max_ms))
    }
}

/// The pause before turn `turn` of a conversation without requests.
fn think_before(plan: Option<&BranchPlan>, turn: u32) -> Option<ThinkTime> {
    plan?.spine.as_ref()?.think.get(turn as usize).copied().flatten()
}

impl<T> Kin<T> {
    fn is_spine(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.spine.is_some())
    }

    fn new(family: Arc<Family>, is_child: bool, plan: Option<Arc<BranchPlan>>) -> Kin<T> {
        Kin {
            family,
            is_child,
            plan,
            waiter: None,
            ticket: None,
            fork: None,
            ahead: Vec::new(),
            waits: Vec::new(),
            held: None,
        }
    }
}

fn kin_of<T>(sessions: &[Option<Session<T>>], key: SessionKey) -> Option<&Kin<T>> {
    sessions.get(key.0 as usize)?.as_ref()?.kin.as_deref()
}

fn kin_mut<T>(sessions: &mut [Option<Session<T>>], key: SessionKey) -> Option<&mut Kin<T>> {
    sessions.get_mut(key.0 as usize)?.as_mut()?.kin.as_deref_mut()
}
