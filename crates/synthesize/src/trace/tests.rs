use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn shape() -> Shape {
    Shape {
        requests: 1000,
        rate: 1.0,
        arrivals: Arrivals::Poisson,
        input: Length::Normal { mean: 4096.0, stddev: 0.0 },
        output: Length::Normal { mean: 256.0, stddev: 0.0 },
        reuse: 0.5,
        groups: 16,
        zipf_alpha: 1.0,
        block_size: 512,
        seed: 42,
    }
}

struct Made {
    totals: Totals,
    times: Vec<f64>,
    inputs: Vec<u64>,
    outputs: Vec<u64>,
    ids: Vec<Vec<u64>>,
}

fn made(shape: &Shape) -> Made {
    let mut bytes = Vec::new();
    let mut seen = 0;
    let synthesis = TraceSynthesis::new(shape.clone(), &mut |draws| seen = draws).unwrap();
    assert!(seen + 1024 > 2 * shape.requests, "all are looked at twice");
    let totals = synthesis.write(&mut bytes, &mut |_| {}).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).collect();
    Made {
        totals,
        times: rows.iter().map(|row| row["timestamp"].as_f64().unwrap()).collect(),
        inputs: number("input_length"),
        outputs: number("output_length"),
        ids: rows
            .iter()
            .map(|row| row["hash_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect())
            .collect(),
    }
}

/// The reuse by its definition: leading ids seen in earlier rows, of all ids.
fn reuse(ids: &[Vec<u64>]) -> f64 {
    let mut seen = HashSet::<u64>::new();
    let (mut hits, mut all) = (0, 0);
    for row in ids {
        hits += row.iter().take_while(|id| seen.contains(*id)).count();
        all += row.len();
        seen.extend(row.iter().copied());
    }
    hits as f64 / all as f64
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

#[test]
fn rows_have_the_figures_that_were_asked_for() {
    let normal = |mean, stddev| Length::Normal { mean, stddev };
    let lognormal = |mean, median| Length::LogNormal(LogNormal::new(mean, median));
    for (arrivals, input, output, reuse_wanted, groups, block) in [
        (Arrivals::Poisson, normal(4096.0, 0.0), normal(256.0, 0.0), 0.5, 16, 512),
        (Arrivals::Gamma(0.3), normal(4096.0, 1500.0), normal(256.0, 256.0), 0.3, 100, 512),
        (Arrivals::Gamma(4.0), lognormal(8000.0, 3000.0), lognormal(300.0, 120.0), 0.7, 4, 64),
        (Arrivals::Constant, lognormal(20_000.0, 5000.0), normal(1.0, 0.0), 0.75, 8, 16),
        (Arrivals::Poisson, normal(700.0, 300.0), normal(10.0, 2.0), 0.0, 16, 512),
        (Arrivals::Poisson, normal(2048.0, 0.0), normal(10.0, 2.0), 0.97, 1, 512),
    ] {
        for seed in [1, 42] {
            let shape = Shape {
                arrivals,
                input,
                output,
                reuse: reuse_wanted,
                groups,
                block_size: block,
                rate: 7.0,
                seed,
                ..shape()
            };
            let made = made(&shape);
            let what = format!("{shape:?}");
            assert!((reuse(&made.ids) - reuse_wanted).abs() <= 0.02, "{what}: {}", reuse(&made.ids));
            assert!((reuse(&made.ids) - made.totals.reuse).abs() < 1e-9, "{what}");
            assert!((mean(&made.inputs) / input.mean() - 1.0).abs() < 0.02, "{what}: {}", mean(&made.inputs));
            assert!(
                (mean(&made.outputs) / output.mean() - 1.0).abs() < 0.02,
                "{what}: {}",
                mean(&made.outputs)
            );
            let rate = 999.0 / (made.times[999] / 1000.0);
            assert!((rate / 7.0 - 1.0).abs() < 0.02, "{what}: {rate}");
            assert!(made.times[0] == 0.0 && made.times.is_sorted(), "{what}");
        }
    }
}

#[test]
fn ids_are_blocks_and_each_has_one_size() {
    let shape = Shape { input: Length::Normal { mean: 3000.0, stddev: 1200.0 }, ..shape() };
    let made = made(&shape);
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    for (length, ids) in made.inputs.iter().zip(&made.ids) {
        assert_eq!(ids.len() as u64, length.div_ceil(512));
        for (index, id) in ids.iter().enumerate() {
            let size = (length - index as u64 * 512).min(512);
            assert_eq!(*sizes.entry(*id).or_insert(size), size);
        }
    }
}

#[test]
fn constant_arrivals_and_lengths_are_exact() {
    let made = made(&Shape { arrivals: Arrivals::Constant, rate: 4.0, ..shape() });
    assert!(made.times.iter().enumerate().all(|(number, time)| (*time - number as f64 * 250.0).abs() < 1e-9));
    assert!(made.inputs.iter().all(|length| *length == 4096));
    assert!(made.outputs.iter().all(|length| *length == 256));
}

#[test]
fn gaps_follow_their_process() {
    for (arrivals, expected) in
        [(Arrivals::Poisson, 1.0), (Arrivals::Gamma(0.25), 2.0), (Arrivals::Gamma(4.0), 0.5)]
    {
        let times = made(&Shape { arrivals, requests: 20_000, ..shape() }).times;
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((deviation / mean / expected - 1.0).abs() < 0.06, "{arrivals:?}: {}", deviation / mean);
    }
}

#[test]
fn shares_differ_from_row_to_row() {
    let made = made(&Shape { input: Length::Normal { mean: 20_480.0, stddev: 0.0 }, ..shape() });
    let mut seen = HashSet::new();
    let mut shares = HashSet::new();
    for ids in &made.ids {
        shares.insert(ids.iter().take_while(|id| seen.contains(*id)).count());
        seen.extend(ids.iter().copied());
    }
    assert!(shares.len() > 15, "{shares:?}");
}

#[test]
fn a_reuse_out_of_reach_is_refused_with_the_highest() {
    let shape = Shape { requests: 100, reuse: 0.95, ..shape() };
    let Err(error) = TraceSynthesis::new(shape.clone(), &mut |_| {}) else { panic!("must be refused") };
    let TraceError::Reuse { highest, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(&format!("highest is {highest};")), "{error}");
    let reached = made(&Shape { reuse: *highest, ..shape.clone() });
    assert!((reuse(&reached.ids) - highest).abs() < 0.02);
    let short = Shape { input: Length::Normal { mean: 100.0, stddev: 0.0 }, ..shape };
    assert!(matches!(TraceSynthesis::new(short, &mut |_| {}), Err(TraceError::Reuse { highest: 0.0, .. })));
}

#[test]
fn figures_out_of_range_name_their_flag() {
    for (shape, flag) in [
        (Shape { requests: 0, ..shape() }, "--num-requests"),
        (Shape { rate: 0.0, ..shape() }, "--rate"),
        (Shape { rate: f64::NAN, ..shape() }, "--rate"),
        (Shape { arrivals: Arrivals::Gamma(0.0), ..shape() }, "--arrival-smoothness"),
        (Shape { input: Length::Normal { mean: 0.0, stddev: 0.0 }, ..shape() }, "--isl"),
        (Shape { input: Length::Normal { mean: 1e9, stddev: 0.0 }, ..shape() }, "--isl"),
        (Shape { output: Length::Normal { mean: 5.0, stddev: -1.0 }, ..shape() }, "--osl"),
        (Shape { output: Length::LogNormal(LogNormal::new(1.0, 2.0)), ..shape() }, "--osl"),
        (Shape { reuse: 1.0, ..shape() }, "--prefix-reuse"),
        (Shape { groups: 0, ..shape() }, "--prefix-groups"),
        (Shape { zipf_alpha: -1.0, ..shape() }, "--zipf-alpha"),
        (Shape { block_size: 0, ..shape() }, "--block-size"),
    ] {
        let Err(error) = TraceSynthesis::new(shape, &mut |_| {}) else { panic!("{flag} must be refused") };
        assert!(error.to_string().starts_with(flag), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever can be reached is reached, with one size per block.
    #[test]
    fn any_shape_is_met_or_refused(
        average in 1.0..20_000f64, spread in 0.0..2f64, wanted in 0.0..0.99f64, groups in 1u32..300,
        alpha in 0.0..3f64, block in 1u32..2000, seed in any::<u64>(),
    ) {
        let shape = Shape {
            requests: 1000, reuse: wanted, groups, zipf_alpha: alpha, block_size: block.max(average as u32 / 500), seed,
            input: Length::Normal { mean: average, stddev: average * spread },
            ..shape()
        };
        match TraceSynthesis::new(shape.clone(), &mut |_| {}) {
            Err(TraceError::Reuse { highest, .. }) => prop_assert!(highest <= wanted),
            Err(error) => prop_assert!(false, "{}", error),
            Ok(_) => {
                let made = made(&shape);
                prop_assert!((reuse(&made.ids) - wanted).abs() <= 0.02, "{} for {}", reuse(&made.ids), wanted);
                let off = mean(&made.inputs) / average - 1.0;
                prop_assert!(off.abs() < 0.02 || average < 3.0, "{}", off);
                let mut sizes: HashMap<u64, u64> = HashMap::new();
                for (length, ids) in made.inputs.iter().zip(&made.ids) {
                    for (index, id) in ids.iter().enumerate() {
                        let size = (length - index as u64 * u64::from(shape.block_size)).min(u64::from(shape.block_size));
                        prop_assert_eq!(*sizes.entry(*id).or_insert(size), size);
                    }
                }
            }
        }
    }
}
