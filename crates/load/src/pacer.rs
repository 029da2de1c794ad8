//! Carries the schedule out: asks it what leaves, hands turns to workers, tells it what came back.
//!
//! With one worker the pacer is a task on that worker's thread and no turn crosses a thread; with several it has
//! a thread of its own.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use aiperf_clock::{Mono, nanos, now};
use crossbeam_queue::SegQueue;

use crate::cpu::{CpuMeter, CpuTime};
use crate::prepared::Ticket;
use crate::schedule::{
    BranchCounts, Counts, Issue, Plan, Schedule, SessionKey, SessionSource, TurnEnding, Wake,
};
use crate::underway::Underway;
use crate::wake::{Bell, PreciseTimer};
use crate::worker::{Command, Dispatch, Mailbox, PhaseInfo, Worker};

/// With a core to spare, the last stretch before a send is spent awake: the kernel's wake-up is not that exact.
const SPIN_NS: u64 = 80_000;

/// Turns that leave at once at the most. Then the sockets have their turn: answers to the first of a large burst would
/// otherwise wait, unstamped, until the last one has left.
pub(crate) const AT_ONCE: usize = 32;

/// A turn that came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returned {
    pub(crate) session: SessionKey,
    /// Serial number of its phase.
    pub(crate) phase: u32,
    pub(crate) at: Mono,
    pub(crate) ending: TurnEnding,
    pub(crate) worker: u16,
}

/// What happened, on its way to the pacer.
#[derive(Default)]
pub(crate) struct Inbox {
    returned: SegQueue<Returned>,
    bell: Bell,
}

impl Inbox {
    pub(crate) fn post(&self, event: Returned) {
        self.returned.push(event);
        self.bell.ring();
    }
}

/// Conversations to run, with the means to send them.
pub type Source = Box<dyn SessionSource<Ticket = Ticket> + Send>;

/// Why a phase is to end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// An interrupt.
    Interrupt,
    /// Too many requests failed.
    Threshold,
    /// A bad record was found.
    BadRecord,
}

impl StopCause {
    /// Whether that is what the user wanted: by a signal, or by a limit that they gave. Data that cannot be read
    /// cancel nothing.
    pub fn is_cancellation(self) -> bool {
        matches!(self, StopCause::Interrupt | StopCause::Threshold)
    }
}

/// Steers a run from outside, and shows how far it is. All of it is atomic: anyone may look at any time.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicU8,
    bell: std::sync::OnceLock<Arc<InboxBell>>,
    /// Turns issued in the current phase.
    pub issued: AtomicU64,
    /// Turns back in the current phase.
    pub returned: AtomicU64,
    /// Sessions started in the current phase.
    pub sessions: AtomicU64,
    /// T0 of the current phase, 0 before it.
    pub phase_start: AtomicU64,
    /// Index of the current phase.
    pub phase: AtomicU64,
    /// Issuing has ended; what is in flight may finish.
    pub in_grace: AtomicBool,
    /// How far requests are, before the first is back.
    pub underway: Underway,
}

/// The bell of the pacer, for those who steer.
pub(crate) struct InboxBell(Arc<Inbox>);

impl std::fmt::Debug for InboxBell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InboxBell")
    }
}

impl Control {
    /// A control for one run.
    pub fn new() -> Control {
        Control::default()
    }

    /// Asks the run to stop; the first cause counts.
    pub fn stop(&self, cause: StopCause) {
        let code = match cause {
            StopCause::Interrupt => 1,
            StopCause::Threshold => 2,
            StopCause::BadRecord => 3,
        };
        let _ = self.stop.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        if let Some(bell) = self.bell.get() {
            bell.0.bell.ring();
        }
    }

    /// Why the run was asked to stop, if it was.
    pub fn stopped(&self) -> Option<StopCause> {
        match self.stop.load(Ordering::Acquire) {
            1 => Some(StopCause::Interrupt),
            2 => Some(StopCause::Threshold),
            3 => Some(StopCause::BadRecord),
            _ => None,
        }
    }

    pub(crate) fn attach(&self, inbox: &Arc<Inbox>) {
        let _ = self.bell.set(Arc::new(InboxBell(Arc::clone(inbox))));
    }
}

/// One phase to be paced.
pub(crate) struct PaceJob {
    pub(crate) plan: Plan,
    pub(crate) source: Source,
    pub(crate) phase: Arc<PhaseInfo>,
    /// How long turns in flight may finish after the duration; `None` is for ever.
    pub(crate) grace: Option<Duration>,
    /// How long cut turns may take to come back.
    pub(crate) cancel_drain: Duration,
    pub(crate) duration: Option<Duration>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) control: Arc<Control>,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    /// Connections each worker may hold; all 0 without a limit.
    pub(crate) places: Vec<u32>,
    /// The last microseconds before a send are spent awake.
    pub(crate) spin: bool,
    pub(crate) meter: CpuMeter,
    pub(crate) reply: Sender<Paced>,
}

/// A phase that is over.
pub(crate) struct Paced {
    pub(crate) counts: Counts,
    pub(crate) branches: Option<BranchCounts>,
    pub(crate) t0: Mono,
    pub(crate) end: Mono,
    pub(crate) source: Source,
    /// Why it ended before its time.
    pub(crate) stopped: Option<StopCause>,
    /// CPU time from T0 to the end.
    pub(crate) cpu: CpuTime,
    /// Of it, spent waiting awake, ns.
    pub(crate) spin_ns: u64,
}

/// Where turns go.
enum Lanes {
    /// To the worker of this thread.
    Here(Rc<Worker>),
    /// To other threads, and the connections each may hold.
    There(Vec<Arc<Mailbox>>, Vec<u32>),
}

impl PaceJob {
    /// Paces on the thread of `worker`, which sends every turn itself.
    pub(crate) async fn run_here(self: Box<Self>, worker: Rc<Worker>) {
        self.run(Lanes::Here(worker)).await;
    }

    /// Paces from a thread of its own.
    pub(crate) async fn run_apart(self: Box<Self>) {
        let lanes = Lanes::There(self.mailboxes.clone(), self.places.clone());
        self.run(lanes).await;
    }

    async fn run(self: Box<Self>, lanes: Lanes) {
        let PaceJob {
            plan,
            source,
            phase,
            grace,
            cancel_drain,
            duration,
            inbox,
            control,
            spin,
            meter,
            reply,
            ..
        } = *self;
        let Ok(timer) = PreciseTimer::new() else { return };
        let before = meter.read();
        let t0 = now();
        control.in_grace.store(false, Ordering::Relaxed);
        control.issued.store(0, Ordering::Relaxed);
        control.returned.store(0, Ordering::Relaxed);
        control.sessions.store(0, Ordering::Relaxed);
        control.underway.restart();
        control.phase.store(u64::from(phase.index), Ordering::Relaxed);
        control.phase_start.store(t0.0, Ordering::Release);
        let mut pacer = Pacer {
            schedule: Schedule::new(plan, source, t0),
            router: Router::new(lanes),
            phase,
            cut_at: duration.zip(grace).map(|(duration, grace)| t0.plus(nanos(duration)).plus(nanos(grace))),
            give_up_at: None,
            cancel_drain,
            stopped: None,
            out: Vec::new(),
        };
        let mut spin_ns = 0;
        let end = loop {
            let (wake, at) = pacer.step(&inbox, &control);
            // An interrupt waits for no burst.
            while (pacer.stopped.is_some() || control.stopped().is_none()) && pacer.send_some() {
                tokio::task::yield_now().await;
            }
            let mut until = match wake {
                Wake::Done => break at,
                Wake::At(instant) => Some(instant),
                Wake::OnEvent => None,
            };
            if let Some(give_up) = pacer.give_up_at {
                if at >= give_up {
                    break at;
                }
                until = Some(until.map_or(give_up, |until| until.min(give_up)));
            } else if !pacer.schedule.is_open()
                && let Some(cut) = pacer.cut_at
            {
                until = Some(until.map_or(cut, |until| until.min(cut)));
            }
            let Some(until) = until else {
                inbox.bell.heard().await;
                continue;
            };
            let wake_at = if spin { until.minus(SPIN_NS) } else { until };
            if wake_at > now() {
                tokio::select! {
                    biased;
                    () = inbox.bell.heard() => continue,
                    () = timer.until(wake_at) => {}
                }
            } else {
                // Due already, or soon: let the sockets have their turn first.
                tokio::task::yield_now().await;
            }
            if spin {
                let from = now();
                while now() < until && inbox.returned.is_empty() {
                    std::hint::spin_loop();
                }
                spin_ns += now().saturating_since(from);
            }
        };
        let cpu = meter.read().since(&before);
        let counts = pacer.schedule.counts();
        let branches = pacer.schedule.branch_counts();
        let stopped = pacer.stopped;
        let source = pacer.schedule.into_source();
        // The engine waits for this unless the whole process is going down.
        let _ = reply.send(Paced { counts, branches, t0, end, source, stopped, cpu, spin_ns });
    }
}

struct Pacer {
    schedule: Schedule<Source>,
    router: Router,
    phase: Arc<PhaseInfo>,
    /// When what is still in flight is broken off.
    cut_at: Option<Mono>,
    /// When turns that do not come back are given up.
    give_up_at: Option<Mono>,
    cancel_drain: Duration,
    stopped: Option<StopCause>,
    out: Vec<Issue<Ticket>>,
}

impl Pacer {
    /// Takes in what happened and what is due; when to go on, and the instant it looked at.
    fn step(&mut self, inbox: &Inbox, control: &Control) -> (Wake, Mono) {
        while let Some(event) = inbox.returned.pop() {
            if event.phase != self.phase.serial {
                // Given up by the phase before.
                continue;
            }
            self.router.returned(event);
            self.schedule.returned(event.session, event.at, event.ending);
        }
        let at = now();
        if self.stopped.is_none()
            && let Some(cause) = control.stopped()
        {
            self.stopped = Some(cause);
            self.schedule.close(at);
            for issue in self.out.drain(..) {
                self.schedule.returned(issue.session, at, TurnEnding::NeverSent);
            }
            self.cut(at);
        }
        let mut wake = self.schedule.poll(at, &mut self.out);
        if !self.schedule.is_open() {
            control.in_grace.store(true, Ordering::Relaxed);
            if self.give_up_at.is_none()
                && self.cut_at.is_some_and(|cut| at >= cut)
                && !self.schedule.is_idle()
            {
                // What is cut off must have been handed over.
                while self.send_some() {}
                self.cut(at);
                wake = self.schedule.poll(at, &mut self.out);
            }
        }
        let counts = self.schedule.counts();
        control.issued.store(counts.issued, Ordering::Relaxed);
        control.returned.store(counts.returned, Ordering::Relaxed);
        if counts.returned > 0 {
            control.underway.came_back();
        }
        control.sessions.store(counts.sessions, Ordering::Relaxed);
        (wake, at)
    }

    /// Hands over some of what is to leave, in order; whether there is more.
    fn send_some(&mut self) -> bool {
        let count = self.out.len().min(AT_ONCE);
        for issue in self.out.drain(..count) {
            self.router.send(Dispatch { issue, phase: Arc::clone(&self.phase) });
        }
        !self.out.is_empty()
    }

    fn cut(&mut self, at: Mono) {
        self.schedule.abandon_children();
        self.router.cut_all();
        self.give_up_at = Some(at.plus(nanos(self.cancel_drain)));
    }
}

/// Sends every session to the worker with the fewest turns in flight, and the turns of a session to one worker.
struct Router {
    lanes: Lanes,
    in_flight: Vec<u32>,
    homes: Vec<u16>,
}

impl Router {
    fn new(lanes: Lanes) -> Router {
        let count = match &lanes {
            Lanes::Here(_) => 1,
            Lanes::There(mailboxes, _) => mailboxes.len(),
        };
        Router { lanes, in_flight: vec![0; count], homes: Vec::new() }
    }

    fn send(&mut self, dispatch: Dispatch) {
        match &self.lanes {
            Lanes::Here(worker) => worker.start(dispatch),
            Lanes::There(mailboxes, places) => {
                let key = dispatch.issue.session.0 as usize;
                if self.homes.len() <= key {
                    self.homes.resize(key + 1, 0);
                }
                if let Some(fork) = dispatch.issue.fork {
                    // Its past is where the parent is.
                    self.homes[key] = self.homes.get(fork.parent.0 as usize).copied().unwrap_or(0);
                } else if dispatch.issue.turn == 0 {
                    // Shares of a limit differ by one: the larger one takes one turn more.
                    let load =
                        |worker: &usize| i64::from(self.in_flight[*worker]) - i64::from(places[*worker]);
                    let least = (0..self.in_flight.len()).min_by_key(load).unwrap_or(0);
                    self.homes[key] = least as u16;
                }
                let home = usize::from(self.homes[key]);
                self.in_flight[home] += 1;
                mailboxes[home].post(Command::Send(dispatch));
            }
        }
    }

    fn returned(&mut self, event: Returned) {
        if let Lanes::There(..) = self.lanes {
            self.in_flight[usize::from(event.worker)] -= 1;
        }
    }

    fn cut_all(&self) {
        match &self.lanes {
            Lanes::Here(worker) => worker.cut_all(),
            Lanes::There(mailboxes, _) => mailboxes.iter().for_each(|mailbox| mailbox.post(Command::CutAll)),
        }
    }
}
