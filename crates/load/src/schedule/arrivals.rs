//! When requests arrive: the plan of an open loop, as offsets from the start of the phase.
//!
//! Arrivals under a rate r(t) come from the integrated rate L(t) = ∫ r: arrival k falls where L reaches its
//! k-th level. The levels are k for even spacing, a running sum of Exp(1) for Poisson, and of Gamma(s, 1/s) for
//! gamma arrivals. A linear ramp from R0 to R over D seconds has L(t) = R0·t + a·t²/2 with a = (R − R0)/D, so
//! t = (√(R0² + 2·a·L) − R0)/a inside the ramp. No draw looks at the clock: lateness never moves the plan.

use aiperf_config::Arrival;
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, Exp1, Gamma};

/// A rate that grows linearly to its target and stays there.
#[derive(Clone, Copy, Debug)]
pub struct RateCurve {
    rate: f64,
    start_rate: f64,
    ramp_sec: f64,
}

impl RateCurve {
    /// `rate` per second, reached after `ramp_sec` seconds from `rate · first_step_sec / ramp_sec`.
    pub fn new(rate: f64, ramp_sec: f64, first_step_sec: f64) -> RateCurve {
        let start_rate = if ramp_sec > first_step_sec { rate * first_step_sec / ramp_sec } else { rate };
        RateCurve { rate, start_rate, ramp_sec: if start_rate < rate { ramp_sec } else { 0.0 } }
    }

    /// Seconds from the start at which the integrated rate reaches `level`.
    pub fn time_of(&self, level: f64) -> f64 {
        if self.ramp_sec == 0.0 {
            return level / self.rate;
        }
        let at_end = (self.start_rate + self.rate) * self.ramp_sec / 2.0;
        if level >= at_end {
            return self.ramp_sec + (level - at_end) / self.rate;
        }
        let slope = (self.rate - self.start_rate) / self.ramp_sec;
        ((self.start_rate * self.start_rate + 2.0 * slope * level).sqrt() - self.start_rate) / slope
    }
}

/// The stream of arrival instants.
#[derive(Debug)]
pub struct Arrivals {
    process: Process,
    curve: RateCurve,
    count: u64,
    level: f64,
    rng: ChaCha12Rng,
}

#[derive(Clone, Copy, Debug)]
enum Process {
    Constant,
    Poisson,
    Gamma(Gamma<f64>),
}

impl Arrivals {
    /// Arrivals of `arrival` along `curve`, drawn from `rng`.
    pub fn new(arrival: Arrival, curve: RateCurve, rng: ChaCha12Rng) -> Arrivals {
        let process = match arrival {
            Arrival::Constant => Process::Constant,
            Arrival::Poisson => Process::Poisson,
            // A shape the distribution refuses (≤ 0 or not finite) is refused when the run is settled.
            Arrival::Gamma(shape) => Gamma::new(shape, 1.0 / shape).map_or(Process::Poisson, Process::Gamma),
        };
        Arrivals { process, curve, count: 0, level: 0.0, rng }
    }

    /// Offset of the next arrival from the start of the phase, nanoseconds.
    pub fn next_offset(&mut self) -> u64 {
        self.count += 1;
        match self.process {
            // From k, never by adding intervals: no drift at any k.
            Process::Constant => self.level = self.count as f64,
            Process::Poisson => self.level += <Exp1 as Distribution<f64>>::sample(&Exp1, &mut self.rng),
            Process::Gamma(gamma) => self.level += gamma.sample(&mut self.rng),
        }
        if matches!(self.process, Process::Constant) && self.curve.ramp_sec == 0.0 {
            return (self.level * 1e9 / self.curve.rate).round() as u64;
        }
        (self.curve.time_of(self.level) * 1e9).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn arrivals(arrival: Arrival, rate: f64, ramp: f64, seed: u64) -> Arrivals {
        Arrivals::new(arrival, RateCurve::new(rate, ramp, 0.1), ChaCha12Rng::seed_from_u64(seed))
    }

    #[test]
    fn constant_arrivals_start_one_interval_in_and_never_drift() {
        let mut plan = arrivals(Arrival::Constant, 3.0, 0.0, 0);
        assert_eq!(plan.next_offset(), 333_333_333);
        assert_eq!(plan.next_offset(), 666_666_667);
        assert_eq!(plan.next_offset(), 1_000_000_000);
        let mut last = 0;
        for _ in 3..3_000_000 {
            last = plan.next_offset();
        }
        assert_eq!(last, 1_000_000 * 1_000_000_000);
    }

    /// Kolmogorov–Smirnov distance of sorted samples to `cdf`, times √n; 1.63 is the 1 % point.
    fn ks(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        samples.sort_by(f64::total_cmp);
        let n = samples.len() as f64;
        let distance = samples.iter().enumerate().fold(0.0_f64, |worst, (i, &x)| {
            let p = cdf(x);
            worst.max((p - i as f64 / n).abs()).max((p - (i as f64 + 1.0) / n).abs())
        });
        distance * n.sqrt()
    }

    fn gaps(plan: &mut Arrivals, n: usize) -> Vec<f64> {
        let mut last = 0;
        (0..n)
            .map(|_| {
                let at = plan.next_offset();
                let gap = (at - last) as f64 / 1e9;
                last = at;
                gap
            })
            .collect()
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let sample = gaps(&mut arrivals(Arrival::Poisson, 40.0, 0.0, 7), 20_000);
        assert!(ks(sample, |x| 1.0 - (-40.0 * x).exp()) < 1.63);
    }

    #[test]
    fn gamma_gaps_follow_their_shape() {
        for (shape, seed) in [(0.5, 11), (4.0, 12)] {
            let rate = 25.0;
            let sample = gaps(&mut arrivals(Arrival::Gamma(shape), rate, 0.0, seed), 20_000);
            let mean = sample.iter().sum::<f64>() / sample.len() as f64;
            assert!((mean * rate - 1.0).abs() < 0.05, "mean {mean}");
            assert!(ks(sample, |x| gamma_cdf(shape, x * rate * shape)) < 1.63, "shape {shape}");
        }
    }

    /// Regularised lower incomplete gamma function by its power series.
    fn gamma_cdf(shape: f64, x: f64) -> f64 {
        if x > 60.0 {
            return 1.0;
        }
        let mut term = 1.0 / shape;
        let mut sum = term;
        for n in 1..500 {
            term *= x / (shape + f64::from(n));
            sum += term;
        }
        let gamma = if shape < 1.0 { std::f64::consts::PI.sqrt() } else { 6.0 };
        (sum * (-x).exp() * x.powf(shape) / gamma).min(1.0)
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let mut a = arrivals(Arrival::Gamma(0.5), 10.0, 3.0, 5);
        let mut b = arrivals(Arrival::Gamma(0.5), 10.0, 3.0, 5);
        assert!((0..1000).all(|_| a.next_offset() == b.next_offset()));
    }

    #[test]
    fn a_ramp_sends_the_integral_of_its_rate() {
        let (rate, ramp) = (100.0, 20.0);
        let expected = (rate * 0.1 / ramp + rate) * ramp / 2.0;
        let runs = 200_u32;
        let total: u64 = (0..runs)
            .map(|seed| {
                let mut plan = arrivals(Arrival::Poisson, rate, ramp, u64::from(seed));
                let mut count = 0;
                while plan.next_offset() <= 20_000_000_000 {
                    count += 1;
                }
                count
            })
            .sum();
        let mean = total as f64 / f64::from(runs);
        assert!((mean / expected - 1.0).abs() < 0.01, "mean {mean}, expected {expected}");
    }

    #[test]
    fn a_constant_ramp_hits_its_integral_exactly() {
        let mut plan = arrivals(Arrival::Constant, 10.0, 10.0, 0);
        let count =
            std::iter::from_fn(|| Some(plan.next_offset())).take_while(|&at| at <= 10_000_000_000).count();
        assert_eq!(count, 50);
    }
}
