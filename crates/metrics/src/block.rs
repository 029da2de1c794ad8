//! The figures of one metric over a run.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::registry::Metric;

/// The figures of one metric, in its shown unit; those that do not exist are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Unit of all figures but `count`.
    pub unit: &'static str,
    /// Mean; for a run-level metric, its value.
    pub avg: Option<f64>,
    /// 1st percentile. A percentile may be infinite: so many requests failed.
    pub p1: Option<f64>,
    /// 5th percentile.
    pub p5: Option<f64>,
    /// 10th percentile.
    pub p10: Option<f64>,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Standard deviation of the population.
    pub std: Option<f64>,
    /// Number of values.
    pub count: Option<u64>,
    /// Sum.
    pub sum: Option<f64>,
}

impl Block {
    /// The block of a run-level metric.
    pub fn single(metric: Metric, shown: f64) -> Block {
        Block { unit: metric.def().display_unit, avg: Some(shown), ..Block::default() }
    }

    /// The figures in the order of exports, `count` among them as a number.
    pub fn figures(&self) -> [(&'static str, Option<f64>); 15] {
        [
            ("avg", self.avg),
            ("p1", self.p1),
            ("p5", self.p5),
            ("p10", self.p10),
            ("p25", self.p25),
            ("p50", self.p50),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("min", self.min),
            ("max", self.max),
            ("std", self.std),
            ("count", self.count.map(|count| count as f64)),
            ("sum", self.sum),
        ]
    }

    /// Whether there are percentiles: the metric is a distribution, not one value.
    pub fn has_percentiles(&self) -> bool {
        self.p50.is_some()
    }
}

/// As exports write it: the unit first, figures that do not exist left out, infinity as the text `inf`.
impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("unit", self.unit)?;
        for (name, figure) in self.figures() {
            match (figure, self.count) {
                (None, _) => {}
                (Some(_), Some(count)) if name == "count" => map.serialize_entry(name, &count)?,
                (Some(figure), _) if figure.is_infinite() => map.serialize_entry(name, "inf")?,
                (Some(figure), _) => map.serialize_entry(name, &figure)?,
            }
        }
        map.end()
    }
}
