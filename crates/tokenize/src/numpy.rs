//! Random numbers as `NumPy` draws them, for prompts that are to be those of another benchmark, byte for byte.
//!
//! `Generator` is PCG64 (the XSL-RR output of a 128-bit congruence; M. E. O'Neill, 2014) keyed by `SeedSequence`, with
//! bounded numbers by Lemire's multiplication; `RandomState` is MT19937 with its initialisation of 2002, with bounded
//! numbers by masked rejection.

use std::fmt;

/// A stream of bounded numbers.
#[derive(Clone)]
pub enum NumpyRandom {
    /// `numpy.random.default_rng(seed)`.
    Generator(Pcg64),
    /// `numpy.random.seed(seed)`.
    RandomState(Box<Mt19937>),
}

impl fmt::Debug for NumpyRandom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NumpyRandom::Generator(_) => "Generator(PCG64)",
            NumpyRandom::RandomState(_) => "RandomState(MT19937)",
        })
    }
}

impl NumpyRandom {
    /// `default_rng(seed)`.
    pub fn generator(seed: u64) -> NumpyRandom {
        NumpyRandom::Generator(Pcg64::new(seed))
    }

    /// `seed(seed)` of the module.
    pub fn random_state(seed: u32) -> NumpyRandom {
        NumpyRandom::RandomState(Box::new(Mt19937::new(seed)))
    }

    /// `integers(0, bound)`, or `randint(0, bound)`; 0, and nothing is drawn, where `bound` is 0 or 1.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound <= 1 {
            return 0;
        }
        match self {
            NumpyRandom::Generator(pcg) => pcg.below(bound),
            NumpyRandom::RandomState(twister) => twister.below(bound),
        }
    }

    /// `integers(low, high + 1)`, or the same of `randint`; `low` where `high` is no higher.
    pub fn within(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }
}

/// PCG64.
#[derive(Clone)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
    /// The high half of the last number, when only its low half was used.
    spare: Option<u32>,
}

const PCG_MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

impl Pcg64 {
    fn new(seed: u64) -> Pcg64 {
        let [a, b, c, d] = seed_sequence(seed);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let mut pcg = Pcg64 { state: 0, increment: wide(c, d) << 1 | 1, spare: None };
        pcg.step();
        pcg.state = pcg.state.wrapping_add(wide(a, b));
        pcg.step();
        pcg
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(PCG_MULTIPLIER).wrapping_add(self.increment);
    }

    fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let both = self.next_u64();
        self.spare = Some((both >> 32) as u32);
        both as u32
    }

    fn below(&mut self, bound: u32) -> u32 {
        let mut product = u64::from(self.next_u32()) * u64::from(bound);
        if (product as u32) < bound {
            let reject_below = bound.wrapping_neg() % bound;
            while (product as u32) < reject_below {
                product = u64::from(self.next_u32()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_sequence(seed: u64) -> [u64; 4] {
    const INIT_A: u32 = 0x43b0_d7e5;
    const MULT_A: u32 = 0x931e_8875;
    const INIT_B: u32 = 0x8b51_f9dd;
    const MULT_B: u32 = 0x58f3_8ded;
    let mut constant = INIT_A;
    let mut hash = |value: u32| {
        let value = value ^ constant;
        constant = constant.wrapping_mul(MULT_A);
        let value = value.wrapping_mul(constant);
        value ^ value >> 16
    };
    // Words that the seed does not have are hashed as 0.
    let mut pool = [hash(seed as u32), hash((seed >> 32) as u32), hash(0), hash(0)];
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            let mixed =
                pool[to].wrapping_mul(0xca01_f9dd).wrapping_sub(hash(pool[from]).wrapping_mul(0x4973_f715));
            pool[to] = mixed ^ mixed >> 16;
        }
    }
    let mut constant = INIT_B;
    let mut words = pool.iter().cycle().map(|word| {
        let value = word ^ constant;
        constant = constant.wrapping_mul(MULT_B);
        let value = value.wrapping_mul(constant);
        u64::from(value ^ value >> 16)
    });
    std::array::from_fn(|_| {
        let low = words.next().unwrap_or(0);
        low | words.next().unwrap_or(0) << 32
    })
}

/// MT19937.
#[derive(Clone)]
pub struct Mt19937 {
    words: [u32; Mt19937::WORDS],
    next: usize,
}

impl Mt19937 {
    const WORDS: usize = 624;
    const APART: usize = 397;

    fn new(seed: u32) -> Mt19937 {
        let mut word = seed;
        let words = std::array::from_fn(|number| {
            if number > 0 {
                word = (word ^ word >> 30).wrapping_mul(1_812_433_253).wrapping_add(number as u32);
            }
            word
        });
        Mt19937 { words, next: Mt19937::WORDS }
    }

    fn turn(&mut self) {
        for at in 0..Mt19937::WORDS {
            let joined = self.words[at] & 0x8000_0000 | self.words[(at + 1) % Mt19937::WORDS] & 0x7fff_ffff;
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[at] = self.words[(at + Mt19937::APART) % Mt19937::WORDS] ^ joined >> 1 ^ twist;
        }
        self.next = 0;
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == Mt19937::WORDS {
            self.turn();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn below(&mut self, bound: u32) -> u32 {
        let mask = u32::MAX >> (bound - 1).leading_zeros();
        loop {
            let number = self.next_u32() & mask;
            if number < bound {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.random.PCG64(seed).random_raw(2)`, `NumPy` 2.4.
    #[test]
    fn pcg64_draws_what_numpy_draws() {
        for (seed, wanted) in [
            (0, [0xa30f_ebcf_d9c2_825f, 0x4510_bdf8_82d9_d721]),
            (1, [0x8306_bdf3_7922_e4ff, 0xf351_96bb_c152_a866]),
            (42, [0xc621_fbcd_16d9_2688, 0x705a_5661_a791_ffc1]),
            (1 << 32, [0xe3c5_ebe2_85ac_1625, 0x8ea0_9968_fe31_dbcc]),
            ((1 << 63) + 12345, [0x7e82_ff06_e5a1_7e1c, 0x9375_de14_7f21_1adb]),
        ] {
            let mut pcg = Pcg64::new(seed);
            assert_eq!([pcg.next_u64(), pcg.next_u64()], wanted, "{seed}");
        }
    }

    /// The first numbers of the seed that the authors' program starts with.
    #[test]
    fn mt19937_draws_what_its_authors_publish() {
        let mut twister = Mt19937::new(5489);
        assert_eq!([(); 3].map(|()| twister.next_u32()), [3_499_211_612, 581_869_302, 3_890_346_734]);
        let mut twister = Mt19937::new(5489);
        assert_eq!((0..10_000).map(|_| twister.next_u32()).last(), Some(4_123_659_995));
    }

    #[test]
    fn bounded_numbers_are_those_of_numpy() {
        // default_rng(42): integers(12, 21, 4), integers(6, 11, 4), integers(0, 200019, 4).
        let mut random = NumpyRandom::generator(42);
        assert_eq!([(); 4].map(|()| random.within(12, 20)), [12, 18, 17, 15]);
        assert_eq!([(); 4].map(|()| random.within(6, 10)), [8, 10, 6, 9]);
        assert_eq!([(); 4].map(|()| random.below(200_019)), [40_297, 18_837, 105_305, 195_143]);
        // seed(42): randint(8, 17, 4), randint(4, 9, 4), randint(0, 200019, 4).
        let mut random = NumpyRandom::random_state(42);
        assert_eq!([(); 4].map(|()| random.within(8, 16)), [14, 11, 15, 12]);
        assert_eq!([(); 4].map(|()| random.within(4, 8)), [5, 6, 6, 6]);
        assert_eq!([(); 4].map(|()| random.below(200_019)), [112_727, 126_324, 175_203, 191_335]);
        // A range of one number draws nothing.
        let mut other = NumpyRandom::generator(42);
        assert_eq!((other.within(7, 7), other.below(1), other.below(0)), (7, 0, 0));
        assert_eq!(other.within(12, 20), 12);
    }
}
