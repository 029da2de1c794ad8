//! How a recorded schedule was kept, and what replay adds.

use super::ConsoleGroup::Default;
use super::definition::{MetricDef, derived, injected, record};
use super::units::{COUNT, MS, NS, PERCENT, REQUESTS};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    record(M::ReplaySendScheduleOffset, "replay_send_schedule_offset", "Replay Send Schedule Offset").short("Sched Offset").unit(NS).int().flags(&[F::Internal, F::FixedSchedule]),
    derived(M::ReplaySchedLagP50, "replay_sched_lag_p50", "Replay Schedule Lag p50").short("Sched Lag p50").unit(MS).float().flags(&[F::FixedSchedule, F::NoTimeslice]).needs(&[M::ReplaySendScheduleOffset]),
    derived(M::ReplaySchedLagP90, "replay_sched_lag_p90", "Replay Schedule Lag p90").short("Sched Lag p90").unit(MS).float().flags(&[F::FixedSchedule, F::NoTimeslice]).needs(&[M::ReplaySendScheduleOffset]),
    derived(M::ReplaySchedLagP99, "replay_sched_lag_p99", "Replay Schedule Lag p99").short("Sched Lag p99").unit(MS).float().flags(&[F::FixedSchedule, F::NoTimeslice]).needs(&[M::ReplaySendScheduleOffset]),
    derived(M::ReplaySchedDegraded, "replay_sched_degraded", "Replay Schedule Degraded").short("Sched Degraded").unit(COUNT).int().flags(&[F::FixedSchedule, F::NoTimeslice]).needs(&[M::ReplaySchedLagP50, M::ReplaySchedLagP90, M::ReplaySchedLagP99]),
    record(M::CreditDropLatency, "credit_drop_latency", "Credit Drop Latency").short("Credit Latency").units(NS, MS).int().flags(&[F::Internal]),
    injected(M::CreditToStartLatency, "credit_to_start_latency", "Credit-to-Start Latency").unit(MS).float().flags(&[F::NoTimeslice]),
    injected(M::TheoreticalPrefixCacheHit, "theoretical_prefix_cache_hit", "Theoretical Prefix Cache Hit").unit(PERCENT).float().shown_last(Default).flags(&[F::NoTimeslice]),
    injected(M::SkippedContextOverflowCount, "skipped_context_overflow_count", "").unit(REQUESTS).float().flags(&[F::NoTimeslice]),
];
