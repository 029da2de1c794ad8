//! Bringing a run to its end: figures, files, report.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use aiperf_clock::now;
use aiperf_config::{PhaseConfig, RunConfig, Ui};
use aiperf_dataset::Dataset;
use aiperf_load::{PhaseOutcome, StopCause};
use aiperf_metrics::delivery::{LoadDelivery, Verdict, judge};
use aiperf_metrics::{Context, Store, Window};
use aiperf_report::{
    BranchStats, FileNames, Log, Palette, Patience, PhaseResults, RunResults, WrittenFile, console,
    export_all, remedy,
};
use aiperf_types::PhaseKind;

use super::{Run, RunEnd, context};
use crate::compute::{Shared, Threshold, origin};
use crate::delivery::{Used, facts};
use crate::inputs::{Finished, Inputs};
use crate::monitor::Monitor;
use crate::notes;
use crate::story;

impl Run<'_> {
    /// Finishes the records, makes every figure, writes every file, prints the report.
    pub(super) fn finish(
        self,
        outcomes: &[(&PhaseConfig, PhaseOutcome, Used)],
        monitor: &mut Monitor,
    ) -> RunEnd {
        let Run { config, dataset, log, screen, engine, ends, pool, mock, models, .. } = self;
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
            let mut phase = results(&mut store, &context, phase, index as u16, outcome, used);
            if let (Some(branches), Some(failed)) = (&mut phase.branches, shared.children_failed.get(index)) {
                branches.errored = failed.load(Ordering::Relaxed);
                branches.completed = branches.completed.saturating_sub(branches.errored);
            }
            phases.push(phase);
        }
        let patience = (config.runtime.ui != Ui::None).then(|| Patience::new(screen));
        let Closed { written, mut failures, has_cut_inputs } =
            close_files(&shared, dataset.as_ref(), patience);
        let is_signed = [
            ("Inputs JSON", shared.inputs.as_ref().is_some_and(Inputs::is_signed)),
            ("Raw Records", shared.raw_is_signed.load(Ordering::Relaxed)),
        ];
        notes::credentials_as_sent(&log, &config.endpoint.extra_inputs, &written, &is_signed);

        let profiling = phases.iter().rev().find(|phase| phase.kind == PhaseKind::Profiling);
        let successes = profiling.map_or(0, |phase| phase.summary.valid_count);
        let suspect = profiling
            .and_then(|phase| phase.load_delivery.as_ref())
            .is_some_and(|delivery| delivery.verdict == Verdict::Suspect);
        // A record that nothing was sent of may be bad, too: it is met when the rest of the data is written. Where nothing
        // is written, it would depend on how far reading had come.
        let met_at_last = || Some(shared.inputs.as_ref().and(dataset.fault())?.to_string().into());
        let fault = shared.fault.get().cloned().or_else(met_at_last);
        let mut run_results = RunResults {
            config,
            version: self.version,
            redactor: self.redactor,
            phases,
            was_cancelled: stopped.is_some_and(StopCause::is_cancellation),
            incomplete_reason: incomplete_reason(stopped, fault.as_deref()),
            token_source: self.token_source,
            written,
            has_partial_file: has_cut_inputs || !failures.is_empty(),
            // It may have been deleted during the run.
            log_file: log.path().filter(|path| path.exists()).map(Path::to_path_buf),
            has_log_gaps: log.has_gaps(),
        };
        failures.extend(export_all(&mut run_results).iter().map(ToString::to_string));
        notes::say(&log, &dataset.late_notes());
        if let Some(profiling) = run_results.profiling() {
            notes::after(&log, &profiling.summary, config.endpoint.use_server_token_count);
            if let Some(round_trip) = config.network_latency_mean_ms {
                notes::network(&log, &profiling.summary, round_trip);
            }
        }
        if let Some(warmup) = run_results.warmup() {
            notes::after_warmup(&log, warmup);
        }
        run_results.has_log_gaps = log.has_gaps();
        failures.extend(show(config, &run_results).err());
        for failure in &failures {
            log.error("export", failure);
        }
        if successes == 0
            && answered_badly(&run_results)
            && let Some(names) = models.names()
            && !names.is_empty()
        {
            log.info("server", &format!("the server lists these models: {}", names.join(", ")));
        }
        if let Some(fault) = &fault {
            log.error("dataset", fault);
        }
        say_why_it_failed(&log, config, &run_results, stopped, shared.threshold);
        let aborted = fault.is_some() || matches!(stopped, Some(StopCause::Threshold | StopCause::BadRecord));
        let end = if successes == 0 || aborted || !failures.is_empty() {
            RunEnd::Failed
        } else if suspect {
            RunEnd::Suspect
        } else {
            RunEnd::Good
        };
        story::over(&log, &run_results, end);
        end
    }
}

/// Says why a run failed, or may have: too many failures, an interrupt before anything was measured, no success.
fn say_why_it_failed(
    log: &Log,
    config: &RunConfig,
    results: &RunResults<'_>,
    stopped: Option<StopCause>,
    threshold: Option<Threshold>,
) {
    if stopped == Some(StopCause::Threshold)
        && let (Some(phase), Some(threshold)) = (results.profiling(), threshold)
    {
        log.error("run", &notes::too_many_failed(&phase.summary, threshold.share));
    }
    if stopped.is_none()
        && let (Some(phase), Some(threshold)) = (results.profiling(), threshold)
        && let Some(said) = notes::too_few_to_judge(&phase.summary, threshold)
    {
        log.warning("run", &said);
    }
    if stopped.is_none()
        && let Some(phase) = results.profiling()
        && let Some(said) = notes::slowest_missing(phase)
    {
        log.warning("run", &said);
    }
    if results.profiling().is_none() && stopped == Some(StopCause::Interrupt) {
        log.error("run", notes::interrupted_early(results.warmup().is_some()));
    } else if results.profiling().is_none_or(|phase| phase.summary.valid_count == 0) {
        log.error("run", &notes::no_success(results.profiling(), &notes::Asked::of(config)));
    }
}

pub(super) fn results(
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
        was_cancelled: outcome.stopped.is_some_and(StopCause::is_cancellation),
        sent_count: outcome.tally.sent,
        in_flight_cancelled_count: outcome.counts.cut,
        branches: outcome.branches.map(|counts| BranchStats {
            spawned: counts.started,
            completed: counts.finished,
            errored: 0,
            truncated: counts.started.saturating_sub(counts.finished),
            delayed: counts.delayed,
            suspended: counts.waits,
            resumed: counts.resumed,
        }),
        load_delivery,
    }
}

/// The files that grew during the run.
struct Closed {
    written: Vec<WrittenFile>,
    failures: Vec<String>,
    /// `inputs.json` lacks conversations.
    has_cut_inputs: bool,
}

/// Closes the files that were written during the run; what they are, and what failed.
fn close_files(shared: &Shared, dataset: &dyn Dataset, mut patience: Option<Patience>) -> Closed {
    let (mut written, mut failures, mut has_cut_inputs) = (Vec::new(), Vec::new(), false);
    for (sink, label) in [(&shared.records, "Records JSONL"), (&shared.raw, "Raw Records")] {
        let Some(sink) = sink else { continue };
        match sink.close(now()) {
            _ if sink.is_gone() => failures.push(format!(
                "{label}: {} was deleted while the run wrote to it: nothing of it is left",
                sink.path().display()
            )),
            Ok(summary) => written.push(WrittenFile::whole(label, summary.path)),
            Err(error) => {
                // What is in it is whole, and stays.
                let path = sink.path().to_owned();
                written.push(WrittenFile { label, path, ends_after: Some((error.lines, "records")) });
                failures.push(format!("{label}: {error}"));
            }
        }
    }
    if let Some(inputs) = &shared.inputs {
        let wanted = || shared.control.stopped().is_none();
        let progress = |done, all| {
            if let Some(patience) = &mut patience {
                patience.tell(done, all, "conversations are in inputs.json");
            }
        };
        match inputs.finish(dataset, &shared.format, wanted, progress) {
            Ok(finished) => {
                has_cut_inputs = finished.is_cut();
                let Finished { path, holds, of } = finished;
                if has_cut_inputs {
                    let all = of.map(|of| format!(" of {of}")).unwrap_or_default();
                    let why = match dataset.fault() {
                        Some(_) => "a bad record comes after them",
                        None => "the run was ended before the others were made",
                    };
                    shared.log.info(
                        "export",
                        &format!("inputs.json holds the first {holds}{all} conversations: {why}"),
                    );
                }
                let ends_after = has_cut_inputs.then_some((holds, "conversations"));
                written.push(WrittenFile { label: "Inputs JSON", path, ends_after });
            }
            Err(error) => {
                failures.push(format!(
                    "Inputs JSON: cannot write inputs.json: {error}; {}",
                    remedy(&error, "--artifact-dir")
                ));
            }
        }
    }
    Closed { written, failures, has_cut_inputs }
}

/// Whether the server said that it does not know what it was asked for.
fn answered_badly(results: &RunResults<'_>) -> bool {
    let groups = results.profiling().map_or(&[][..], |phase| &phase.summary.error_groups);
    groups.iter().any(|group| matches!(group.error.code, Some(400 | 404 | 422)))
}

fn incomplete_reason(stopped: Option<StopCause>, fault: Option<&str>) -> Option<String> {
    Some(match stopped.or_else(|| fault.map(|_| StopCause::BadRecord))? {
        StopCause::Interrupt => "interrupted".to_owned(),
        StopCause::Threshold => "more requests failed than --failed-request-threshold allows".to_owned(),
        StopCause::BadRecord => format!("a bad record was met: {}", fault.unwrap_or_default()),
    })
}

/// Prints the report. A closed stdout is no failure: nobody wanted it there. One that cannot take it, as on a full disk,
/// is.
fn show(config: &RunConfig, results: &RunResults<'_>) -> Result<(), String> {
    let stdout = std::io::stdout();
    let palette = Palette::for_stream(stdout.is_terminal(), config.tuning.color);
    let width = console::width_of(&stdout);
    // What is copied from a file or a pipe is copied as it is: the command stays on one line there.
    let tail_width = if stdout.is_terminal() { width } else { usize::MAX };
    let text = console::tables(results, width, palette) + &console::tail(results, tail_width, palette);
    console::print(&mut stdout.lock(), &text).map_err(|error| {
        let kept = config.output.dir.join(FileNames::new(config.output.prefix.as_deref()).console());
        let rest = if results.written.iter().any(|file| file.path == kept) {
            format!("it is in {}", kept.display())
        } else {
            "make room, or send it elsewhere".to_owned()
        };
        format!("cannot write the report to stdout: {error}; {rest}")
    })
}
