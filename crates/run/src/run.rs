//! The straight line of a run.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aiperf_clock::{Anchor, now};
use aiperf_config::{
    DatasetSource, ExportLevel, FileFormat, LoadMode, PhaseConfig, RunConfig, TokenizerSource,
};
use aiperf_dataset::{Dataset, OpenContext, Sampler};
use aiperf_endpoint::{Format, ReadPlan};
use aiperf_load::transport::{Origin, SocketOptions};
use aiperf_load::{
    Control, Engine, ExchangeSink, PacerPlace, PhaseOutcome, PhaseRun, Settings, Source, StopCause,
    preflight, schedule,
};
use aiperf_metrics::delivery::{LoadDelivery, Verdict, judge};
use aiperf_metrics::{Context, Store, Window, live};
use aiperf_mock_server::Server;
use aiperf_report::console;
use aiperf_report::{
    FileNames, Level, Log, Palette, PhaseResults, RecordSink, Redactor, RunResults, Screen, WrittenFile,
    export_all, prepare_dir,
};
use aiperf_tokenize::seed::stream;
use aiperf_tokenize::{OpenOptions, Tokenizer};
use aiperf_types::PhaseKind;

use crate::compute::{Ends, Pool, Shared, Threshold, origin};
use crate::delivery::{Used, facts};
use crate::error::{InputError, RunError, StartFailure};
use crate::feed::{Feed, Order, PreparedSize};
use crate::inputs::Inputs;
use crate::monitor::{Monitor, Watched};
use crate::notes::{self, Once};
use crate::record::Recorder;
use crate::target::{self, Destination};
use crate::usage::{Cpu, Threads, cores, peak_rss_bytes};

/// How a run that started came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// At least one success, and everything is on disk.
    Good,
    /// As `Good`, but the load was not delivered as asked.
    Suspect,
    /// No request succeeded, too many failed, a bad record was met, or a file could not be written.
    Failed,
}

/// Runs `config`; `version` is that of the program.
pub fn execute(mut config: RunConfig, version: &str) -> Result<RunEnd, RunError> {
    // The anchor comes first: every wall-clock figure hangs on it.
    Anchor::process();
    let tokenizer = open_tokenizer(&config)?;
    if let Some(revision) = tokenizer.as_ref().and_then(Tokenizer::revision) {
        config.note_tokenizer_revision(revision);
    }
    let dataset = open_dataset(&config, tokenizer.as_ref())?;
    let zero_ms = settle_schedule(&mut config, dataset.as_ref())?;
    let destination = target::open(&config, version)?;
    let descriptors = preflight::raise_descriptor_limit();
    preflight::check(
        connections(&config),
        &destination.resolver.last(),
        &config.endpoint.bind_addresses,
        descriptors,
    )
    .map_err(StartFailure::from)?;
    let run = Run::prepare(&config, version, tokenizer, dataset, zero_ms, destination)?;
    run.carry_out()
}

fn open_tokenizer(config: &RunConfig) -> Result<Option<Tokenizer>, InputError> {
    let makes_text = match &config.dataset.source {
        DatasetSource::Synthetic(_) => true,
        DatasetSource::File(file) => file.format == FileFormat::MooncakeTrace,
    };
    if config.endpoint.use_server_token_count && !makes_text {
        return Ok(None);
    }
    Ok(Some(match &config.tokenizer.source {
        TokenizerSource::Builtin => Tokenizer::builtin(),
        TokenizerSource::Named(name) => {
            let options =
                OpenOptions { revision: Some(config.tokenizer.revision.clone()), ..OpenOptions::default() };
            Tokenizer::open(name, &options)?
        }
    }))
}

fn open_dataset(config: &RunConfig, tokenizer: Option<&Tokenizer>) -> Result<Arc<dyn Dataset>, InputError> {
    let context = OpenContext {
        seed: config.seed,
        seed_given: config.seed_given,
        tokenizer,
        endpoint: config.endpoint.kind,
        streaming: config.endpoint.streaming,
        fixed_schedule: matches!(config.profiling().mode, LoadMode::FixedSchedule(_)),
        apply_chat_template: config.tokenizer.apply_chat_template,
    };
    Ok(aiperf_dataset::open(&config.dataset, &context)?)
}

/// Fills in what a fixed schedule takes from its data: its zero, and how many requests it has.
fn settle_schedule(config: &mut RunConfig, dataset: &dyn Dataset) -> Result<Option<f64>, InputError> {
    if !matches!(config.profiling().mode, LoadMode::FixedSchedule(_)) {
        return Ok(None);
    }
    if let Some(turns) = dataset.total_turns() {
        config.note_scheduled_turns(turns);
    }
    let first = (0..dataset.len().known())
        .map(|index| dataset.outline(index).first_timestamp_ms().ok_or(InputError::NoTimestamp(index)))
        .try_fold(f64::INFINITY, |least, ms| ms.map(|ms| least.min(ms)))?;
    let Some(LoadMode::FixedSchedule(schedule)) = config.phases.last_mut().map(|phase| &mut phase.mode)
    else {
        return Ok(None);
    };
    let zero = schedule.zero_ms.unwrap_or(if first.is_finite() { first } else { 0.0 });
    schedule.zero_ms = Some(zero);
    Ok(Some(zero))
}

/// Connections that the plan may hold at once; an open loop without a cap is not known beforehand.
fn connections(config: &RunConfig) -> u64 {
    config.phases.iter().filter_map(|phase| phase.concurrency).map(u64::from).max().unwrap_or(0)
}

/// The files that grow while the run lasts.
struct Files {
    records: Option<RecordSink>,
    raw: Option<RecordSink>,
    inputs: Option<Inputs>,
}

impl Files {
    fn create(config: &RunConfig) -> std::io::Result<Files> {
        let names = FileNames::new(config.output.prefix.as_deref());
        let at = |name: String| config.output.dir.join(name);
        let level = config.output.level;
        let sink = |wanted: bool, name| wanted.then(|| RecordSink::create(at(name), now())).transpose();
        Ok(Files {
            records: sink(level >= ExportLevel::Records, names.records())?,
            raw: sink(level == ExportLevel::Raw, names.raw())?,
            inputs: writes_inputs(config).then(|| Inputs::create(at("inputs.json".into()))).transpose()?,
        })
    }
}

/// A run that is ready to send.
struct Run<'a> {
    config: &'a RunConfig,
    version: &'a str,
    dataset: Arc<dyn Dataset>,
    screen: Arc<Screen>,
    log: Arc<Log>,
    redactor: Redactor,
    control: Arc<Control>,
    engine: Engine,
    ends: Ends,
    pool: Pool,
    size: Arc<PreparedSize>,
    mock: Option<Server>,
    threads: Threads,
    cores: f64,
    zero_ms: Option<f64>,
    token_source: String,
    /// The server, when it is asked directly; for a question after a run without success.
    direct: Option<Origin>,
}

impl<'a> Run<'a> {
    fn prepare(
        config: &'a RunConfig,
        version: &'a str,
        tokenizer: Option<Tokenizer>,
        dataset: Arc<dyn Dataset>,
        zero_ms: Option<f64>,
        mut destination: Destination,
    ) -> Result<Run<'a>, RunError> {
        let mock = destination.mock.take();
        let direct = destination.proxy.is_none().then(|| destination.origin.clone());
        let redactor = Redactor::new(config);
        let screen = Arc::new(Screen::stderr(config.tuning.color));
        let folder = |cause| StartFailure::Folder { dir: config.output.dir.display().to_string(), cause };
        prepare_dir(&config.output.dir).map_err(folder)?;
        let level = Level::from_number(config.runtime.log_level);
        let log =
            Log::open(&config.output.dir, level, Arc::clone(&screen), redactor.clone()).map_err(folder)?;
        let log = Arc::new(log);

        let endpoint = &config.endpoint;
        let format =
            Format::new(endpoint, &config.models[0]).force_content_parts(config.tuning.force_content_parts);
        let format = Arc::new(format);
        notes::before(&log, config, dataset.as_ref(), &format);
        let raw = config.output.level == ExportLevel::Raw;
        let plan = ReadPlan { keep_raw: raw, ..ReadPlan::new(endpoint.kind, endpoint.streaming) };
        let template = tokenizer
            .as_ref()
            .filter(|_| config.tokenizer.apply_chat_template)
            .and_then(aiperf_tokenize::Tokenizer::chat_template);
        let token_source = match &tokenizer {
            _ if endpoint.use_server_token_count => "server usage".to_owned(),
            Some(tokenizer) => match tokenizer.revision() {
                Some(revision) => format!("{}@{revision}", tokenizer.name()),
                None => tokenizer.name().to_owned(),
            },
            None => "none".to_owned(),
        };
        let Files { records, raw: raw_records, inputs } = Files::create(config).map_err(folder)?;

        let cores = cores();
        let threads = Threads::of(cores, config.runtime.workers, config.runtime.record_processors);
        let control = Arc::new(Control::new());
        let mut ends = Ends::new();
        let size = Arc::new(PreparedSize::default());
        let want_template_input = template.is_some();
        let shared = Shared {
            dataset: Arc::clone(&dataset),
            format: Arc::clone(&format),
            token_source: token_source.clone(),
            recorder: Recorder {
                kind: endpoint.kind,
                plan,
                tokenizer,
                template,
                server_token_counts: endpoint.use_server_token_count,
                once: Once::default(),
                log: Arc::clone(&log),
            },
            context: context(config),
            schedule_zero_ms: zero_ms,
            inputs,
            records,
            raw: raw_records,
            http_trace: config.output.http_trace,
            redactor: redactor.clone(),
            control: Arc::clone(&control),
            log: Arc::clone(&log),
            size: Arc::clone(&size),
            threshold: config.failed_request_threshold.map(|share| Threshold {
                share,
                least: u64::from(config.profiling().concurrency.unwrap_or(0)).max(10),
            }),
            live: (0..threads.compute).map(|_| live::Recorder::new()).collect(),
            finished: AtomicU64::new(0),
            profiled: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            fault: std::sync::OnceLock::new(),
        };
        let pool = Pool::start(shared, threads.compute, &mut ends, config.output.dir.clone())
            .map_err(StartFailure::Threads)?;
        let settings = settings(config, destination, format, plan, want_template_input);
        let place = if threads.workers == 1 { PacerPlace::Worker } else { PacerPlace::Thread };
        let spin = config.tuning.high_resolution_timer && cores >= 4.0;
        let sink: Arc<dyn ExchangeSink> = ends.queue.clone();
        let engine = Engine::start(settings, threads.workers, place, spin, &sink, Arc::clone(&control))
            .map_err(StartFailure::Threads)?;
        Ok(Run {
            config,
            version,
            dataset,
            screen,
            log,
            redactor,
            control,
            engine,
            ends,
            pool,
            size,
            mock,
            threads,
            cores,
            zero_ms,
            token_source,
            direct,
        })
    }

    fn carry_out(mut self) -> Result<RunEnd, RunError> {
        let config = self.config;
        let mut monitor = Monitor::start(Watched {
            shared: Arc::clone(&self.pool.shared),
            accepted: Arc::clone(&self.ends.accepted),
            phases: config.phases.clone(),
            ui: config.runtime.ui,
            interval: config.runtime.stats_interval,
            step_pct: config.tuning.min_update_pct,
            screen: Arc::clone(&self.screen),
        })
        .map_err(StartFailure::Threads)?;

        let mut outcomes = Vec::new();
        let mut sampled = None;
        for (index, phase) in config.phases.iter().enumerate() {
            if self.control.stopped().is_some() {
                break;
            }
            let source = self.source(phase, sampled.take());
            monitor.position().phase(index);
            let before = (Cpu::process(), self.mock_cpu_ns());
            let mut outcome = self
                .engine
                .run_phase(phase_run(config, phase, index, source))
                .map_err(StartFailure::Threads)?;
            let process = Cpu::process().since(before.0);
            let used = Used {
                process,
                mock_ns: self.mock_cpu_ns().saturating_sub(before.1),
                cores: self.cores,
                workers: self.threads.workers,
                peak_rss_bytes: peak_rss_bytes(),
                spilled: self.ends.spilled.load(Ordering::Relaxed),
            };
            // What was drawn goes on in the next phase; what a phase leaves behind is let go at once.
            sampled = Some(std::mem::replace(&mut outcome.source, nothing()));
            outcomes.push((phase, outcome, used));
        }
        drop(sampled);
        monitor.position().processing();
        Ok(self.finish(&outcomes, &mut monitor))
    }

    /// Conversations for a phase: the sampled ones go on where the phase before stopped.
    fn source(&self, phase: &PhaseConfig, sampled: Option<Source>) -> Source {
        let feed = |order| {
            let (dataset, jobs) = (Arc::clone(&self.dataset), self.ends.jobs.clone());
            Feed::new(dataset, order, jobs, Arc::clone(&self.size))
        };
        if let LoadMode::FixedSchedule(_) = phase.mode {
            let mut conversations: Vec<(f64, u32)> = (0..self.dataset.len().known())
                .map(|index| {
                    (self.dataset.outline(index).first_timestamp_ms().unwrap_or_default(), index as u32)
                })
                .collect();
            // Stable: equal times keep the order of the file.
            conversations.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut feed = feed(Order::Scheduled { conversations, next: 0 });
            feed.prime(self.zero_ms.unwrap_or_default());
            return Box::new(feed);
        }
        sampled.unwrap_or_else(|| {
            let sampling = self.config.dataset.sampling;
            Box::new(feed(Order::Sampled(Box::new(Sampler::new(
                sampling,
                self.dataset.len(),
                self.config.seed,
            )))))
        })
    }

    fn mock_cpu_ns(&self) -> u64 {
        self.mock.as_ref().and_then(Server::cpu_ns).unwrap_or_default()
    }

    /// Finishes the records, makes every figure, writes every file, prints the report.
    fn finish(self, outcomes: &[(&PhaseConfig, PhaseOutcome, Used)], monitor: &mut Monitor) -> RunEnd {
        let Run { config, dataset, log, engine, ends, pool, mock, direct, .. } = self;
        engine.stop();
        // Without senders the compute threads end when they have finished what is there.
        drop(ends);
        if let Some(mock) = mock {
            mock.stop();
        }
        let (mut store, shared) = pool.join();
        monitor.stop_progress();

        let stopped = self.control.stopped();
        let mut context = context(config);
        let mut phases = Vec::new();
        for (index, (phase, outcome, used)) in outcomes.iter().enumerate() {
            if phase.kind == PhaseKind::Profiling {
                context.schedule_origin = self.zero_ms.map(|zero| origin(outcome.t0, zero));
            }
            phases.push(results(&mut store, &context, phase, index as u16, outcome, used));
        }
        let (written, mut failures) = close_files(&shared, dataset.as_ref());

        let profiling = phases.iter().rev().find(|phase| phase.kind == PhaseKind::Profiling);
        let successes = profiling.map_or(0, |phase| phase.summary.valid_count);
        let suspect = profiling
            .and_then(|phase| phase.load_delivery.as_ref())
            .is_some_and(|delivery| delivery.verdict == Verdict::Suspect);
        let fault = shared.fault.get().cloned();
        let mut run_results = RunResults {
            config,
            version: self.version,
            redactor: self.redactor,
            phases,
            was_cancelled: stopped.is_some(),
            incomplete_reason: incomplete_reason(stopped, fault.as_deref()),
            token_source: self.token_source,
            written,
            log_file: log.path().map(Path::to_path_buf),
        };
        failures.extend(export_all(&mut run_results).iter().map(ToString::to_string));
        if let Some(profiling) = run_results.profiling() {
            notes::after(&log, &profiling.summary);
        }
        show(config, &run_results);
        for failure in &failures {
            log.error("export", failure);
        }
        if successes == 0
            && answered_badly(&run_results)
            && let Some(models) = direct.as_ref().and_then(notes::models)
            && !models.is_empty()
        {
            log.info("server", &format!("the server lists these models: {}", models.join(", ")));
        }
        if let Some(fault) = &fault {
            log.error("dataset", fault);
        }
        let aborted = matches!(stopped, Some(StopCause::Threshold | StopCause::BadRecord));
        if successes == 0 || aborted || !failures.is_empty() {
            RunEnd::Failed
        } else if suspect {
            RunEnd::Suspect
        } else {
            RunEnd::Good
        }
    }
}

/// What the workers need.
fn settings(
    config: &RunConfig,
    destination: Destination,
    format: Arc<Format>,
    plan: ReadPlan,
    want_template_input: bool,
) -> Settings {
    let Destination { origin, resolver, proxy, tls, head, mock: _ } = destination;
    let endpoint = &config.endpoint;
    let raw = config.output.level == ExportLevel::Raw;
    Settings {
        origin,
        resolver,
        proxy,
        sockets: SocketOptions::new(
            endpoint.bind_addresses.clone(),
            config.tuning.receive_buffer.map(|bytes| bytes as usize),
            config.tuning.send_buffer.map(|bytes| bytes as usize),
        ),
        tls,
        head,
        format,
        read_plan: plan,
        request_timeout: endpoint.request_timeout,
        keep_alive: config.tuning.keep_alive,
        connection_limit: config
            .tuning
            .connection_limit
            .map(|limit| Arc::new(tokio::sync::Semaphore::new(limit as usize))),
        want_facts: config.output.http_trace || raw,
        want_headers: config.output.http_trace || raw,
        want_template_input,
    }
}

/// What decides which metrics apply, with the thresholds that the environment sets.
fn context(config: &RunConfig) -> Context {
    Context {
        osl_mismatch_pct: config.tuning.osl_mismatch_pct,
        osl_mismatch_max_tokens: config.tuning.osl_mismatch_max_tokens,
        usage_diff_pct: config.tuning.usage_diff_pct,
        ..Context::of(config)
    }
}

/// The whole dataset is written for data that the run makes or reads text from; traces and authored bodies are
/// on disk already.
fn writes_inputs(config: &RunConfig) -> bool {
    match &config.dataset.source {
        DatasetSource::Synthetic(_) => true,
        DatasetSource::File(file) => {
            matches!(file.format, FileFormat::SingleTurn | FileFormat::MultiTurn | FileFormat::RandomPool)
        }
    }
}

/// A phase in the engine's terms.
fn phase_run(config: &RunConfig, phase: &PhaseConfig, index: usize, source: Source) -> PhaseRun {
    let draws = |what: &str| stream(config.seed, &format!("load.{}.{what}", phase.kind.name()));
    let plan = schedule::Plan {
        rate_first_step_sec: config.tuning.rate_ramp_interval.as_secs_f64(),
        max_catch_up_ns: config.tuning.max_catch_up.map(aiperf_clock::nanos),
        ..schedule::Plan::new(phase, draws("arrivals"), draws("cancellation"))
    };
    PhaseRun {
        kind: phase.kind,
        index: index as u16,
        plan,
        source,
        duration: phase.stop.duration,
        grace: phase.grace,
        cancel_drain: config.tuning.cancel_drain,
        cancel_delay: phase.cancellation.map(|cancellation| cancellation.delay).unwrap_or_default(),
        fixed_schedule: matches!(phase.mode, LoadMode::FixedSchedule(_)),
    }
}

/// A source that has nothing.
fn nothing() -> Source {
    struct Nothing;
    impl schedule::SessionSource for Nothing {
        type Ticket = aiperf_load::Ticket;
        fn draw(&mut self) -> schedule::Draw<Self::Ticket> {
            schedule::Draw::Exhausted
        }
        fn timing(&self, _: u64, _: u32) -> schedule::TurnTiming {
            schedule::TurnTiming::default()
        }
    }
    Box::new(Nothing)
}

fn results(
    store: &mut Store,
    context: &Context,
    phase: &PhaseConfig,
    index: u16,
    outcome: &PhaseOutcome,
    used: &Used,
) -> PhaseResults {
    let window = Window { start: outcome.t0, end: outcome.stopped.is_none().then_some(outcome.end) };
    let summary = store.summarise(phase.kind, context, &window);
    let load_delivery: Option<LoadDelivery> =
        (phase.kind == PhaseKind::Profiling).then(|| judge(facts(phase, outcome, &summary, used)));
    PhaseResults {
        kind: phase.kind,
        index,
        start: outcome.t0,
        end: outcome.end,
        summary,
        was_cancelled: outcome.stopped.is_some(),
        sent_count: outcome.tally.sent,
        in_flight_cancelled_count: outcome.counts.cut,
        load_delivery,
    }
}

/// Closes the files that were written during the run; what they are, and what failed.
fn close_files(shared: &Shared, dataset: &dyn Dataset) -> (Vec<WrittenFile>, Vec<String>) {
    let mut written = Vec::new();
    let mut failures = Vec::new();
    for (sink, label) in [(&shared.records, "Records JSONL"), (&shared.raw, "Raw Records")] {
        let Some(sink) = sink else { continue };
        match sink.close(now()) {
            Ok(summary) => written.push(WrittenFile { label, path: summary.path }),
            Err(error) => {
                // What is in it is whole, and stays.
                written.push(WrittenFile { label, path: sink.path().to_owned() });
                failures.push(format!("{label}: {error}"));
            }
        }
    }
    if let Some(inputs) = &shared.inputs {
        match inputs.finish(dataset, &shared.format) {
            Ok(path) => written.push(WrittenFile { label: "Inputs JSON", path }),
            Err(error) => failures.push(format!("Inputs JSON: {error}")),
        }
    }
    (written, failures)
}

/// Whether the server said that it does not know what it was asked for.
fn answered_badly(results: &RunResults<'_>) -> bool {
    let groups = results.profiling().map_or(&[][..], |phase| &phase.summary.error_groups);
    groups.iter().any(|group| matches!(group.error.code, Some(400 | 404 | 422)))
}

fn incomplete_reason(stopped: Option<StopCause>, fault: Option<&str>) -> Option<String> {
    Some(match stopped? {
        StopCause::Interrupt => "interrupted".to_owned(),
        StopCause::Threshold => "more requests failed than --failed-request-threshold allows".to_owned(),
        StopCause::BadRecord => format!("a bad record was met: {}", fault.unwrap_or_default()),
    })
}

/// Prints the report. A closed stdout is no failure: the files have it all.
fn show(config: &RunConfig, results: &RunResults<'_>) {
    let stdout = std::io::stdout();
    let palette = Palette::for_stream(stdout.is_terminal(), config.tuning.color);
    let width = console::width_of(&stdout);
    let text = console::tables(results, width, palette) + &console::tail(results, width, palette);
    let _ = console::print(&mut stdout.lock(), &text);
}
