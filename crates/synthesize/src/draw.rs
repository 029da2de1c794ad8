//! What lengths, delays and groups are drawn from.

use aiperf_tokenize::seed::{Rng, unit};

/// A value outside the bounds is drawn again so many times, then clipped.
const REDRAWS: u32 = 100;

/// Normal with mean 0 and standard deviation 1 (Box and Muller; the second value is not kept).
pub(crate) fn standard_normal(stream: &mut (impl Rng + ?Sized)) -> f64 {
    let radius = (-2.0 * (1.0 - unit(stream)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(stream)).cos()
}

/// The number with 15 significant digits: every reader of JSON, the exact ones and the fast ones, gets the same number
/// back from its text.
pub(crate) fn fifteen_digits(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

/// A lognormal distribution, with bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    /// Mean of the logarithm.
    pub mu: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// The mean it was asked to have.
    pub mean: f64,
    /// The median it was asked to have.
    pub median: f64,
    /// No draw is below.
    pub min: Option<f64>,
    /// No draw is above.
    pub max: Option<f64>,
}

impl LogNormal {
    /// The distribution with this mean and median: μ = ln median, σ = √(2 ln(mean / median)). The mean must not be
    /// below the median, and both must be above 0.
    pub fn new(mean: f64, median: f64) -> LogNormal {
        let sigma = (2.0 * (mean / median).ln()).max(0.0).sqrt();
        let (mu, sigma) = (fifteen_digits(median.ln()), fifteen_digits(sigma));
        LogNormal { mu, sigma, mean, median, min: None, max: None }
    }

    /// The same, never above `max`.
    #[must_use]
    pub fn at_most(self, max: f64) -> LogNormal {
        LogNormal { max: Some(max), ..self }
    }

    /// One draw of `factor` times the distribution. The bounds hold for the product: it is drawn again while it lies
    /// outside, then clipped.
    pub fn draw_times(&self, factor: f64, stream: &mut (impl Rng + ?Sized)) -> f64 {
        let (min, max) = (self.min.unwrap_or(0.0), self.max.unwrap_or(f64::INFINITY));
        let shift = self.mu + factor.ln();
        let mut value = 0.0;
        for _ in 0..=REDRAWS {
            value = (shift + self.sigma * standard_normal(stream)).exp();
            if (min..=max).contains(&value) {
                return value;
            }
        }
        value.clamp(min, max)
    }

    /// One draw.
    pub fn draw(&self, stream: &mut (impl Rng + ?Sized)) -> f64 {
        self.draw_times(1.0, stream)
    }

    /// The value below which a share Φ(`deviations`) of the draws lies, bounds applied by clipping.
    pub fn quantile(&self, deviations: f64) -> f64 {
        (self.mu + self.sigma * deviations)
            .exp()
            .clamp(self.min.unwrap_or(0.0), self.max.unwrap_or(f64::INFINITY))
    }
}

/// A whole number of tokens from a draw: rounded to nearest, at least `floor`.
pub(crate) fn tokens(value: f64, floor: u64) -> u64 {
    (value.round() as u64).max(floor)
}

/// Numbers from 0 with weights (k + 1)^−α.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Running sums of the weights.
    sums: Vec<f64>,
}

impl Zipf {
    /// Numbers below `count`, which is at least 1.
    pub fn new(count: u32, alpha: f64) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=count.max(1))
            .map(|rank| {
                sum += f64::from(rank).powf(-alpha);
                sum
            })
            .collect();
        Zipf { sums }
    }

    /// The share of number `index` among all draws.
    pub fn share(&self, index: usize) -> f64 {
        let total = self.sums[self.sums.len() - 1];
        (self.sums[index] - index.checked_sub(1).map_or(0.0, |before| self.sums[before])) / total
    }

    /// One draw.
    pub fn draw(&self, stream: &mut (impl Rng + ?Sized)) -> u32 {
        let last = self.sums.len() - 1;
        let at = unit(stream) * self.sums[last];
        self.sums.partition_point(|sum| *sum <= at).min(last) as u32
    }
}

#[cfg(test)]
mod tests {
    use aiperf_tokenize::seed::stream;

    use super::*;

    #[test]
    fn a_lognormal_has_its_mean_and_its_median() {
        let distribution = LogNormal::new(3500.0, 1800.0);
        let mut stream = stream(1, "lognormal");
        let mut draws: Vec<f64> = (0..100_000).map(|_| distribution.draw(&mut stream)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        draws.sort_by(f64::total_cmp);
        let median = draws[draws.len() / 2];
        assert!((mean / 3500.0 - 1.0).abs() < 0.03, "{mean}");
        assert!((median / 1800.0 - 1.0).abs() < 0.03, "{median}");
        let p99 = draws[draws.len() * 99 / 100];
        assert!((p99 / distribution.quantile(2.326_347_874) - 1.0).abs() < 0.05, "{p99}");
    }

    #[test]
    fn equal_mean_and_median_is_a_constant() {
        let mut stream = stream(1, "constant");
        for _ in 0..100 {
            assert_eq!(tokens(LogNormal::new(1000.0, 1000.0).draw(&mut stream), 1), 1000);
        }
    }

    #[test]
    fn no_draw_leaves_the_bounds() {
        let mut stream = stream(1, "bounds");
        let narrow = LogNormal { min: Some(1790.0), ..LogNormal::new(3500.0, 1800.0).at_most(1800.0) };
        let unreachable = LogNormal { min: Some(1e9), ..LogNormal::new(2.0, 1.0) };
        for _ in 0..1000 {
            assert!((1790.0..=1800.0).contains(&narrow.draw(&mut stream)));
            assert!((unreachable.draw(&mut stream) - 1e9).abs() < 1e-3);
        }
    }

    #[test]
    fn groups_are_drawn_by_their_rank() {
        let zipf = Zipf::new(50, 1.2);
        assert!((zipf.share(0) - 0.302).abs() < 0.001);
        assert!((Zipf::new(100, 0.6).share(0) - 0.072).abs() < 0.001);
        let mut stream = stream(1, "zipf");
        let mut seen = [0u32; 50];
        for _ in 0..100_000 {
            seen[zipf.draw(&mut stream) as usize] += 1;
        }
        for (index, count) in seen.iter().enumerate() {
            let expected = zipf.share(index) * 100_000.0;
            assert!((f64::from(*count) - expected).abs() < 6.0 * expected.sqrt(), "{index}: {count}");
        }
    }
}
