//! Figures of a list of numbers.

use serde_json::{Map, Value};

/// Mean, population standard deviation and linear percentiles of at least one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation.
    pub std_dev: f64,
    /// Smallest.
    pub min: f64,
    /// 25th percentile.
    pub p25: f64,
    /// 50th percentile.
    pub median: f64,
    /// 75th percentile.
    pub p75: f64,
    /// Largest.
    pub max: f64,
}

impl Stats {
    /// The figures of `values`, which it sorts; `None` when there are none.
    pub fn of(values: &mut [f64]) -> Option<Stats> {
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        Some(Stats {
            mean,
            std_dev: variance.sqrt(),
            min,
            p25: percentile(values, 0.25),
            median: percentile(values, 0.5),
            p75: percentile(values, 0.75),
            max,
        })
    }

    /// The figures in the order of a table's columns.
    pub fn columns(&self) -> [f64; 7] {
        [self.mean, self.std_dev, self.min, self.p25, self.median, self.p75, self.max]
    }

    /// The figures by name.
    pub fn json(&self) -> Value {
        let names = ["mean", "std_dev", "min", "p25", "median", "p75", "max"];
        let pairs = names.into_iter().zip(self.columns());
        Value::Object(pairs.map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>())
    }
}

/// The value at share `share` of sorted numbers, linear between the two beside it.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let low = sorted[at.floor() as usize];
    let high = sorted[at.ceil() as usize];
    low + (high - low) * (at - at.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_linear_and_the_deviation_is_of_the_population() {
        let stats = Stats::of(&mut [4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(stats.columns(), [2.5, 1.25f64.sqrt(), 1.0, 1.75, 2.5, 3.25, 4.0]);
        assert_eq!(Stats::of(&mut []), None);
        assert_eq!(Stats::of(&mut [7.0]).unwrap().columns(), [7.0, 0.0, 7.0, 7.0, 7.0, 7.0, 7.0]);
    }
}
