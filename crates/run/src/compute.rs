//! The compute threads: they make requests ahead of their time and finish records after theirs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_dataset::{Dataset, Stop};
use aiperf_endpoint::{Format, History};
use aiperf_load::{Control, Exchange, Prepared, PreparedResult, StopCause};
use aiperf_metrics::{Context, RecordValues, Store, evaluate, live};
use aiperf_report::jsonl::{RawWriter, RecordWriter};
use aiperf_report::{Log, RecordSink, Redactor, holds_signed_url};
use aiperf_types::{Body, Content, Conversation, PhaseKind, RequestRecord};
use crossbeam_channel::{Receiver, Sender, TryRecvError, select, unbounded};
use tokio::sync::oneshot;

use crate::cache_bust::CacheBuster;
use crate::detail;
use crate::feed::PreparedSize;
use crate::inputs::{InputEntry, Inputs};
use crate::queue::{Exit, Inlet, Limits, queue};
use crate::record::Recorder;
use crate::share::Share;
use crate::spill::Spill;

/// Lines are handed to the file in batches of about this size.
const LINES: usize = 32 * 1024;
/// How long a thread that has run out of work leaves exchanges to gather: being woken for each costs it, and the network
/// thread that wakes it, more than the record does. Prompts are not left waiting.
const GATHER: Duration = Duration::from_millis(5);
/// After so many looks in vain it sleeps until it is woken.
const LOOKS: u32 = 4;

/// A conversation to be made ready.
pub(crate) struct PrepareJob {
    pub(crate) index: u64,
    /// This turn alone, where turns are made one by one.
    pub(crate) turn: Option<u32>,
    /// It goes on from what another conversation has said, so that no request of it is known ahead.
    pub(crate) inherits: bool,
    /// The draw it belongs to.
    pub(crate) run: u64,
    /// The phase it is for.
    pub(crate) phase: PhaseKind,
    pub(crate) fulfil: oneshot::Sender<PreparedResult>,
}

/// When failures end the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    pub(crate) share: f64,
    /// Not evaluated before so many records.
    pub(crate) least: u64,
}

/// What all compute threads share.
pub(crate) struct Shared {
    pub(crate) dataset: Arc<dyn Dataset>,
    pub(crate) format: Arc<Format>,
    /// Marks against prefix caches.
    pub(crate) cache_bust: Option<CacheBuster>,
    pub(crate) recorder: Recorder,
    /// Who counts tokens.
    pub(crate) token_source: String,
    pub(crate) context: Context,
    /// Time of the recorded schedule that is T0, ms; only with a fixed schedule.
    pub(crate) schedule_zero_ms: Option<f64>,
    pub(crate) inputs: Option<Inputs>,
    pub(crate) records: Option<RecordSink>,
    pub(crate) raw: Option<RecordSink>,
    /// A body in the raw records holds a URL with a credential in it.
    pub(crate) raw_is_signed: AtomicBool,
    pub(crate) http_trace: bool,
    pub(crate) redactor: Redactor,
    pub(crate) control: Arc<Control>,
    pub(crate) log: Arc<Log>,
    pub(crate) size: Arc<PreparedSize>,
    pub(crate) threshold: Option<Threshold>,
    /// Running figures, one recorder per compute thread.
    pub(crate) live: Vec<live::Recorder>,
    /// Records finished: of all phases, of profiling, and failed ones of profiling.
    pub(crate) finished: AtomicU64,
    pub(crate) profiled: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Conversations that others started and whose last request failed, by phase.
    pub(crate) children_failed: Box<[AtomicU64]>,
    /// Why a conversation could not be made.
    pub(crate) fault: std::sync::OnceLock<Arc<str>>,
    /// Ends what the dataset is making.
    pub(crate) making: Stop,
}

impl Shared {
    /// Ends the run before its time: nothing more is sent, and nothing more is made.
    pub(crate) fn stop(&self, cause: StopCause) {
        self.control.stop(cause);
        self.making.set();
    }
}

/// The threads.
pub(crate) struct Pool {
    threads: Vec<JoinHandle<Store>>,
    pub(crate) shared: Arc<Shared>,
}

/// The ends that feed the pool.
pub(crate) struct Ends {
    pub(crate) jobs: Sender<PrepareJob>,
    pub(crate) queue: Arc<Inlet>,
    /// Exchanges handed over so far. Apart from the queue, since whoever holds that keeps the threads running.
    pub(crate) accepted: Arc<AtomicU64>,
    /// Exchanges that had to wait on disk.
    pub(crate) spilled: Arc<AtomicU64>,
    spill: Option<Spill>,
    jobs_out: Receiver<PrepareJob>,
    exchanges_out: Exit,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        let (jobs, jobs_out) = unbounded();
        let (exchanges, exchanges_out) = queue(Limits::RUN);
        let accepted = Arc::new(AtomicU64::new(0));
        let (overflow, overflow_out) = unbounded();
        let spilled = Arc::new(AtomicU64::new(0));
        let spill = Spill { overflow: overflow_out, queue: exchanges.clone(), count: Arc::clone(&spilled) };
        let queue = Arc::new(Inlet::new(exchanges, overflow, Arc::clone(&accepted)));
        Ends { jobs, queue, accepted, spilled, spill: Some(spill), jobs_out, exchanges_out }
    }
}

impl Pool {
    /// Starts `threads` compute threads.
    /// What does not fit in memory waits in `dir`.
    pub(crate) fn start(
        shared: Shared,
        threads: usize,
        ends: &mut Ends,
        dir: PathBuf,
    ) -> std::io::Result<Pool> {
        if let Some(spill) = ends.spill.take() {
            std::thread::Builder::new().name("spill".into()).spawn(move || spill.run(&dir))?;
        }
        let shared = Arc::new(shared);
        let mut pool = Pool { threads: Vec::new(), shared: Arc::clone(&shared) };
        for index in 0..threads.max(1) {
            let worker = Worker::new(index, Arc::clone(&shared));
            let (jobs, exchanges) = (ends.jobs_out.clone(), ends.exchanges_out.clone());
            let thread = std::thread::Builder::new()
                .name(format!("compute-{index}"))
                .spawn(move || worker.run(&jobs, &exchanges))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Waits for the threads, whose ends must have been dropped; the records of all of them, and what they shared.
    pub(crate) fn join(self) -> (Store, Arc<Shared>) {
        let mut sum = Store::new();
        for thread in self.threads {
            // A panic was reported by the hook; the records of the other threads are still good.
            if let Ok(store) = thread.join() {
                sum.merge(store);
            }
        }
        (sum, self.shared)
    }
}

struct Worker {
    index: usize,
    shared: Arc<Shared>,
    store: Store,
    values: RecordValues,
    context: Context,
    record_writer: RecordWriter,
    raw_writer: RawWriter,
    lines: Vec<u8>,
    line_count: u64,
    raw_lines: Vec<u8>,
    raw_count: u64,
    /// Ends of tickets that are fulfilled no more. Whoever waits for one is cut off, and makes no record of it.
    unmade: Vec<oneshot::Sender<PreparedResult>>,
}

impl Worker {
    fn new(index: usize, shared: Arc<Shared>) -> Worker {
        Worker {
            index,
            store: Store::new(),
            values: RecordValues::new(),
            context: shared.context.clone(),
            record_writer: RecordWriter::new(
                &shared.context,
                shared.http_trace,
                shared.redactor.clone(),
                index,
            ),
            raw_writer: RawWriter::new(shared.redactor.clone(), index),
            lines: Vec::new(),
            line_count: 0,
            raw_lines: Vec::new(),
            raw_count: 0,
            unmade: Vec::new(),
            shared,
        }
    }

    fn run(mut self, jobs: &Receiver<PrepareJob>, exchanges: &Exit) -> Store {
        let mut looks = 0;
        let mut share = Share::default();
        let (mut jobs_open, mut exchanges_open) = (true, true);
        while jobs_open || exchanges_open {
            // Prompts first: a late one delays the load, a late record delays nothing.
            match jobs.try_recv() {
                Ok(job) => {
                    let begin = now();
                    self.prepare(job);
                    let made = now();
                    share.prompt(made.saturating_since(begin));
                    // Now and then a record: where prompts are late all the time, records would wait for the end.
                    if share.allows_record()
                        && let Ok(weighed) = exchanges.receiver().try_recv()
                    {
                        self.finish(exchanges.take(weighed));
                        share.record(now().saturating_since(made));
                        self.hand_over(0);
                        looks = 0;
                    }
                    continue;
                }
                Err(TryRecvError::Empty) => share.idle(),
                Err(TryRecvError::Disconnected) => jobs_open = false,
            }
            match exchanges.receiver().try_recv() {
                Ok(weighed) => {
                    self.finish(exchanges.take(weighed));
                    looks = 0;
                    continue;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => exchanges_open = false,
            }
            self.hand_over(0);
            match (jobs_open, exchanges_open) {
                (true, true) if looks < LOOKS => {
                    looks += 1;
                    if let Ok(job) = jobs.recv_timeout(GATHER) {
                        self.prepare(job);
                    }
                }
                (true, true) => select! {
                    recv(jobs) -> job => if let Ok(job) = job { self.prepare(job) },
                    recv(exchanges.receiver()) -> weighed => if let Ok(weighed) = weighed {
                        self.finish(exchanges.take(weighed));
                        looks = 0;
                    },
                },
                (true, false) => {
                    if let Ok(job) = jobs.recv() {
                        self.prepare(job);
                    }
                }
                (false, true) => {
                    if let Ok(weighed) = exchanges.receiver().recv() {
                        self.finish(exchanges.take(weighed));
                    }
                }
                (false, false) => {}
            }
        }
        self.hand_over(0);
        self.store
    }

    fn prepare(&mut self, job: PrepareJob) {
        let shared = &self.shared;
        if shared.control.stopped().is_some() {
            // Nothing more is sent.
            self.unmade.push(job.fulfil);
            return;
        }
        let result = self.build(&job).map(Arc::new);
        if let Err(why) = &result {
            if shared.control.stopped().is_some() {
                // Given up on the way.
                self.unmade.push(job.fulfil);
                return;
            }
            if shared.fault.set(Arc::clone(why)).is_ok() {
                shared.stop(StopCause::BadRecord);
            }
        }
        // A phase that has ended wants no more conversations.
        let _ = job.fulfil.send(result);
    }

    fn build(&self, job: &PrepareJob) -> Result<Prepared, Arc<str>> {
        let &PrepareJob { index, turn, inherits, run, phase, .. } = job;
        let shared = &self.shared;
        let built = match turn {
            Some(turn) => shared.dataset.build_turn(index, turn),
            None => shared.dataset.build(index),
        };
        let mut conversation = built.map_err(|error| Arc::from(error.to_string()))?;
        shared.format.check(&conversation).map_err(|error| Arc::from(error.to_string()))?;
        let turns = conversation.turns.len();
        let alone = turns == 1 || !conversation.context_mode.accumulates();
        let history = History::default();
        let wanted = |inputs: &&Inputs| turn.is_none() && inputs.wants(index);
        let inputs = shared.inputs.as_ref().filter(wanted);
        let marker = shared.cache_bust.as_ref().and_then(|cache_bust| cache_bust.marker(run, phase));
        // The file shows the data, not the marks.
        let unmarked = inputs.is_some() && marker.is_some();
        let bodies = if unmarked { self.bodies_alone(&conversation) } else { Vec::new() };
        if let (Some(cache_bust), Some(marker)) = (&shared.cache_bust, &marker)
            && !inherits
        {
            if conversation.turns.iter().any(|turn| matches!(turn.content, Content::Payload(_))) {
                return Err(verbatim(&conversation));
            }
            cache_bust.mark(&mut conversation, marker);
        }
        let ahead = match (inherits, alone) {
            (true, _) => 0,
            (false, true) => turns,
            (false, false) => turns.min(1),
        };
        let render = |turn| {
            let mut request = shared.format.render(&conversation, turn, &history);
            if shared.recorder.server_token_counts {
                // Nobody counts them, and they are as long as the body.
                request.texts = Vec::new();
            }
            Arc::new(request)
        };
        let requests: Vec<_> = (0..ahead).map(render).collect();
        shared.size.note(requests.iter().map(|request| request.body.len()).sum());
        if let Some(inputs) = inputs {
            let bodies = if unmarked {
                bodies
            } else if alone && !inherits {
                requests.iter().map(|request| request.body.clone()).collect()
            } else {
                self.bodies_alone(&conversation)
            };
            inputs.offer(index, InputEntry { id: Arc::clone(&conversation.id), bodies });
        }
        let id = Arc::clone(&conversation.id);
        let source_session = conversation.source_session.clone();
        let sources = if conversation.turns.iter().any(|turn| turn.source.is_some()) {
            conversation.turns.iter().map(|turn| turn.source.clone()).collect()
        } else {
            Vec::new()
        };
        let conversation: Option<Conversation> = (inherits || !alone).then_some(conversation);
        let first_turn = turn.unwrap_or(0);
        Ok(Prepared { first_turn, id, source_session, requests, conversation, sources, marker })
    }

    fn bodies_alone(&self, conversation: &Conversation) -> Vec<Body> {
        let turns = 0..conversation.turns.len();
        turns.map(|turn| self.shared.format.render_alone(conversation, turn)).collect()
    }

    fn finish(&mut self, exchange: Exchange) {
        let record = self.shared.recorder.record(exchange);
        detail::request(&self.shared.log, &record);
        let profiling = record.identity.phase == PhaseKind::Profiling;
        if profiling
            && self.context.schedule_origin.is_none()
            && let Some(zero) = self.shared.schedule_zero_ms
        {
            let t0 = Mono(self.shared.control.phase_start.load(Ordering::Acquire));
            self.context.schedule_origin = Some(origin(t0, zero));
        }
        if record.is_valid() && !self.shared.recorder.server_token_counts {
            let (limit, source) = (self.context.usage_diff_pct, &self.shared.token_source);
            let recorder = &self.shared.recorder;
            let untemplated = recorder.leaves_template_out();
            recorder.once.compare_counts(&record, limit, source, untemplated, &self.shared.log);
        }
        evaluate(&record, &self.context, &mut self.values);
        self.store.push(&record);
        if let Some(live) = self.shared.live.get(self.index) {
            live.record(record.identity.phase, record.is_valid(), &self.values);
        }
        if self.shared.records.is_some() {
            self.record_writer.write(&record, &self.values, &mut self.lines);
            self.line_count += 1;
        }
        if self.shared.raw.is_some() {
            self.raw_writer.write(&record, &mut self.raw_lines);
            self.raw_count += 1;
            let signed = &self.shared.raw_is_signed;
            if !signed.load(Ordering::Relaxed) && holds_signed_url(&record.request.body) {
                signed.store(true, Ordering::Relaxed);
            }
        }
        self.hand_over(LINES);
        self.tally(&record, profiling);
    }

    fn tally(&self, record: &RequestRecord, profiling: bool) {
        let shared = &self.shared;
        shared.finished.fetch_add(1, Ordering::Relaxed);
        if record.error.is_some()
            && let Some(lineage) = &record.identity.lineage
            && lineage.depth > 0
            && record.identity.turn_index + 1 == lineage.turns
            && let Some(failed) = shared.children_failed.get(usize::from(record.identity.phase_index))
        {
            failed.fetch_add(1, Ordering::Relaxed);
        }
        if !profiling {
            return;
        }
        let profiled = shared.profiled.fetch_add(1, Ordering::Relaxed) + 1;
        let failed = match &record.error {
            Some(_) => shared.failed.fetch_add(1, Ordering::Relaxed) + 1,
            None => shared.failed.load(Ordering::Relaxed),
        };
        if let Some(error) = &record.error
            && failed == 1
            && record.cancelled_at.is_none()
        {
            let code = error.code.map_or_else(String::new, |code| format!("{code} "));
            // A body may say nothing.
            let message =
                if error.message.is_empty() { String::new() } else { format!(": {}", error.message) };
            let text = format!("first failed request: {code}{}{message}", error.kind);
            shared.log.error("records", &text);
        }
        if let Some(threshold) = shared.threshold
            && profiled >= threshold.least
            && failed as f64 / profiled as f64 > threshold.share
        {
            shared.stop(StopCause::Threshold);
        }
    }

    /// Gives finished lines to their files, once there are `at_least` bytes of them.
    fn hand_over(&mut self, at_least: usize) {
        let give = |sink: &Option<RecordSink>, lines: &mut Vec<u8>, count: &mut u64| {
            if let Some(sink) = sink
                && !lines.is_empty()
                && lines.len() >= at_least
            {
                sink.append(lines, std::mem::take(count), now());
                lines.clear();
            }
        };
        give(&self.shared.records, &mut self.lines, &mut self.line_count);
        give(&self.shared.raw, &mut self.raw_lines, &mut self.raw_count);
    }
}

fn verbatim(conversation: &Conversation) -> Arc<str> {
    format!(
        "conversation '{}' has whole payloads, which are sent byte for byte, and --cache-bust changes requests; drop it, \
         or use data whose requests are built",
        conversation.id
    )
    .into()
}

/// The instant at which time 0 of a recorded schedule falls, when `zero_ms` of it is `t0`.
pub(crate) fn origin(t0: Mono, zero_ms: f64) -> Mono {
    Mono(t0.0.saturating_sub((zero_ms * 1e6).max(0.0) as u64))
}
