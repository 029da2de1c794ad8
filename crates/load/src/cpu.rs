//! What a phase costs in CPU time: read at T0 and at its end, so that neither the making ready nor the end of the run is
//! in it.

use std::sync::Arc;

use aiperf_clock::{Mono, now};
use rustix::time::{ClockId, clock_gettime};

/// Tells how much CPU time has been used so far.
pub trait CpuClock: Send + Sync {
    /// By the whole process, ns.
    fn process_ns(&self) -> u64;
    /// By those of its threads that are not the client's, such as those of a server in the process, ns.
    fn apart_ns(&self) -> u64;
    /// By thread `tid` of the process, ns.
    fn thread_ns(&self, tid: i32) -> u64;
}

/// What the system says of a process whose threads are all the client's.
#[derive(Debug)]
pub struct SystemCpu;

impl CpuClock for SystemCpu {
    fn process_ns(&self) -> u64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn apart_ns(&self) -> u64 {
        0
    }

    fn thread_ns(&self, tid: i32) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat"));
        // The first number is the time on a CPU.
        text.ok().and_then(|text| text.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
    }
}

/// CPU time that was used in a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Between the two readings, on the clock, ns.
    pub span_ns: u64,
    /// By the process, ns.
    pub process_ns: u64,
    /// By threads that are not the client's, ns.
    pub apart_ns: u64,
    /// By each worker, ns.
    pub workers_ns: Vec<u64>,
}

/// Takes the readings.
pub(crate) struct CpuMeter {
    pub(crate) clock: Arc<dyn CpuClock>,
    /// The threads of the workers.
    pub(crate) workers: Vec<i32>,
}

/// One reading.
pub(crate) struct CpuReading {
    at: Mono,
    process_ns: u64,
    apart_ns: u64,
    workers_ns: Vec<u64>,
}

impl CpuMeter {
    pub(crate) fn read(&self) -> CpuReading {
        CpuReading {
            at: now(),
            process_ns: self.clock.process_ns(),
            apart_ns: self.clock.apart_ns(),
            workers_ns: self.workers.iter().map(|&tid| self.clock.thread_ns(tid)).collect(),
        }
    }
}

impl CpuReading {
    /// What was used since `earlier`, a reading of the same meter.
    pub(crate) fn since(&self, earlier: &CpuReading) -> CpuTime {
        let workers = self.workers_ns.iter().zip(&earlier.workers_ns);
        CpuTime {
            span_ns: self.at.saturating_since(earlier.at),
            process_ns: self.process_ns.saturating_sub(earlier.process_ns),
            apart_ns: self.apart_ns.saturating_sub(earlier.apart_ns),
            workers_ns: workers.map(|(now, before)| now.saturating_sub(*before)).collect(),
        }
    }
}
