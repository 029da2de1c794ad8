//! What a column of figures comes to.

use serde::Serialize;

/// A column of figures, kept to be summed up at the end.
#[derive(Clone, Debug, Default)]
pub struct Column {
    values: Vec<f64>,
    sorted: bool,
}

impl Column {
    /// Adds a figure.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
        self.sorted = false;
    }

    /// Adds the figures of another column.
    pub fn append(&mut self, other: &Column) {
        self.values.extend_from_slice(&other.values);
        self.sorted = false;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.values.sort_unstable_by(f64::total_cmp);
            self.sorted = true;
        }
    }

    /// The value at `percent`, between its neighbours in proportion.
    fn percentile(&self, percent: f64) -> f64 {
        let at = percent / 100.0 * (self.values.len() - 1) as f64;
        let (low, high) = (at.floor() as usize, at.ceil() as usize);
        self.values[low] + (self.values[high] - self.values[low]) * (at - at.floor())
    }

    /// Sums the column up; `None` when it is empty.
    pub fn summary(&mut self) -> Option<Summary> {
        if self.values.is_empty() {
            return None;
        }
        self.sort();
        let count = self.values.len();
        let mean = self.values.iter().sum::<f64>() / count as f64;
        let variance = self.values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64;
        Some(Summary {
            count,
            mean,
            std: variance.sqrt(),
            median: self.percentile(50.0),
            p05: self.percentile(5.0),
            p25: self.percentile(25.0),
            p75: self.percentile(75.0),
            p95: self.percentile(95.0),
            p99: self.percentile(99.0),
        })
    }

    /// Counts the figures in at most `most` classes: equal ones, or equal on a logarithmic scale when the values span
    /// more than two powers of ten and none is 0.
    pub fn histogram(&mut self, most: usize) -> Histogram {
        self.sort();
        let (Some(&low), Some(&high)) = (self.values.first(), self.values.last()) else {
            return Histogram::default();
        };
        if low >= high {
            return Histogram { logarithmic: false, edges: vec![low, low], counts: vec![self.len() as u64] };
        }
        let logarithmic = low > 0.0 && high / low > 100.0;
        let classes = most.max(1);
        let edge = |index: usize| {
            let share = index as f64 / classes as f64;
            if logarithmic { low * (high / low).powf(share) } else { low + (high - low) * share }
        };
        let mut edges: Vec<f64> = (0..=classes).map(edge).collect();
        edges[classes] = high;
        // The last class has its upper edge.
        let below = |edge: f64| self.values.partition_point(|value| *value < edge);
        let mut bounds: Vec<usize> = edges.iter().map(|edge| below(*edge)).collect();
        bounds[classes] = self.len();
        let counts = bounds.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect();
        Histogram { logarithmic, edges, counts }
    }
}

/// What a column comes to. Percentiles lie between their neighbours in proportion; the deviation is that of the whole
/// population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many figures.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub std: f64,
    /// The 50th percentile.
    pub median: f64,
    /// The 5th percentile.
    pub p05: f64,
    /// The 25th percentile.
    pub p25: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// How many figures lie in each class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// The classes are equal on a logarithmic scale.
    pub logarithmic: bool,
    /// One more than there are classes, rising.
    pub edges: Vec<f64>,
    /// Figures from an edge up to, without, the next; the last class has its upper edge.
    pub counts: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Column {
        let mut column = Column::default();
        for value in values {
            column.push(*value);
        }
        column
    }

    #[test]
    fn percentiles_lie_between_their_neighbours() {
        let summary = column(&[4.0, 1.0, 3.0, 2.0]).summary().unwrap();
        assert_eq!((summary.count, summary.mean, summary.median), (4, 2.5, 2.5));
        assert!((summary.p25 - 1.75).abs() < 1e-12 && (summary.p99 - 3.97).abs() < 1e-12);
        assert!((summary.std - 1.25f64.sqrt()).abs() < 1e-12);
        assert_eq!(Column::default().summary(), None);
    }

    #[test]
    fn every_figure_is_in_one_class() {
        for values in
            [vec![1.0, 2.0, 3.0, 10.0], vec![1.0, 1000.0, 5.0, 70.0, 1000.0], vec![0.0, 500.0], vec![7.0]]
        {
            let histogram = column(&values).histogram(10);
            assert_eq!(histogram.counts.iter().sum::<u64>(), values.len() as u64);
            assert_eq!(histogram.edges.len(), histogram.counts.len() + 1);
        }
        assert!(column(&[1.0, 101.0]).histogram(4).logarithmic);
        assert!(!column(&[0.0, 101.0]).histogram(4).logarithmic);
    }
}
