//! What the process has used, and what it may use.

use std::sync::Arc;

use aiperf_load::{CpuClock, SystemCpu};
use aiperf_mock_server::Server;

/// CPU time of the process, in which the mock server may run beside the client.
pub(crate) struct OwnCpu {
    pub(crate) mock: Option<Arc<Server>>,
}

impl CpuClock for OwnCpu {
    fn process_ns(&self) -> u64 {
        SystemCpu.process_ns()
    }

    fn apart_ns(&self) -> u64 {
        self.mock.as_ref().and_then(|mock| mock.cpu_ns()).unwrap_or_default()
    }

    fn thread_ns(&self, tid: i32) -> u64 {
        SystemCpu.thread_ns(tid)
    }
}

/// Most memory the process ever held, bytes.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Cores the process may use: affinity, cut by the quota of its control group.
pub(crate) fn cores() -> f64 {
    let affine = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    quota().map_or(affine, |quota| quota.min(affine))
}

/// The CPU quota of the control group, in cores.
fn quota() -> Option<f64> {
    let text = std::fs::read_to_string("/sys/fs/cgroup/cpu.max").ok()?;
    parse_quota(&text)
}

fn parse_quota(text: &str) -> Option<f64> {
    let mut parts = text.split_ascii_whitespace();
    let quota: f64 = parts.next()?.parse().ok()?;
    let period: f64 = parts.next()?.parse().ok()?;
    (period > 0.0).then(|| quota / period)
}

/// How many threads of each kind a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    pub(crate) workers: usize,
    pub(crate) compute: usize,
}

impl Threads {
    /// Half of the cores send, up to 16; the rest computes. Either may be chosen. More workers than there can be
    /// requests in flight (`in_flight`, where that is known) would have nothing to do.
    pub(crate) fn of(
        cores: f64,
        workers: Option<usize>,
        compute: Option<usize>,
        in_flight: Option<u64>,
    ) -> Threads {
        let whole = cores.floor().max(1.0) as usize;
        let useful = in_flight.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX).max(1);
        let workers = workers.unwrap_or((whole / 2).clamp(1, 16)).clamp(1, useful);
        let compute = compute.unwrap_or_else(|| whole.saturating_sub(workers).max(1)).max(1);
        Threads { workers, compute }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_the_cores() {
        let of = |cores| Threads::of(cores, None, None, None);
        assert_eq!(of(1.0), Threads { workers: 1, compute: 1 });
        assert_eq!(of(2.0), Threads { workers: 1, compute: 1 });
        assert_eq!(of(8.0), Threads { workers: 4, compute: 4 });
        assert_eq!(of(64.0), Threads { workers: 16, compute: 48 });
        assert_eq!(Threads::of(8.0, Some(7), None, None), Threads { workers: 7, compute: 1 });
        assert_eq!(Threads::of(8.0, Some(7), None, Some(2)), Threads { workers: 2, compute: 6 });
        assert_eq!(Threads::of(0.5, None, Some(3), None), Threads { workers: 1, compute: 3 });
    }

    #[test]
    fn kubernetes_sigs_inference_perf_623_a_quota_counts_as_cores() {
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
    }
}
