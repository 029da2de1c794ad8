//! When requests come.

use serde_json::Value;

/// How fast requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Requests per second over the whole span: one per mean inter-arrival time.
    pub mean: f64,
    /// Most requests in any second; absent below a span of one.
    pub peak_1s: Option<f64>,
    /// Requests per second in the busiest minute; absent below a span of one.
    pub peak_60s: Option<f64>,
}

impl Rates {
    /// The rates of sorted times, ms; `None` without a span.
    pub(crate) fn of(times: &[f64]) -> Option<Rates> {
        let span = times.last()? - times.first()?;
        (span > 0.0).then(|| Rates {
            mean: (times.len() - 1) as f64 * 1000.0 / span,
            peak_1s: (span >= 1000.0).then(|| most_within(times, 1000.0) as f64),
            peak_60s: (span >= 60_000.0).then(|| most_within(times, 60_000.0) as f64 / 60.0),
        })
    }

    pub(crate) fn json(self) -> Value {
        let rates = [
            ("mean_per_second", Some(self.mean)),
            ("peak_1s_per_second", self.peak_1s),
            ("peak_60s_per_second", self.peak_60s),
        ];
        let known = rates.into_iter().filter_map(|(name, rate)| Some((name.to_owned(), rate?.into())));
        Value::Object(known.collect())
    }
}

/// Most times in any half-open window of `width`.
fn most_within(times: &[f64], width: f64) -> usize {
    let mut from = 0;
    let mut most = 0;
    for (index, time) in times.iter().enumerate() {
        while *time - times[from] >= width {
            from += 1;
        }
        most = most.max(index + 1 - from);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_is_found_wherever_it_begins() {
        let times = [0.0, 600.0, 900.0, 1100.0, 1599.0, 1600.0, 70_000.0];
        let rates = Rates::of(&times).unwrap();
        assert_eq!(rates.peak_1s, Some(4.0));
        assert_eq!(rates.peak_60s, Some(0.1));
        assert_eq!(Rates::of(&[0.0, 900.0]).unwrap().peak_1s, None);
        assert_eq!(rates.mean, 6.0 / 70.0);
        assert_eq!(Rates::of(&[5.0, 5.0]), None);
    }
}
