//! A network thread: one poll, its connections and their deadlines.
//!
//! Deadlines are kept in a heap and one timerfd is armed with the earliest, absolute and in nanoseconds: timeouts
//! of a poll would round up to milliseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use aiperf_clock::{Mono, now};
use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Resource, getrlimit};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::answer::Answer;
use crate::connection::Connection;
use crate::count::Counting;
use crate::log::LogSender;
use crate::scan::Facts;
use crate::serve::Fate;
use crate::shared::{Inbox, Message, Shared};

const LISTENER: u64 = u64::MAX;
const INBOX: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
/// Connections accepted before other work gets its turn.
const ACCEPTS_IN_A_ROW: usize = 32;
/// How long accepting rests when the process has no descriptor left.
const ACCEPT_PAUSE_NS: u64 = 50_000_000;
const SCRATCH: usize = 256 * 1024;

/// A deadline of the request that has `serial` in `slot`.
pub(crate) type Deadline = Reverse<(Mono, u32, u32)>;

/// What a network thread is given beside what all share.
pub(crate) struct Equipment {
    /// The thread that has it accepts for all.
    pub(crate) listener: Option<TcpListener>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) counting: Option<Counting>,
    pub(crate) log: Option<LogSender>,
}

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) counting: Option<Counting>,
    pub(crate) log: Option<LogSender>,
    number: usize,
    inbox: Arc<Inbox>,
    pub(crate) poll: OwnedFd,
    timer: OwnedFd,
    armed: Option<Mono>,
    listener: Option<TcpListener>,
    accepting_from: Option<Mono>,
    has_told_of_full: bool,
    next_acceptor: usize,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    next_serial: u32,
    pub(crate) deadlines: BinaryHeap<Deadline>,
    /// When connections were last seen idle, plus the idle timeout.
    idle: BinaryHeap<Deadline>,
    scratch: Vec<u8>,
    pub(crate) out: Vec<u8>,
    pub(crate) facts: Facts,
    #[expect(clippy::vec_box, reason = "they move between here and connections, which are to stay small")]
    pub(crate) spare: Vec<Box<Answer>>,
    pub(crate) head_end: memmem::Finder<'static>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, number: usize, equipment: Equipment) -> std::io::Result<Worker> {
        let Equipment { listener, tls, counting, log } = equipment;
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let inbox = Arc::clone(&shared.inboxes[number]);
        // Edge-triggered: every arming that expires is a new edge, and the count never has to be read.
        epoll::add(&poll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        epoll::add(&poll, &inbox.event, EventData::new_u64(INBOX), EventFlags::IN)?;
        if let Some(listener) = &listener {
            epoll::add(&poll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        }
        Ok(Worker {
            shared,
            tls,
            counting,
            log,
            number,
            inbox,
            poll,
            timer,
            armed: None,
            listener,
            accepting_from: None,
            has_told_of_full: false,
            next_acceptor: 0,
            slots: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            deadlines: BinaryHeap::new(),
            idle: BinaryHeap::new(),
            scratch: vec![0; SCRATCH],
            out: Vec::with_capacity(SCRATCH),
            facts: Facts::default(),
            spare: Vec::new(),
            head_end: memmem::Finder::new(b"\r\n\r\n"),
        })
    }

    /// Serves until told to stop.
    pub(crate) fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(1024);
        loop {
            let timeout = self.arm();
            events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // The poll and its descriptors live as long as this thread: there is no other error.
                Err(_) => return,
            }
            for event in &events {
                match event.data.u64() {
                    TIMER => {}
                    LISTENER => self.accept(),
                    INBOX => {
                        if self.read_inbox() {
                            return self.close_all();
                        }
                    }
                    slot => self.ready(slot as usize, event.flags),
                }
                self.fire();
            }
            self.fire();
        }
    }

    /// Arms the timer with the earliest deadline; gives a zero timeout when that has passed.
    fn arm(&mut self) -> Option<Timespec> {
        let due = |heap: &BinaryHeap<Deadline>| heap.peek().map(|Reverse((at, ..))| *at);
        let earliest =
            [due(&self.deadlines), due(&self.idle), self.accepting_from].into_iter().flatten().min()?;
        if earliest <= now() {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        if self.armed != Some(earliest) {
            self.armed = Some(earliest);
            let value = Timespec {
                tv_sec: (earliest.0 / 1_000_000_000) as i64,
                tv_nsec: (earliest.0 % 1_000_000_000) as i64,
            };
            let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            // The descriptor is a timer and the time is in range.
            let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec);
        }
        None
    }

    /// Serves the deadlines that have come.
    fn fire(&mut self) {
        while let Some(Reverse((at, slot, serial))) = self.deadlines.peek().copied() {
            if at > now() {
                break;
            }
            self.deadlines.pop();
            self.with(slot as usize, |worker, connection, slot| {
                if connection.serial == serial { worker.due(connection, slot) } else { Fate::Keep }
            });
        }
        self.fire_idle();
        if self.accepting_from.is_some_and(|from| from <= now()) {
            self.accepting_from = None;
            self.listen(true);
        }
    }

    fn fire_idle(&mut self) {
        let Some(timeout) = self.shared.settings.idle_timeout_ns else { return };
        while let Some(Reverse((at, slot, accepted))) = self.idle.peek().copied() {
            let time = now();
            if at > time {
                break;
            }
            self.idle.pop();
            let mut again = None;
            self.with(slot as usize, |_, connection, _| {
                if connection.accepted.0 as u32 != accepted {
                    return Fate::Keep;
                }
                let until = connection.idle_since.plus(timeout);
                if connection.is_idle() && until <= time {
                    return Fate::Close;
                }
                again = Some(if connection.is_idle() { until } else { time.plus(timeout) });
                Fate::Keep
            });
            if let Some(at) = again {
                self.idle.push(Reverse((at, slot, accepted)));
            }
        }
    }

    /// A number no living request of this thread has.
    pub(crate) fn serial(&mut self) -> u32 {
        self.next_serial = self.next_serial.wrapping_add(1);
        self.next_serial
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_IN_A_ROW {
            let Some(listener) = &self.listener else { return };
            match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    let accepted = now();
                    self.shared.counters.connected();
                    let thread = self.next_acceptor;
                    self.next_acceptor = (thread + 1) % self.shared.inboxes.len();
                    if thread == self.number {
                        self.adopt(socket, accepted);
                    } else {
                        self.shared.inboxes[thread].send(Message::Connection(socket, accepted));
                    }
                    self.fire();
                }
                Err(Errno::WOULDBLOCK) => return,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    if !std::mem::replace(&mut self.has_told_of_full, true) {
                        tell_of_full(error);
                    }
                    self.accepting_from = Some(now().plus(ACCEPT_PAUSE_NS));
                    return self.listen(false);
                }
                // The client went away while it waited.
                Err(_) => {}
            }
        }
    }

    fn listen(&self, on: bool) {
        if let Some(listener) = &self.listener {
            let flags = if on { EventFlags::IN } else { EventFlags::empty() };
            // It can fail only for a socket that is not registered.
            let _ = epoll::modify(&self.poll, listener, EventData::new_u64(LISTENER), flags);
        }
    }

    fn adopt(&mut self, socket: OwnedFd, accepted: Mono) {
        let tls = match &self.tls {
            None => None,
            Some(config) => match crate::tls::Session::new(config) {
                Ok(session) => Some(Box::new(session)),
                Err(_) => return,
            },
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let connection = Box::new(Connection::new(socket, accepted, tls));
        if connection.register(&self.poll, slot).is_err() {
            self.free.push(slot);
            return;
        }
        if let Some(timeout) = self.shared.settings.idle_timeout_ns {
            self.idle.push(Reverse((accepted.plus(timeout), slot as u32, accepted.0 as u32)));
        }
        self.slots[slot] = Some(connection);
    }

    /// Takes messages; true when told to stop.
    fn read_inbox(&mut self) -> bool {
        for message in Arc::clone(&self.inbox).take() {
            match message {
                Message::Connection(socket, accepted) => self.adopt(socket, accepted),
                Message::Counted { slot, serial, tokens } => {
                    self.with(slot, |worker, connection, slot| {
                        if connection.serial == serial {
                            worker.counted(connection, slot, tokens)
                        } else {
                            Fate::Keep
                        }
                    });
                }
                Message::Stop => return true,
            }
        }
        false
    }

    fn ready(&mut self, slot: usize, flags: EventFlags) {
        self.with(slot, |worker, connection, slot| {
            if flags.contains(EventFlags::OUT) {
                let fate = worker.writable(connection, slot);
                if fate != Fate::Keep {
                    return fate;
                }
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                let mut scratch = std::mem::take(&mut worker.scratch);
                let fate = worker.readable(connection, slot, &mut scratch);
                worker.scratch = scratch;
                return fate;
            }
            Fate::Keep
        });
    }

    /// Lets `action` at the connection in `slot`, if there is one, and does what it says with it.
    fn with(&mut self, slot: usize, action: impl FnOnce(&mut Worker, &mut Connection, usize) -> Fate) {
        let Some(mut connection) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        let fate = action(self, &mut connection, slot);
        if fate == Fate::Keep {
            connection.adjust_interest(&self.poll, slot);
            self.slots[slot] = Some(connection);
        } else {
            self.shut(&mut connection, fate);
            self.free.push(slot);
        }
    }

    fn close_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.with(slot, |_, _, _| Fate::Stop);
        }
    }
}

/// Says why connections are not accepted for now: a client only sees that nothing comes back.
fn tell_of_full(error: Errno) {
    let what = match error {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let shown = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
            format!(
                "open files are used up (ulimit -n {shown}): new connections wait; start it with a higher limit"
            )
        }
        Errno::NFILE => {
            "the open files of the host are used up: new connections wait; raise fs.file-max".to_owned()
        }
        _ => "the host has no memory for sockets: new connections wait".to_owned(),
    };
    // Nobody has to read it.
    let _ = writeln!(std::io::stderr(), "warning: mock server: {what}");
}
