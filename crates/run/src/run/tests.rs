//! Reasons of the verdict that only a clock can bring about: CPU times and instants are given by the test, all else is a
//! run. And what a person calls its data.

use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_config::{
    DatasetConfig, EndpointConfig, EndpointKind, ExportLevel, Normal, OutputConfig, RampTimes, RuntimeConfig,
    Sampling, StopRule, SyntheticDataset, Target, TokenizerConfig, Tuning, Ui,
};
use aiperf_load::ExchangeSink;
use aiperf_metrics::delivery::LoadDelivery;
use aiperf_types::PhaseKind;
use serde_json::Value;

use super::*;
use crate::spill::tests::exchange;

/// One request that takes a second at least.
fn config(dir: &std::path::Path) -> RunConfig {
    let one = StopRule { requests: Some(1), ..StopRule::default() };
    RunConfig {
        benchmark_id: "0123456789ab".into(),
        seed: 1,
        seed_given: true,
        models: vec!["m".into()],
        endpoint: EndpointConfig::new(
            EndpointKind::Chat,
            Target::Mock("mock://?ttft=1s&itl=0&tokens=1".into()),
        ),
        dataset: DatasetConfig {
            cache_bust: None,
            public: None,
            source: DatasetSource::Synthetic(SyntheticDataset::new(1, Normal { mean: 8.0, stddev: 0.0 })),
            sampling: Sampling::Sequential,
            inter_turn_delay_cap: None,
            osl: None,
            system_prompt: None,
            corpus: None,
        },
        tokenizer: TokenizerConfig {
            source: TokenizerSource::Builtin,
            revision: "main".into(),
            apply_chat_template: false,
        },
        phases: vec![PhaseConfig {
            ends_by_default: false,
            kind: PhaseKind::Profiling,
            mode: LoadMode::Burst,
            concurrency: Some(1),
            ramps: RampTimes::default(),
            stop: one,
            grace: None,
            cancellation: None,
            idle_gap_cap: None,
        }],
        failed_request_threshold: None,
        network_latency_mean_ms: None,
        output: OutputConfig {
            dir: dir.to_owned(),
            prefix: None,
            level: ExportLevel::Summary,
            http_trace: false,
            show_trace_timing: false,
            show_internal_metrics: false,
            show_experimental_metrics: false,
        },
        // Only what is critical is said.
        runtime: RuntimeConfig {
            workers: Some(1),
            record_processors: Some(1),
            ui: Ui::None,
            stats_interval: None,
            log_level: 7,
        },
        tuning: Tuning::default(),
        strict_load: false,
        cli_command: "aiperf profile".into(),
        remote: None,
        input_config: Value::Null,
    }
}

/// The verdict on a run by the clock `cpu`, before whose end `meddle` does what it likes.
fn judged(cpu: Arc<dyn CpuClock>, meddle: impl FnOnce(&Run<'_>)) -> LoadDelivery {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let making = Stop::default();
    let tokenizer = open_tokenizer(&config).unwrap();
    let dataset = open_dataset(&config, tokenizer.as_ref(), &making).unwrap();
    let destination = target::open(&config, "0").unwrap();
    let mut run = Run::prepare(&config, "0", tokenizer, dataset, None, destination, making).unwrap();
    let phase = config.profiling();
    let source = run.source(phase, None);
    let mut outcome = run.engine.run_phase(phase_run(&config, phase, 0, source, cpu)).unwrap();
    // What is left to be sent holds on to the compute threads.
    outcome.source = nothing();
    meddle(&run);
    let used = run.used();
    let Run { engine, ends, pool, .. } = run;
    engine.stop();
    drop(ends);
    let (mut store, _) = pool.join();
    finish::results(&mut store, &context(&config), phase, 0, &outcome, &used).load_delivery.unwrap()
}

fn codes(delivery: &LoadDelivery) -> Vec<&'static str> {
    delivery.reasons.iter().map(|reason| reason.code).collect()
}

/// Threads that have a share of every nanosecond that passes.
struct Busy {
    percent: u64,
}

impl CpuClock for Busy {
    fn process_ns(&self) -> u64 {
        now().0
    }

    fn apart_ns(&self) -> u64 {
        0
    }

    fn thread_ns(&self, _: i32) -> u64 {
        now().0 / 100 * self.percent
    }
}

#[test]
fn a_worker_that_is_busy_all_the_time_makes_the_run_suspect() {
    let delivery = judged(Arc::new(Busy { percent: 100 }), |_| ());
    let phase = Duration::from_nanos(delivery.facts.phase_ns);
    assert!(phase >= Duration::from_secs(1), "{phase:?}");
    let reason = delivery.reasons.iter().find(|reason| reason.code == "worker_saturated");
    let reason = reason.unwrap_or_else(|| panic!("{:?}", delivery.reasons));
    assert!(reason.value > 90.0 && reason.value <= 100.0, "{reason:?}");
    assert!(reason.next_step.contains("--workers-max"), "{reason:?}");
    // Half of the time is no reason.
    let delivery = judged(Arc::new(Busy { percent: 50 }), |_| ());
    assert!(!codes(&delivery).contains(&"worker_saturated"), "{:?}", delivery.reasons);
}

#[test]
fn a_clock_that_goes_back_makes_the_run_suspect() {
    let busy = || Arc::new(Busy { percent: 0 });
    assert!(!codes(&judged(busy(), |_| ())).contains(&"clock_disorder"));
    let delivery = judged(busy(), |run| {
        let mut disordered = exchange(1);
        disordered.identity.phase = PhaseKind::Profiling;
        disordered.failure = Some(aiperf_types::RequestError::new(None, "x", "x"));
        (disordered.start, disordered.end) = (Mono(2_000), Mono(1_000));
        run.ends.queue.accept(disordered);
    });
    let reason = delivery.reasons.iter().find(|reason| reason.code == "clock_disorder");
    let reason = reason.unwrap_or_else(|| panic!("{:?}", delivery.reasons));
    assert_eq!((reason.value, reason.unit), (1.0, "differences"));
    assert!(reason.next_step.contains("report it"), "{reason:?}");
}

#[test]
fn data_from_elsewhere_are_called_as_they_were_named() {
    use aiperf_config::{FileDataset, FileFormat, RemoteDataset};
    let mut config = config(std::path::Path::new("out"));
    assert_eq!(data_name(&config), "the data");
    config.dataset.source =
        DatasetSource::File(FileDataset::new("/cache/aiperf-3f2a", FileFormat::MooncakeTrace));
    assert_eq!(data_name(&config), "aiperf-3f2a");
    let name = Some("hf://org/set@v1/".to_owned());
    config.remote = Some(RemoteDataset { name, lines: Vec::new(), provenance: Value::Null });
    assert_eq!(data_name(&config), "hf://org/set@v1");
}
