//! Random draws. Every concern has a stream of its own, named; every entry has a substream of its own,
//! numbered, so that entry i needs nothing of the entries before it.

use aiperf_config::Normal;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    generator: ChaCha8Rng,
}

impl Stream {
    /// The stream of `name` under the run's seed.
    pub(crate) fn named(seed: u64, name: &str) -> Stream {
        Stream { generator: crate::shim::stream(seed, name) }
    }

    /// The substream of entry `index`. Costs a copy of the key; nothing of other entries is drawn.
    pub(crate) fn entry(&self, index: u64) -> Stream {
        let mut generator = self.generator.clone();
        // Substream 0 is the named stream itself.
        generator.set_stream(index + 1);
        generator.set_word_pos(0);
        Stream { generator }
    }

    /// The generator itself, for the tokenizer's draws.
    pub(crate) fn generator(&mut self) -> &mut ChaCha8Rng {
        &mut self.generator
    }

    /// Uniform in 0 … n − 1 (n > 0), without bias (Lemire's multiplication with rejection).
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.generator.next_u64()) * u128::from(n);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.generator.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller; the second value is not kept).
    fn standard_normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A draw from `normal` that is not negative. A deviation of 0 gives the mean.
    fn not_negative(&mut self, normal: Normal) -> f64 {
        if normal.stddev <= 0.0 {
            return normal.mean.max(0.0);
        }
        // With a mean at or above 0 at least every second draw is kept; the bound is for hostile means.
        for _ in 0..1000 {
            let value = normal.mean + normal.stddev * self.standard_normal();
            if value >= 0.0 {
                return value;
            }
        }
        0.0
    }

    /// A whole number from `normal`: values below 0 are drawn again, then rounded to nearest, at least `floor`.
    pub(crate) fn whole(&mut self, normal: Normal, floor: u64) -> u64 {
        (self.not_negative(normal).round() as u64).max(floor)
    }

    /// Puts `list` in a random order.
    pub(crate) fn shuffle(&mut self, list: &mut [u32]) {
        for end in (1..list.len()).rev() {
            let other = self.below(end as u64 + 1) as usize;
            list.swap(end, other);
        }
    }
}
