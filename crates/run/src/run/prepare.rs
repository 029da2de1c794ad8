//! Making ready: files, threads, connections.

use std::fs::{File, TryLockError};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use aiperf_clock::now;
use aiperf_config::{DatasetSource, ExportLevel, RunConfig};
use aiperf_dataset::{Dataset, Stop};
use aiperf_endpoint::{Format, ReadPlan};
use aiperf_load::transport::SocketOptions;
use aiperf_load::{Control, Engine, ExchangeSink, PacerPlace, Settings, preflight};
use aiperf_metrics::live;
use aiperf_report::{FileNames, Level, Log, RecordSink, Redactor, Screen, make_dir, prepare_dir};
use aiperf_tokenize::Tokenizer;

use super::{Run, context};
use crate::cache_bust::CacheBuster;
use crate::compute::{Ends, Pool, Shared, Threshold};
use crate::connections;
use crate::detail;
use crate::error::{RunError, StartFailure};
use crate::feed::PreparedSize;
use crate::inputs::Inputs;
use crate::models::Models;
use crate::notes;
use crate::record::Recorder;
use crate::story;
use crate::target::Destination;
use crate::usage::{Threads, cores};

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

impl<'a> Run<'a> {
    pub(super) fn prepare(
        config: &'a RunConfig,
        version: &'a str,
        tokenizer: Option<Tokenizer>,
        dataset: Arc<dyn Dataset>,
        zero_ms: Option<f64>,
        mut destination: Destination,
        making: Stop,
    ) -> Result<Run<'a>, RunError> {
        let mock = destination.mock.take().map(Arc::new);
        let models = Models::new(destination.models.clone());
        let redactor = Redactor::new(config);
        let screen = Arc::new(Screen::stderr(config.tuning.color));
        let folder = |cause| StartFailure::Folder { dir: config.output.dir.display().to_string(), cause };
        let claim = claim(&config.output.dir)?;
        let (log, replaced) = open_log(config, &screen, &redactor).map_err(folder)?;

        let endpoint = &config.endpoint;
        let format =
            Format::new(endpoint, &config.models[0]).force_content_parts(config.tuning.force_content_parts);
        let format = Arc::new(format);
        notes::other_runs(&log, config, &replaced);
        notes::before(&log, config, dataset.as_ref());
        say_of_server(&log, config, &destination, &models);
        let raw = config.output.level == ExportLevel::Raw;
        let plan = ReadPlan {
            keep_raw: raw,
            keep_text: !endpoint.use_server_token_count,
            ..ReadPlan::new(endpoint.kind, endpoint.streaming)
        };
        let token_source = token_source(config, tokenizer.as_ref());
        let recorder = Recorder::new(config, plan, tokenizer, Arc::clone(&log));
        let Files { records, raw: raw_records, inputs } = Files::create(config).map_err(folder)?;

        let cores = cores();
        let most = connections::bound(&config.phases, config.tuning.connection_limit);
        let threads = Threads::of(cores, config.runtime.workers, config.runtime.record_processors, most);
        let control = Arc::new(Control::new());
        let mut ends = Ends::new();
        let size = Arc::new(PreparedSize::default());
        let want_template_input = recorder.counts_through_template();
        let shared = Shared {
            dataset: Arc::clone(&dataset),
            format: Arc::clone(&format),
            cache_bust: CacheBuster::of(config),
            token_source: token_source.clone(),
            recorder,
            context: context(config),
            schedule_zero_ms: zero_ms,
            inputs,
            records,
            raw: raw_records,
            raw_is_signed: AtomicBool::new(false),
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
            children_failed: config.phases.iter().map(|_| AtomicU64::new(0)).collect(),
            fault: std::sync::OnceLock::new(),
            making,
        };
        let pool = Pool::start(shared, threads.compute, &mut ends, config.output.dir.clone())
            .map_err(StartFailure::Threads)?;
        story::settled(&log, config, version, threads, cores);
        story::data(&log, config, dataset.as_ref(), &token_source);
        let settings = settings(config, destination, format, plan, want_template_input);
        let place = pacer_place(config, threads);
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
            models,
            _claim: claim,
        })
    }
}

/// Makes the result folder, and the log in it; gives the reports of the runs with another prefix that it replaced.
fn open_log(
    config: &RunConfig,
    screen: &Arc<Screen>,
    redactor: &Redactor,
) -> std::io::Result<(Arc<Log>, Vec<String>)> {
    let dir = &config.output.dir;
    let replaced = prepare_dir(dir, &FileNames::new(config.output.prefix.as_deref()))?;
    let level = Level::from_number(config.runtime.log_level);
    let log = Log::open(dir, level, Arc::clone(screen), redactor.clone())?;
    Ok((Arc::new(log), replaced))
}

/// Keeps other runs out of a result folder for as long as the file is open. Nothing is left behind.
fn claim(dir: &Path) -> Result<File, StartFailure> {
    let name = || dir.display().to_string();
    let open = make_dir(dir).and_then(|()| File::open(dir));
    let folder = open.map_err(|cause| StartFailure::Folder { dir: name(), cause })?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StartFailure::FolderTaken(name())),
        // A file system without locks is no reason not to run.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(folder),
    }
}

fn pacer_place(config: &RunConfig, threads: Threads) -> PacerPlace {
    if threads.workers > 1 || config.tuning.pacer_thread { PacerPlace::Thread } else { PacerPlace::Worker }
}

/// Who counts tokens, as results name it.
fn token_source(config: &RunConfig, tokenizer: Option<&Tokenizer>) -> String {
    match tokenizer {
        _ if config.endpoint.use_server_token_count => "server usage".to_owned(),
        Some(tokenizer) => match tokenizer.revision() {
            Some(revision) => format!("{}@{revision}", tokenizer.name()),
            None => tokenizer.name().to_owned(),
        },
        None => "none".to_owned(),
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
    let Destination { origin, resolver, proxy, tls, head, models: _, mock: _ } = destination;
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
        connection_limit: config.tuning.connection_limit.and_then(NonZeroU32::new),
        want_facts: config.output.http_trace || raw,
        want_headers: config.output.http_trace || raw,
        want_body: raw,
        want_texts: !endpoint.use_server_token_count,
        want_template_input,
    }
}

/// Says how much fits between here and the server, and warns of recorded requests that the target's context does not hold,
/// where the server says how much it does. Where the user said it, they were told when the data were read.
fn say_of_server(log: &Log, config: &RunConfig, destination: &Destination, models: &Models) {
    let (targets, descriptors) = (destination.resolver.last(), preflight::raise_descriptor_limit());
    let room = preflight::room(&targets, &config.endpoint.bind_addresses, descriptors);
    notes::room(log, &config.phases, room);
    detail::server(log, &targets, descriptors);
    let Some(public) = &config.dataset.public else { return };
    if public.request_tokens.is_empty() || public.context_limit.is_some() {
        return;
    }
    let Some(limit) = models.context(&config.models[0]) else { return };
    if let Some(warning) = aiperf_dataset::public::beyond_context(&public.request_tokens, limit) {
        log.warning("dataset", &warning);
    }
}

/// The whole dataset is written for data that the run makes or reads text from; traces and authored bodies are
/// on disk already.
fn writes_inputs(config: &RunConfig) -> bool {
    match &config.dataset.source {
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => true,
        DatasetSource::File(file) => aiperf_dataset::format(file.format).writes_inputs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_claimed_by_one_run_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = claim(dir.path()).unwrap();
        assert!(matches!(claim(dir.path()), Err(StartFailure::FolderTaken(_))));
        drop(first);
        claim(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
