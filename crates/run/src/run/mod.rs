//! The straight line of a run.

mod finish;
mod prepare;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aiperf_clock::Anchor;
use aiperf_config::{CacheBust, DatasetSource, LoadMode, PhaseConfig, RunConfig, TokenizerSource, Ui};
use aiperf_dataset::{Dataset, DatasetError, OpenContext, Sampler, Stop};
use aiperf_load::{Control, CpuClock, Engine, PhaseRun, Source, preflight, schedule};
use aiperf_metrics::Context;
use aiperf_mock_server::Server;
use aiperf_report::{Log, Redactor, Screen, Waiting};
use aiperf_tokenize::seed::stream;
use aiperf_tokenize::{OpenOptions, Tokenizer};

use crate::compute::{Ends, Pool};
use crate::connections;
use crate::delivery::Used;
use crate::error::{InputError, RunError, StartFailure};
use crate::feed::{Feed, Order, PreparedSize};
use crate::models::Models;
use crate::monitor::{Monitor, Watched};
use crate::notes;
use crate::signals::Signals;
use crate::story;
use crate::target;
use crate::usage::{OwnCpu, Threads, peak_rss_bytes};

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

/// Runs `config`; `version` is that of the program. `signals` are about this run while it lasts.
pub fn execute(mut config: RunConfig, version: &str, signals: &Signals) -> Result<RunEnd, RunError> {
    // The anchor comes first: every wall-clock figure hangs on it.
    Anchor::process();
    let opening = waiting(&config, "opening the tokenizer");
    let tokenizer = open_tokenizer(&config)?;
    drop(opening);
    if let Some(revision) = tokenizer.as_ref().and_then(Tokenizer::revision) {
        config.note_tokenizer_revision(revision);
    }
    let making = Stop::default();
    let reading = waiting(&config, &format!("reading {}", data_name(&config)));
    let dataset = open_dataset(&config, tokenizer.as_ref(), &making)?;
    drop(reading);
    let zero_ms = settle_schedule(&mut config, dataset.as_ref())?;
    config.note_conversations(dataset.len().known());
    if config.dataset.public.is_some() {
        // Counting takes its time where each conversation draws its turns.
        config.note_public_dataset(dataset.rows_read(), dataset.len().known(), dataset.total_turns());
    }
    check_lanes(&config, dataset.as_ref())?;
    let destination = target::open(&config, version)?;
    let descriptors = preflight::raise_descriptor_limit();
    let (sources, targets) = (&config.endpoint.bind_addresses, destination.resolver.last());
    preflight::check_sources(sources, &targets).map_err(InputError::from)?;
    let wanted = connections::wanted(&config.phases, config.tuning.connection_limit);
    preflight::check(wanted, &targets, sources, descriptors).map_err(StartFailure::from)?;
    signals.hold();
    let run = Run::prepare(&config, version, tokenizer, dataset, zero_ms, destination, making)
        .inspect_err(|_| signals.detach())?;
    let end = run.carry_out(signals);
    signals.detach();
    end
}

/// Says that `what` is waited for, as long as it is held, where anything is to be said.
fn waiting(config: &RunConfig, what: &str) -> Option<Waiting> {
    (config.runtime.ui != Ui::None).then(|| Waiting::new(Arc::new(Screen::stderr(config.tuning.color)), what))
}

/// What a person calls the data of a run.
fn data_name(config: &RunConfig) -> String {
    let named = config.dataset.public.as_ref().map(|public| public.name.to_owned());
    let brought = || config.brought().map(|(_, name)| name.to_owned());
    let on_disk = || match &config.dataset.source {
        DatasetSource::File(file) => file.path.file_name().map(|name| name.display().to_string()),
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => None,
    };
    named.or_else(brought).or_else(on_disk).unwrap_or_else(|| "the data".to_owned())
}

/// Whether a run counts or makes tokens itself.
pub fn needs_tokenizer(config: &RunConfig) -> bool {
    makes_text(config) || !config.endpoint.use_server_token_count
}

/// Whether a run makes its requests with a tokenizer, whoever counts their tokens.
pub fn makes_text(config: &RunConfig) -> bool {
    match &config.dataset.source {
        DatasetSource::Synthetic(_) => true,
        DatasetSource::File(file) => aiperf_dataset::format(file.format).makes_text,
        DatasetSource::Stored(_) => counts_while_read(config),
    }
}

/// Whether the tokens of a public data set are counted while it is read.
fn counts_while_read(config: &RunConfig) -> bool {
    let set = config.dataset.public.as_ref().and_then(|public| aiperf_dataset::public::find(public.name));
    set.is_some_and(|set| set.follows(aiperf_dataset::public::Setting::Tokens))
}

/// The tokenizer of a run, where it needs one.
pub fn open_tokenizer(config: &RunConfig) -> Result<Option<Tokenizer>, InputError> {
    if !needs_tokenizer(config) {
        return Ok(None);
    }
    Ok(Some(match &config.tokenizer.source {
        TokenizerSource::Builtin => Tokenizer::builtin(),
        TokenizerSource::Named(name) => {
            let options =
                OpenOptions { revision: Some(config.tokenizer.revision.clone()), ..OpenOptions::default() };
            let only_counts = !makes_text(config);
            Tokenizer::open(name, &options).map_err(|cause| InputError::Tokenizer { cause, only_counts })?
        }
    }))
}

fn open_dataset(
    config: &RunConfig,
    tokenizer: Option<&Tokenizer>,
    making: &Stop,
) -> Result<Arc<dyn Dataset>, InputError> {
    let context = OpenContext {
        seed: config.seed,
        seed_given: config.seed_given,
        tokenizer,
        endpoint: config.endpoint.kind,
        extra_inputs: Some(&config.endpoint.extra_inputs),
        streaming: config.endpoint.streaming,
        fixed_schedule: matches!(config.profiling().mode, LoadMode::FixedSchedule(_)),
        apply_chat_template: config.tokenizer.apply_chat_template,
        survey: None,
    };
    aiperf_dataset::open_until(&config.dataset, &context, making).map_err(|cause| {
        match &config.dataset.public {
            Some(public) => InputError::Public {
                name: public.name,
                origin: public.origin.clone(),
                cause: cause.to_string(),
            },
            None => match (&config.dataset.source, &cause) {
                // What the options do not go with names them itself.
                (_, DatasetError::Unsuitable(_) | DatasetError::Prompt(_) | DatasetError::Stopped)
                | (DatasetSource::Synthetic(_) | DatasetSource::Stored(_), _) => cause.into(),
                (DatasetSource::File(_), _) => InputError::File(cause),
            },
        }
    })
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

/// Where repeats are refused, no more sessions may run at once than there are traces, unless marks tell repeats apart.
fn check_lanes(config: &RunConfig, dataset: &dyn Dataset) -> Result<(), InputError> {
    let DatasetSource::File(file) = &config.dataset.source else { return Ok(()) };
    let told_apart = config.dataset.cache_bust.is_some_and(|target| !target.is_warmup_isolation());
    let traces = dataset.len().known();
    // A fixed schedule plays each once.
    let phases = config.phases.iter().filter(|phase| !matches!(phase.mode, LoadMode::FixedSchedule(_)));
    let lanes = phases.filter_map(|phase| {
        let sessions = phase.stop.sessions.unwrap_or(u64::MAX);
        phase.concurrency.filter(|concurrency| u64::from(*concurrency).min(sessions) > traces)
    });
    let Some(concurrency) = lanes.max() else { return Ok(()) };
    if file.agents.wrap || told_apart {
        return Ok(());
    }
    Err(InputError::Oversubscribed { concurrency, traces })
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
    mock: Option<Arc<Server>>,
    threads: Threads,
    cores: f64,
    zero_ms: Option<f64>,
    token_source: String,
    /// For a question after a run without success.
    models: Models,
    /// Keeps other runs out of the result folder.
    _claim: std::fs::File,
}

impl Run<'_> {
    fn carry_out(mut self, signals: &Signals) -> Result<RunEnd, RunError> {
        let config = self.config;
        signals.attach(Arc::clone(&self.pool.shared), Arc::clone(&self.screen), config.output.clone());
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
            story::begins(&self.log, phase);
            let cpu = Arc::new(OwnCpu { mock: self.mock.clone() });
            let mut outcome = self
                .engine
                .run_phase(phase_run(config, phase, index, source, cpu))
                .map_err(StartFailure::Threads)?;
            let used = self.used();
            story::ended(&self.log, phase, &outcome);
            notes::moved_up(&self.log, outcome.counts.moved_up_ns);
            notes::skipped(&self.log, phase, outcome.counts.skipped, outcome.tally.sent);
            // What was drawn goes on in the next phase; what a phase leaves behind is let go at once.
            sampled = Some(std::mem::replace(&mut outcome.source, nothing()));
            outcomes.push((phase, outcome, used));
        }
        drop(sampled);
        monitor.position().processing();
        signals.over();
        Ok(self.finish(&outcomes, &mut monitor))
    }

    /// What the process has used so far.
    fn used(&self) -> Used {
        Used {
            cores: self.cores,
            workers: self.threads.workers,
            peak_rss_bytes: peak_rss_bytes(),
            spilled: self.ends.spilled.load(Ordering::Relaxed),
        }
    }

    /// Conversations for a phase: the sampled ones go on where the phase before stopped.
    fn source(&self, phase: &PhaseConfig, sampled: Option<Source>) -> Source {
        let feed = |order| {
            let (dataset, jobs) = (Arc::clone(&self.dataset), self.ends.jobs.clone());
            let by_phase = self.config.dataset.cache_bust.is_some_and(CacheBust::is_warmup_isolation);
            Feed::new(dataset, order, jobs, Arc::clone(&self.size), phase.kind, by_phase)
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
        if let Some(mut sampled) = sampled {
            sampled.phase_begins(phase.kind);
            return sampled;
        }
        let order = Sampler::new(self.config.dataset.sampling, self.dataset.len(), self.config.seed);
        // A phase starts no more conversations than it has requests.
        let most = |phase: &PhaseConfig| phase.stop.requests.into_iter().chain(phase.stop.sessions).min();
        let sampled =
            self.config.phases.iter().filter(|phase| !matches!(phase.mode, LoadMode::FixedSchedule(_)));
        let all = sampled.map(most).try_fold(0, |sum: u64, most| Some(sum.saturating_add(most?)));
        let mut feed = feed(Order::Sampled(Box::new(order))).expect(all);
        if let LoadMode::Rate { rate, .. } = phase.mode {
            feed.prime_rate(rate, most(phase).unwrap_or(u64::MAX));
        }
        Box::new(feed)
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

/// A phase in the engine's terms.
fn phase_run(
    config: &RunConfig,
    phase: &PhaseConfig,
    index: usize,
    source: Source,
    cpu: Arc<dyn CpuClock>,
) -> PhaseRun {
    let draws = |what: &str| stream(config.seed, &format!("load.{}.{what}", phase.kind.name()));
    let plan = schedule::Plan {
        rate_first_step_sec: config.tuning.rate_ramp_interval.as_secs_f64(),
        max_catch_up_ns: config.tuning.max_catch_up.map(aiperf_clock::nanos),
        ..schedule::Plan::new(phase, draws("arrivals"), draws("cancellation"), draws("think"))
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
        cpu,
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
