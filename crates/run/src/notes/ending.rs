//! What is said of a run that came to no good end: why, and what to do next.

use aiperf_config::{Arrival, Cancellation, LoadMode, PhaseConfig};
use aiperf_metrics::Summary;
use aiperf_report::PhaseResults;

use super::failures::{Asked, failures};

use crate::compute::Threshold;

/// What is said of a run that its failures ended.
pub(crate) fn too_many_failed(summary: &Summary, threshold: f64) -> String {
    let (failed, all) = (summary.failed_count, summary.record_count());
    let on_purpose = match summary.cancelled_count {
        0 => String::new(),
        cancelled => format!(", {cancelled} of them broken off by --request-cancellation-rate"),
    };
    format!(
        "{failed} of {all} requests failed{on_purpose}: --failed-request-threshold {threshold} was passed, which ended the \
         run (exit code 1)"
    )
}

/// What is said of a run whose failures were too many and its requests too few to be judged.
pub(crate) fn too_few_to_judge(summary: &Summary, threshold: Threshold) -> Option<String> {
    let (failed, all) = (summary.failed_count, summary.record_count());
    let Threshold { share, least } = threshold;
    (all < least && failed as f64 / all as f64 > share).then(|| {
        format!(
            "{failed} of {all} requests failed, more than --failed-request-threshold {share} allows, but it judges no run of \
             fewer than {least} requests: send more of them"
        )
    })
}

/// What is said of a run whose grace period was over before its answers were.
pub(crate) fn slowest_missing(phase: &PhaseResults) -> Option<String> {
    let (cut, sent) = (phase.in_flight_cancelled_count, phase.sent_count);
    (cut > 0 && phase.summary.valid_count > 0).then(|| {
        format!(
            "--benchmark-grace-period cut off {cut} of {sent} requests: they were the slowest, and are in no latency; raise it"
        )
    })
}

/// What is said of a run that was interrupted before anything was measured.
pub(crate) fn interrupted_early(in_warmup: bool) -> &'static str {
    if in_warmup {
        "interrupted during the warmup: nothing was measured (exit code 1)"
    } else {
        "interrupted before the first request: nothing was measured (exit code 1)"
    }
}

/// What is said of a run without a success: why there is none, or what helps against the failure that came up most often.
pub(crate) fn no_success(results: Option<&PhaseResults>, asked: &Asked<'_>) -> String {
    let phase = asked.phase;
    let why = results.and_then(|results| {
        all_broken_off(&results.summary, phase.cancellation)
            .or_else(|| nothing_sent(results, phase))
            .or_else(|| all_cut_off(results, phase))
            .or_else(|| failures(&results.summary.error_groups, asked))
    });
    let why = why.map(|why| format!("; {why}"));
    format!("no request succeeded: the run has failed (exit code 1){}", why.unwrap_or_default())
}

/// The reason, where it is that all of it was broken off as asked for.
fn all_broken_off(summary: &Summary, cancellation: Option<Cancellation>) -> Option<String> {
    let cancelled = summary.cancelled_count;
    let share = cancellation.filter(|_| cancelled > 0 && cancelled == summary.record_count())?.share;
    let percent = (share * 1e8).round() / 1e6;
    Some(format!("every request was broken off by --request-cancellation-rate {percent}"))
}

/// The reason, where it is that the time was over before a request left.
fn nothing_sent(results: &PhaseResults, phase: &PhaseConfig) -> Option<String> {
    let duration =
        phase.stop.duration.filter(|_| results.sent_count == 0 && !results.was_cancelled)?.as_secs_f64();
    let LoadMode::Rate { rate, arrival } = phase.mode else {
        return Some(format!("no request was due and ready within {duration} s: raise --benchmark-duration"));
    };
    let first = match arrival {
        _ if phase.ramps.rate.is_some() => String::new(),
        Arrival::Constant => format!(": at {rate} requests/s the first is due after {} s", 1.0 / rate),
        Arrival::Poisson | Arrival::Gamma(_) => {
            format!(": at {rate} requests/s they are {} s apart on average", 1.0 / rate)
        }
    };
    Some(format!("no arrival fell into {duration} s{first}; raise --benchmark-duration or --request-rate"))
}

/// The reason, where it is that no request was back when the time for that was over.
fn all_cut_off(results: &PhaseResults, phase: &PhaseConfig) -> Option<String> {
    let cut = results.in_flight_cancelled_count;
    if cut == 0 || cut < results.sent_count {
        return None;
    }
    let requests =
        if cut == 1 { "the only request was".to_owned() } else { format!("all {cut} requests were") };
    if results.was_cancelled {
        return Some(format!("{requests} cut off by the interrupt"));
    }
    let grace = phase.grace.map(|grace| format!(" {}", grace.as_secs_f64())).unwrap_or_default();
    Some(format!("{requests} cut off by --benchmark-grace-period{grace}: raise it, or --benchmark-duration"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aiperf_clock::Mono;
    use aiperf_types::PhaseKind;

    use super::*;
    use crate::notes::tests::{asked, endpoint, phase};

    /// A phase that was over with `cut` of `sent` requests under way and no record.
    fn without_records(sent: u64, cut: u64) -> PhaseResults {
        PhaseResults {
            kind: PhaseKind::Profiling,
            index: 0,
            start: Mono(0),
            end: Mono(1),
            summary: Summary::default(),
            was_cancelled: false,
            sent_count: sent,
            in_flight_cancelled_count: cut,
            branches: None,
            load_delivery: None,
        }
    }

    #[test]
    fn requests_that_were_all_cut_off_are_the_reason_that_is_given() {
        let (phase, endpoint) = (phase(), endpoint());
        let said = |results: &PhaseResults| no_success(Some(results), &asked(&phase, &endpoint));
        let text = said(&without_records(3, 3));
        let reason = "; all 3 requests were cut off by --benchmark-grace-period 0.5: raise it, or --benchmark-duration";
        assert!(text.ends_with(reason), "{text}");
        assert!(said(&without_records(1, 1)).contains("; the only request was cut off by"));
        let interrupted = PhaseResults { was_cancelled: true, ..without_records(3, 3) };
        assert!(said(&interrupted).ends_with("; all 3 requests were cut off by the interrupt"));
    }

    #[test]
    fn a_run_that_was_over_before_its_first_arrival_says_when_that_is_due() {
        let said = |arrival, results: &PhaseResults| {
            let mut phase = phase();
            phase.mode = LoadMode::Rate { rate: 0.5, arrival };
            phase.stop.duration = Some(Duration::from_secs(1));
            no_success(Some(results), &asked(&phase, &endpoint()))
        };
        let text = said(Arrival::Constant, &without_records(0, 0));
        let reason = "; no arrival fell into 1 s: at 0.5 requests/s the first is due after 2 s; raise --benchmark-duration or \
                      --request-rate";
        assert!(text.ends_with(reason), "{text}");
        assert!(said(Arrival::Poisson, &without_records(0, 0)).contains("they are 2 s apart on average"));
        let interrupted = PhaseResults { was_cancelled: true, ..without_records(0, 0) };
        assert!(said(Arrival::Constant, &interrupted).ends_with("(exit code 1)"));
    }

    #[test]
    fn failures_on_purpose_are_told_where_they_passed_the_threshold() {
        let summary = |cancelled_count| Summary {
            valid_count: 7,
            failed_count: 16,
            cancelled_count,
            ..Summary::default()
        };
        let text = too_many_failed(&summary(15), 0.3);
        let said = "16 of 23 requests failed, 15 of them broken off by --request-cancellation-rate: --failed-request-threshold";
        assert!(text.starts_with(said), "{text}");
        assert!(too_many_failed(&summary(0), 0.3).starts_with("16 of 23 requests failed: --failed"));
        let judged = |share, least| too_few_to_judge(&summary(0), Threshold { share, least });
        assert_eq!((judged(0.3, 23), judged(0.8, 24)), (None, None));
        assert!(
            judged(0.3, 24)
                .unwrap()
                .contains("--failed-request-threshold 0.3 allows, but it judges no run of fewer")
        );
    }
}
