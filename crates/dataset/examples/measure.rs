//! How fast is the dataset room? `cargo run --release -p aiperf-dataset --example measure -- [TRACE.jsonl]`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring tool for developers")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use aiperf_clock::now;
use aiperf_config::{
    DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, Normal, Sampling, SyntheticDataset,
};
use aiperf_dataset::{Dataset, OpenContext, open};
use aiperf_tokenize::Tokenizer;

fn config(source: DatasetSource, sampling: Sampling) -> DatasetConfig {
    DatasetConfig { sampling, ..DatasetConfig::new(source) }
}

fn file(path: &Path, format: FileFormat) -> DatasetSource {
    DatasetSource::File(FileDataset::new(path, format))
}

fn synthetic(isl: f64) -> DatasetSource {
    DatasetSource::Synthetic(SyntheticDataset::new(10_000, Normal { mean: isl, stddev: 0.0 }))
}

fn context(tokenizer: &Tokenizer) -> OpenContext<'_> {
    OpenContext {
        seed: 1,
        seed_given: true,
        tokenizer: Some(tokenizer),
        endpoint: EndpointKind::Chat,
        extra_inputs: None,
        streaming: true,
        fixed_schedule: false,
        apply_chat_template: false,
        survey: None,
    }
}

fn milliseconds<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = now();
    let result = work();
    (result, now().saturating_since(start) as f64 / 1e6)
}

/// Microseconds of CPU per build; wall time says little on a busy machine.
fn build_all(dataset: &dyn Dataset, count: u64) -> f64 {
    let start = cpu_ms();
    let turns = (0..count).map(|index| dataset.build(index).unwrap().turns.len()).sum::<usize>();
    assert!(turns > 0);
    (cpu_ms() - start) * 1e3 / count as f64
}

/// CPU time of this thread, ms.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn main() {
    let tokenizer = Tokenizer::builtin();
    let context = context(&tokenizer);
    for isl in [128.0, 1000.0] {
        let dataset = open(&config(synthetic(isl), Sampling::Sequential), &context).unwrap();
        build_all(&*dataset, 3_000);
        println!("synthetic {isl} tokens: {:.1} us per build", build_all(&*dataset, 10_000));
    }

    if let Some(trace) = std::env::args_os().nth(1).map(PathBuf::from) {
        let config = config(file(&trace, FileFormat::MooncakeTrace), Sampling::Sequential);
        let fixed = OpenContext { fixed_schedule: true, ..context };
        for _ in 0..3 {
            let start = cpu_ms();
            let (dataset, time) = milliseconds(|| open(&config, &fixed).unwrap());
            let cpu = cpu_ms() - start;
            println!("mooncake index: {time:.1} ms ({cpu:.1} CPU), {} conversations", dataset.len().known());
        }
        let dataset = open(&config, &fixed).unwrap();
        build_all(&*dataset, 2_000);
        println!("mooncake rows: {:.0} us per build", build_all(&*dataset, 2_000));
    }

    let folder = tempfile::tempdir().unwrap();
    for sessions in [false, true] {
        let path = folder.path().join(format!("single-{sessions}.jsonl"));
        let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
        let text = "the quick brown fox jumps over the lazy dog ".repeat(5);
        for row in 0..1_000_000 {
            let session =
                if sessions { format!(", \"session_id\": \"s-{}\"", row / 4) } else { String::new() };
            writeln!(out, "{{\"text\": \"{row:07} {text}\", \"output_length\": 12{session}}}").unwrap();
        }
        out.flush().unwrap();
        let size = out.get_ref().metadata().unwrap().len() as f64 / 1e6;
        for sampling in [Sampling::Sequential, Sampling::Random] {
            let config = config(file(&path, FileFormat::SingleTurn), sampling);
            let start = cpu_ms();
            let (dataset, first) = milliseconds(|| {
                let dataset = open(&config, &context).unwrap();
                dataset.build(0).unwrap();
                dataset
            });
            let (_, rest) = milliseconds(|| dataset.wait_for(u64::MAX));
            println!(
                "single_turn, sessions {sessions}, {sampling:?}: {size:.0} MB, first request after {first:.0} ms, \
                 whole index after {:.0} ms; {:.0} ms CPU on this thread",
                first + rest,
                cpu_ms() - start
            );
        }
        println!("single_turn build: {:.1} us", {
            let config = config(file(&path, FileFormat::SingleTurn), Sampling::Sequential);
            build_all(&*open(&config, &context).unwrap(), 1000)
        });
    }
}
