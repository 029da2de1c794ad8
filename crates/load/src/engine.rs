//! The threads of a run, and its phases one after the other.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use aiperf_clock::Mono;
use aiperf_types::PhaseKind;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::cpu::{CpuClock, CpuMeter, CpuTime};
use crate::delivery::Tally;
use crate::pacer::{Control, Inbox, PaceJob, Paced, Source, StopCause};
use crate::schedule::{BranchCounts, Counts, Plan};
use crate::settings::Settings;
use crate::worker::ids::Ids;
use crate::worker::{Command, ExchangeSink, Mailbox, PhaseInfo, Worker};

/// Where the pacer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacerPlace {
    /// On the thread of the only worker.
    Worker,
    /// On a thread of its own.
    Thread,
}

/// One phase, ready to run.
pub struct PhaseRun {
    /// Warmup or profiling.
    pub kind: PhaseKind,
    /// Index among the phases of the run.
    pub index: u16,
    /// What leaves when.
    pub plan: Plan,
    /// What is sent.
    pub source: Source,
    /// Time limit on issuing.
    pub duration: Option<Duration>,
    /// How long turns in flight may finish after it; `None` is for ever.
    pub grace: Option<Duration>,
    /// How long cut turns may take to come back.
    pub cancel_drain: Duration,
    /// From the last byte sent to the close, for turns that are to be broken off.
    pub cancel_delay: Duration,
    /// Correlation ids carry the conversation id.
    pub fixed_schedule: bool,
    /// Tells what the phase costs.
    pub cpu: Arc<dyn CpuClock>,
}

/// A phase that is over.
pub struct PhaseOutcome {
    /// What the schedule counted.
    pub counts: Counts,
    /// What the workers saw.
    pub tally: Tally,
    /// Start of the phase.
    pub t0: Mono,
    /// The last turn was back, or given up.
    pub end: Mono,
    /// What is left to be sent, for the next phase.
    pub source: Source,
    /// Why it ended before its time.
    pub stopped: Option<StopCause>,
    /// CPU time from T0 to the end.
    pub cpu: CpuTime,
    /// CPU the pacer spent waiting awake, ns.
    pub spin_ns: u64,
    /// What became of children, where conversations start others.
    pub branches: Option<BranchCounts>,
}

struct WorkerHandle {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
    tid: i32,
    places: Option<u32>,
}

/// The network side of a run.
pub struct Engine {
    workers: Vec<WorkerHandle>,
    inbox: Arc<Inbox>,
    control: Arc<Control>,
    place: PacerPlace,
    spin: bool,
    /// Phases run so far.
    phases: u32,
}

impl Engine {
    /// Starts `workers` network threads, fewer where fewer connections are allowed.
    pub fn start(
        settings: Settings,
        workers: usize,
        place: PacerPlace,
        spin: bool,
        sink: &Arc<dyn ExchangeSink>,
        control: Arc<Control>,
    ) -> io::Result<Engine> {
        let settings = Arc::new(settings);
        let inbox = Arc::new(Inbox::default());
        control.attach(&inbox);
        let shares = shares(settings.connection_limit, workers.max(1));
        let mut engine = Engine { workers: Vec::new(), inbox, control, place, spin, phases: 0 };
        for (index, places) in shares.into_iter().enumerate() {
            let mailbox = Arc::new(Mailbox::default());
            let (settings, sink, inbox) =
                (Arc::clone(&settings), Arc::clone(sink), Arc::clone(&engine.inbox));
            let control = Arc::clone(&engine.control);
            let (ready, started) = mpsc::channel();
            let inner = Arc::clone(&mailbox);
            let thread = std::thread::Builder::new().name(format!("net-{index}")).spawn(move || {
                let runtime = match runtime() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return;
                    }
                };
                let _ = ready.send(Ok(rustix::thread::gettid().as_raw_nonzero().get()));
                let worker =
                    std::rc::Rc::new(Worker::new(index as u16, settings, places, sink, inbox, control));
                runtime.block_on(worker.run(inner));
            })?;
            let tid = started.recv().map_err(io::Error::other)??;
            engine.workers.push(WorkerHandle { mailbox, thread: Some(thread), tid, places });
        }
        Ok(engine)
    }

    /// Number of network threads.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Runs a phase to its end.
    pub fn run_phase(&mut self, run: PhaseRun) -> io::Result<PhaseOutcome> {
        self.phases += 1;
        let (reply, answer) = mpsc::channel();
        let job = Box::new(PaceJob {
            plan: run.plan,
            source: run.source,
            phase: Arc::new(PhaseInfo {
                serial: self.phases,
                kind: run.kind,
                index: run.index,
                cancel_delay: run.cancel_delay,
                fixed_schedule: run.fixed_schedule,
                family_key: Ids::key(),
            }),
            grace: run.grace,
            cancel_drain: run.cancel_drain,
            duration: run.duration,
            inbox: Arc::clone(&self.inbox),
            control: Arc::clone(&self.control),
            mailboxes: self.workers.iter().map(|worker| Arc::clone(&worker.mailbox)).collect(),
            places: self.workers.iter().map(|worker| worker.places.unwrap_or_default()).collect(),
            spin: self.spin && self.place == PacerPlace::Thread,
            meter: CpuMeter {
                clock: run.cpu,
                workers: self.workers.iter().map(|worker| worker.tid).collect(),
            },
            reply,
        });
        // What the workers did between phases belongs to none.
        self.collect();
        let Paced { counts, branches, t0, end, source, stopped, cpu, spin_ns } = match self.place {
            PacerPlace::Worker => {
                self.workers[0].mailbox.post(Command::Pace(job));
                answer.recv().map_err(|_| io::Error::other("the network thread ended"))?
            }
            PacerPlace::Thread => {
                let pacer = std::thread::Builder::new()
                    .name("pacer".into())
                    .spawn(move || runtime().map(|runtime| runtime.block_on(job.run_apart())))?;
                let result = answer.recv();
                pacer.join().map_err(|_| io::Error::other("the pacer thread panicked"))??;
                result.map_err(|_| io::Error::other("the pacer thread ended"))?
            }
        };
        let tally = self.collect();
        Ok(PhaseOutcome { counts, tally, t0, end, source, stopped, cpu, spin_ns, branches })
    }

    fn collect(&self) -> Tally {
        let mut sum = Tally::default();
        for worker in &self.workers {
            let (to, from) = mpsc::channel();
            worker.mailbox.post(Command::Report(to));
            if let Ok(tally) = from.recv() {
                sum.merge(&tally);
            }
        }
        sum
    }

    /// Ends all threads.
    pub fn stop(mut self) {
        self.stop_threads();
    }

    fn stop_threads(&mut self) {
        for worker in &self.workers {
            worker.mailbox.post(Command::Stop);
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A panic of the thread was reported by the hook already.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

/// The connections each worker may hold; one entry per worker.
fn shares(limit: Option<NonZeroU32>, workers: usize) -> Vec<Option<u32>> {
    let Some(limit) = limit else { return vec![None; workers] };
    let workers = u32::try_from(workers).unwrap_or(u32::MAX).min(limit.get());
    (0..workers).map(|index| Some(limit.get() / workers + u32::from(index < limit.get() % workers))).collect()
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(2)
        .build_local(LocalOptions::default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_of_a_limit_come_to_the_limit_for_any_number_of_workers(
            limit in 1_u32..10_000,
            workers in 1_usize..64,
        ) {
            let shares = shares(NonZeroU32::new(limit), workers);
            prop_assert!(shares.len() <= workers);
            let places: Vec<u32> = shares.iter().map(|share| share.unwrap()).collect();
            prop_assert_eq!(places.iter().sum::<u32>(), limit);
            prop_assert!(places.iter().all(|share| (1..=limit.div_ceil(shares.len() as u32)).contains(share)));
        }
    }
}
