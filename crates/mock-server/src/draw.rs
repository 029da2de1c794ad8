//! Seeded draws: one small generator per request, so that a request's times depend only on the seed and on
//! its number, never on threads or on other requests.

/// `SplitMix64` (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Draws {
    /// The draws of request `index` under `seed`.
    pub(crate) fn of_request(seed: u64, index: u64) -> Draws {
        Draws(mix(seed.wrapping_add(GOLDEN_GAMMA)) ^ mix(index.wrapping_mul(GOLDEN_GAMMA).wrapping_add(1)))
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal, by Box and Muller; the second value of the pair is not kept, so that every draw costs
    /// the same two numbers.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// What a value is drawn from. The unit is the owner's: nanoseconds for times, one for counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same value.
    Fixed(f64),
    /// Uniform between the two.
    Uniform(f64, f64),
    /// Normal with mean and standard deviation, cut at 0.
    Normal(f64, f64),
    /// Log-normal with median and the (unitless) standard deviation of the logarithm.
    LogNormal(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
}

impl Distribution {
    /// The value when every draw gives the same.
    pub(crate) fn fixed(self) -> Option<f64> {
        match self {
            Distribution::Fixed(value) => Some(value),
            _ => None,
        }
    }

    /// One draw, never negative.
    pub(crate) fn draw(self, draws: &mut Draws) -> f64 {
        match self {
            Distribution::Fixed(value) => value,
            Distribution::Uniform(low, high) => low + (high - low) * draws.unit(),
            Distribution::Normal(mean, deviation) => (mean + deviation * draws.normal()).max(0.0),
            Distribution::LogNormal(median, sigma) => median * (sigma * draws.normal()).exp(),
            Distribution::Exponential(mean) => -mean * (1.0 - draws.unit()).ln(),
        }
    }

    /// One draw in whole nanoseconds.
    pub(crate) fn draw_ns(self, draws: &mut Draws) -> u64 {
        // `as` saturates; a day of nanoseconds is far below 2^53.
        self.draw(draws).round() as u64
    }

    /// One draw as a count, at least 1.
    pub(crate) fn draw_count(self, draws: &mut Draws) -> u64 {
        (self.draw(draws).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(distribution: Distribution) -> f64 {
        (0..20_000).map(|i| distribution.draw(&mut Draws::of_request(7, i))).sum::<f64>() / 20_000.0
    }

    #[test]
    fn the_same_seed_and_request_give_the_same_draws() {
        let first: Vec<u64> =
            (0..8).map(|_| 0).scan(Draws::of_request(3, 9), |d, _| Some(d.next_u64())).collect();
        let again: Vec<u64> =
            (0..8).map(|_| 0).scan(Draws::of_request(3, 9), |d, _| Some(d.next_u64())).collect();
        assert_eq!(first, again);
        assert_ne!(first[0], Draws::of_request(4, 9).next_u64());
        assert_ne!(first[0], Draws::of_request(3, 10).next_u64());
    }

    #[test]
    fn each_distribution_has_its_mean_over_requests() {
        assert!((mean(Distribution::Fixed(5.0)) - 5.0).abs() < 1e-9);
        assert!((mean(Distribution::Uniform(10.0, 30.0)) - 20.0).abs() < 0.2);
        assert!((mean(Distribution::Normal(50.0, 5.0)) - 50.0).abs() < 0.2);
        assert!((mean(Distribution::Exponential(10.0)) - 10.0).abs() < 0.3);
        let lognormal = 100.0 * (0.5f64 * 0.5 / 2.0).exp();
        assert!((mean(Distribution::LogNormal(100.0, 0.5)) - lognormal).abs() < 2.0);
    }

    #[test]
    fn a_normal_draw_is_cut_at_zero_and_a_count_is_at_least_one() {
        for i in 0..1_000 {
            let mut draws = Draws::of_request(0, i);
            assert!(Distribution::Normal(1.0, 50.0).draw(&mut draws) >= 0.0);
            assert!(Distribution::Uniform(0.0, 3.0).draw_count(&mut draws) >= 1);
        }
    }
}
