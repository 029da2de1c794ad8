//! A network worker: one thread, one runtime, its own connections and sessions. Nothing here is shared with
//! another worker, so nothing here is locked.

mod gather;
pub(crate) mod ids;
mod turn;
mod wire;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aiperf_clock::{Mono, nanos, now};
use aiperf_endpoint::History;
use aiperf_types::{Lineage, PhaseKind};
use crossbeam_queue::SegQueue;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::delivery::Tally;
use crate::outcome::Exchange;
use crate::pacer::{AT_ONCE, Control, Inbox, PaceJob};
use crate::prepared::{Prepared, Ticket};
use crate::schedule::{Fork, Issue, SessionKey};
use crate::settings::Settings;
use crate::transport::pool::Pool;
use crate::wake::{Bell, PreciseTimer};

/// Bytes read at once.
const SCRATCH: usize = 64 * 1024;
/// How often a worker checks how late it is to its descriptors.
const HEARTBEAT: Duration = Duration::from_millis(5);
/// A worker later than this delays what it stamps.
const LATE: Duration = Duration::from_millis(5);

/// Takes finished exchanges. Called on network threads: it must not block.
pub trait ExchangeSink: Send + Sync {
    /// Takes one.
    fn accept(&self, exchange: Exchange);
}

/// What all turns of a phase share.
#[derive(Debug)]
pub(crate) struct PhaseInfo {
    /// Number of the phase in the life of the engine: a turn given up in one phase may still come back in the next.
    pub(crate) serial: u32,
    pub(crate) kind: PhaseKind,
    pub(crate) index: u16,
    /// From the last byte sent to the close, for turns that are to be broken off.
    pub(crate) cancel_delay: Duration,
    /// Correlation ids are `fixed-schedule-<conversation id>`.
    pub(crate) fixed_schedule: bool,
    /// What the correlation ids of conversations with relatives are made from.
    pub(crate) family_key: [u8; 32],
}

/// A turn on its way to a worker.
pub(crate) struct Dispatch {
    pub(crate) issue: Issue<Ticket>,
    pub(crate) phase: Arc<PhaseInfo>,
}

/// What a worker is told.
pub(crate) enum Command {
    /// Send this turn.
    Send(Dispatch),
    /// Break off everything in flight.
    CutAll,
    /// Run the pacer here.
    Pace(Box<PaceJob>),
    /// Hand over the tally of the phase.
    Report(std::sync::mpsc::Sender<Tally>),
    /// End.
    Stop,
}

/// The way in to a worker.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub(crate) commands: SegQueue<Command>,
    pub(crate) bell: Bell,
}

impl Mailbox {
    pub(crate) fn post(&self, command: Command) {
        self.commands.push(command);
        self.bell.ring();
    }
}

/// A live session on its worker.
struct Session {
    prepared: RefCell<Option<Arc<Prepared>>>,
    correlation_id: RefCell<Arc<str>>,
    lineage: RefCell<Option<Arc<Lineage>>>,
    history: RefCell<History>,
}

/// The worker.
pub(crate) struct Worker {
    index: u16,
    settings: Arc<Settings>,
    sink: Arc<dyn ExchangeSink>,
    inbox: Arc<Inbox>,
    control: Arc<Control>,
    pool: RefCell<Pool>,
    /// One for each connection this worker may hold, where they are limited. An exchange has one while it lasts; idle
    /// connections are used before new ones are made, so that there are never more than there are places.
    places: Option<Semaphore>,
    scratch: RefCell<Box<[u8]>>,
    sessions: RefCell<Vec<Option<Rc<Session>>>>,
    tasks: RefCell<Tasks>,
    tally: RefCell<Tally>,
    ids: RefCell<ids::Ids>,
    /// Head buffers that are free for use.
    heads: RefCell<Vec<Vec<u8>>>,
    /// When the worker last found itself late.
    last_late: Cell<Mono>,
    /// When it will next look how late it is.
    next_look: Cell<Mono>,
    dial_failures: Cell<u32>,
}

/// Handles of the turns in flight, for breaking them off.
#[derive(Default)]
struct Tasks {
    handles: Vec<Option<AbortHandle>>,
    free: Vec<usize>,
}

impl Tasks {
    fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.handles.push(None);
            self.handles.len() - 1
        })
    }
}

impl Worker {
    pub(crate) fn new(
        index: u16,
        settings: Arc<Settings>,
        places: Option<u32>,
        sink: Arc<dyn ExchangeSink>,
        inbox: Arc<Inbox>,
        control: Arc<Control>,
    ) -> Worker {
        let keep_alive = nanos(settings.keep_alive);
        Worker {
            index,
            settings,
            sink,
            inbox,
            control,
            pool: RefCell::new(Pool::new(keep_alive)),
            places: places.map(|places| Semaphore::new(places as usize)),
            scratch: RefCell::new(vec![0; SCRATCH].into_boxed_slice()),
            sessions: RefCell::new(Vec::new()),
            tasks: RefCell::new(Tasks::default()),
            tally: RefCell::new(Tally::default()),
            ids: RefCell::new(ids::Ids::new()),
            heads: RefCell::new(Vec::new()),
            last_late: Cell::new(Mono::default()),
            next_look: Cell::new(Mono(u64::MAX)),
            dial_failures: Cell::new(0),
        }
    }

    /// Starts a turn.
    pub(crate) fn start(self: &Rc<Self>, dispatch: Dispatch) {
        let session = self.session(dispatch.issue.session, dispatch.issue.turn == 0);
        if let Some(fork) = dispatch.issue.fork {
            self.inherit(fork, &session);
        }
        let slot = self.tasks.borrow_mut().reserve();
        let guard = turn::ReturnGuard::new(Rc::clone(self), &dispatch, slot);
        let handle =
            tokio::task::spawn_local(turn::run(Rc::clone(self), session, dispatch, guard)).abort_handle();
        self.tasks.borrow_mut().handles[slot] = Some(handle);
    }

    /// The entry of a session; a fresh one for a first turn.
    fn session(&self, key: SessionKey, fresh: bool) -> Rc<Session> {
        let mut sessions = self.sessions.borrow_mut();
        let at = key.0 as usize;
        if sessions.len() <= at {
            sessions.resize_with(at + 1, || None);
        }
        if fresh || sessions[at].is_none() {
            sessions[at] = Some(Rc::new(Session {
                prepared: RefCell::new(None),
                correlation_id: RefCell::new(Arc::from("")),
                lineage: RefCell::new(None),
                history: RefCell::new(History::default()),
            }));
        }
        // Invariant: filled in above when it was empty.
        sessions[at].as_ref().map_or_else(|| unreachable!("the entry was just made"), Rc::clone)
    }

    /// A session goes on from what another has said and heard.
    fn inherit(&self, fork: Fork, session: &Session) {
        let parent = self.sessions.borrow().get(fork.parent.0 as usize).cloned().flatten();
        if let Some(parent) = parent {
            session.history.replace(parent.history.borrow().clone());
        }
        if fork.last {
            self.forget(fork.parent);
        }
    }

    /// A session is over or will not go on.
    fn forget(&self, key: SessionKey) {
        if let Some(entry) = self.sessions.borrow_mut().get_mut(key.0 as usize) {
            *entry = None;
        }
    }

    /// Breaks off everything in flight.
    pub(crate) fn cut_all(&self) {
        let handles: Vec<_> = self.tasks.borrow_mut().handles.iter_mut().filter_map(Option::take).collect();
        handles.iter().for_each(AbortHandle::abort);
    }

    /// Whether the worker was late to its descriptors at some time between `start` and `end`, which is now. A look
    /// that is itself overdue says so before it is taken: what was late is dealt with in any order.
    fn was_late(&self, start: Mono, end: Mono) -> bool {
        self.last_late.get() >= start || end.saturating_since(self.next_look.get()) > nanos(LATE)
    }

    /// Measures, again and again, how late this thread is to a descriptor that is ready.
    async fn heartbeat(self: Rc<Self>) {
        let Ok(timer) = PreciseTimer::new() else { return };
        let period = nanos(HEARTBEAT);
        let mut due = now().plus(period);
        timer.every(due, period);
        loop {
            self.next_look.set(due);
            timer.expired().await;
            let at = now();
            let late = at.saturating_since(due);
            self.tally.borrow_mut().loop_delay.record(late);
            if late > nanos(LATE) {
                self.last_late.set(at);
            }
            due = due.plus((late / period + 1) * period);
        }
    }

    /// Serves commands until told to stop.
    pub(crate) async fn run(self: Rc<Self>, mailbox: Arc<Mailbox>) {
        let heartbeat = tokio::task::spawn_local(Rc::clone(&self).heartbeat());
        let mut sent = 0;
        loop {
            while let Some(command) = mailbox.commands.pop() {
                match command {
                    Command::Send(dispatch) => {
                        self.start(dispatch);
                        sent += 1;
                        if sent % AT_ONCE == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    Command::CutAll => self.cut_all(),
                    Command::Pace(job) => {
                        tokio::task::spawn_local(job.run_here(Rc::clone(&self)));
                    }
                    Command::Report(to) => {
                        // Nobody waits for the tally only when the run is being torn down.
                        let _ = to.send(self.tally.take());
                        self.sessions.borrow_mut().clear();
                    }
                    Command::Stop => {
                        heartbeat.abort();
                        self.cut_all();
                        return;
                    }
                }
            }
            mailbox.bell.heard().await;
        }
    }
}
