//! In which order conversations are drawn.

use aiperf_config::Sampling;
use aiperf_tokenize::seed::{Stream, below, stream};

use crate::Len;
use crate::random::shuffle;

/// Draws conversation indexes for ever.
///
/// Sequential drawing works over a dataset that is still being read; the other orders need its full length.
#[derive(Clone, Debug)]
pub struct Sampler {
    order: Order,
    len: Len,
}

#[derive(Clone, Debug)]
enum Order {
    Sequential { next: u64 },
    Random { stream: Stream },
    Shuffle { stream: Stream, list: Vec<u32>, next: usize },
}

impl Sampler {
    /// A sampler over `len` conversations; the same seed gives the same order.
    pub fn new(sampling: Sampling, len: Len, seed: u64) -> Sampler {
        let order = match sampling {
            Sampling::Sequential => Order::Sequential { next: 0 },
            Sampling::Random => Order::Random { stream: stream(seed, "dataset.sampler.random") },
            Sampling::Shuffle => {
                let stream = stream(seed, "dataset.sampler.shuffle");
                Order::Shuffle { stream, list: Vec::new(), next: 0 }
            }
        };
        Sampler { order, len }
    }

    /// Tells the sampler how far the dataset has been read.
    pub fn grow(&mut self, len: Len) {
        self.len = len;
    }

    /// The next index; `None` when the dataset is empty, or has not been read that far yet: call
    /// [`Sampler::grow`] with its current length (see [`crate::Dataset::wait_for`]) and ask again.
    #[expect(clippy::should_implement_trait, reason = "None is not the end, as it would be for an iterator")]
    pub fn next(&mut self) -> Option<u64> {
        let known = self.len.known();
        match &mut self.order {
            Order::Sequential { next } => {
                if *next >= known {
                    if self.len.is_growing() || known == 0 {
                        return None;
                    }
                    *next = 0;
                }
                *next += 1;
                Some(*next - 1)
            }
            Order::Random { stream } => (known > 0).then(|| below(stream, known)),
            Order::Shuffle { stream, list, next } => {
                if self.len.is_growing() || known == 0 {
                    return None;
                }
                if list.is_empty() {
                    // A list of more than 2^32 conversations would not fit in memory either.
                    list.extend(0..u32::try_from(known).unwrap_or(u32::MAX));
                    shuffle(stream, list);
                } else if *next == list.len() {
                    shuffle(stream, list);
                    *next = 0;
                }
                *next += 1;
                Some(u64::from(list[*next - 1]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(sampler: &mut Sampler, count: usize) -> Vec<u64> {
        (0..count).map(|_| sampler.next().unwrap()).collect()
    }

    #[test]
    fn sequential_wraps_for_ever() {
        let mut sampler = Sampler::new(Sampling::Sequential, Len::Exact(3), 0);
        assert_eq!(draw(&mut sampler, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn sequential_waits_for_a_dataset_that_is_still_read() {
        let mut sampler = Sampler::new(Sampling::Sequential, Len::AtLeast(2), 0);
        assert_eq!(draw(&mut sampler, 2), [0, 1]);
        assert_eq!(sampler.next(), None);
        sampler.grow(Len::AtLeast(3));
        assert_eq!(sampler.next(), Some(2));
        assert_eq!(sampler.next(), None);
        sampler.grow(Len::Exact(3));
        assert_eq!(sampler.next(), Some(0));
    }

    #[test]
    fn random_is_uniform_with_replacement_and_follows_the_seed() {
        let mut counts = [0u32; 5];
        for index in draw(&mut Sampler::new(Sampling::Random, Len::Exact(5), 9), 50_000) {
            counts[index as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let order = |seed| draw(&mut Sampler::new(Sampling::Random, Len::Exact(1000), seed), 20);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn shuffle_walks_a_fresh_permutation_each_pass() {
        let mut sampler = Sampler::new(Sampling::Shuffle, Len::Exact(50), 4);
        let passes: Vec<Vec<u64>> = (0..3).map(|_| draw(&mut sampler, 50)).collect();
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        }
        assert_ne!(passes[0], passes[1]);
        assert_ne!(passes[1], passes[2]);
    }

    #[test]
    fn an_empty_dataset_gives_nothing() {
        for sampling in [Sampling::Sequential, Sampling::Random, Sampling::Shuffle] {
            assert_eq!(Sampler::new(sampling, Len::Exact(0), 0).next(), None);
        }
    }
}
