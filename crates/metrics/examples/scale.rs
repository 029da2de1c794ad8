//! Time and memory of the metrics of a large run: `scale [records] [gaps per record]`.
//!
//! Prints nanoseconds of CPU per evaluated and per stored record, bytes kept per record, and seconds and
//! additional memory for the summary.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a developer's measuring tool")]

use std::hint::black_box;
use std::sync::Arc;

use aiperf_clock::{Mono, now};
use aiperf_metrics::{Context, RecordValues, Store, Window, evaluate};
use aiperf_types::{
    Answer, Channel, ContentEvent, HttpTrace, Identity, PhaseKind, PlanInstants, RequestFacts, RequestRecord,
    TokenCounts, Usage,
};
use rustix::time::{ClockId, clock_gettime};

/// A small generator: the figures must not depend on another crate's speed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Mostly near `mean`, sometimes several times as much.
    fn skewed(&mut self, mean: u64) -> u64 {
        let base = mean / 2 + self.below(mean);
        if self.below(50) == 0 { base * (2 + self.below(6)) } else { base }
    }
}

fn record(number: u64, gaps: usize, random: &mut Random) -> RequestRecord {
    // 10,000 requests per second.
    let due = Mono(1_000_000_000_000 + number * 100_000);
    let issued = due.plus(random.below(3_000));
    let start = issued.plus(2_000 + random.below(8_000));
    let send_start = start.plus(1_000 + random.below(2_000));
    let send_end = send_start.plus(3_000 + random.below(4_000));
    let first = send_end.plus(random.skewed(20_000_000));
    let mut at = first;
    let mut content = vec![ContentEvent { at, channel: Channel::Text }];
    for _ in 0..gaps {
        at = at.plus(random.skewed(8_000_000));
        content.push(ContentEvent { at, channel: Channel::Text });
    }
    let end = at.plus(random.below(2) * random.below(40_000));
    let tokens = gaps as u64 + 1;
    RequestRecord {
        identity: Identity {
            number,
            request_id: [b'0'; 36],
            correlation_id: Arc::from(""),
            conversation_id: Arc::from(""),
            turn_index: 0,
            phase: PhaseKind::Profiling,
            phase_index: 0,
            worker: 0,
            lineage: None,
            source: None,
        },
        plan: PlanInstants { scheduled: Some(due), due, let_go: due, issued, initial_fill: false },
        start,
        headers: Some(first.minus(random.below(20_000))),
        end,
        trace: HttpTrace {
            reused: true,
            send_start: Some(send_start),
            headers_sent: Some(send_start),
            send_end: Some(send_end),
            receive_start: Some(first),
            receive_end: Some(end),
            chunks_sent: 1,
            chunks_received: tokens as u32 + random.below(3) as u32,
            bytes_sent: 700 + random.below(300),
            bytes_received: 1_900 + random.below(40),
            ..HttpTrace::default()
        },
        status: Some(200),
        request: RequestFacts { max_tokens: Some(tokens), ..RequestFacts::default() },
        answer: Answer {
            content,
            usage: Some(Usage {
                prompt_tokens: Some(128),
                completion_tokens: Some(tokens),
                total_tokens: Some(128 + tokens),
                ..Usage::default()
            }),
            stream_complete: Some(true),
            ..Answer::default()
        },
        tokens: TokenCounts { input: Some(128), output: Some(tokens), reasoning: None },
        error: None,
        cancelled_at: None,
        context_overflow: false,
        client_delayed: false,
    }
}

/// CPU time of the process, ns: other work on the machine does not count.
fn cpu() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A line of `/proc/self/status`, in bytes.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = text.lines().find(|line| line.starts_with(key)).expect("the kernel writes this line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number of KiB") * 1024
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a whole number"));
    let count = arguments.next().unwrap_or(1_000_000);
    let gaps = arguments.next().unwrap_or(7) as usize;
    let context = Context::default();
    let mut random = Random(42);

    let sample: Vec<RequestRecord> = (0..4096).map(|number| record(number, gaps, &mut random)).collect();
    let mut values = RecordValues::new();
    for with_gaps in [true, false] {
        let context = Context { streaming: with_gaps, ..context.clone() };
        let started = cpu();
        for _ in 0..50 {
            for record in &sample {
                evaluate(record, &context, &mut values);
                black_box(&values);
            }
        }
        let each = (cpu() - started) / (50 * sample.len() as i64);
        println!("evaluate ({} values): {each} ns per record", values.iter().count());
    }

    // The store of a thread keeps its records; the making of records is timed apart.
    let mut store = Store::new();
    let mut pushing = 0;
    let before = status("VmRSS");
    let mut number = 0;
    while number < count {
        let batch: Vec<RequestRecord> =
            (number..count.min(number + 4096)).map(|number| record(number, gaps, &mut random)).collect();
        number += batch.len() as u64;
        let started = cpu();
        for record in &batch {
            store.push(record);
        }
        pushing += cpu() - started;
    }
    println!("push: {} ns per record", pushing / count as i64);
    let kept = status("VmRSS");
    println!(
        "kept: {:.1} bytes per record packed, {:.1} resident",
        store.bytes() as f64 / count as f64,
        (kept - before) as f64 / count as f64
    );
    let (started, burnt) = (now(), cpu());
    let end = Mono(1_000_000_000_000 + count * 100_000 + 500_000_000);
    let window = Window { start: Mono(1_000_000_000_000), end: Some(end) };
    let summary = store.summarise(PhaseKind::Profiling, &context, &window);
    println!(
        "summarise: {:.2} s ({:.2} s of CPU), {} metrics, peak {:.1} bytes per record above what is kept",
        now().since(started) as f64 / 1e9,
        (cpu() - burnt) as f64 / 1e9,
        summary.blocks.len(),
        status("VmHWM").saturating_sub(kept) as f64 / count as f64
    );
    println!("ended with {} MiB resident at most", status("VmHWM") >> 20);
}
