//! In which order conversations are drawn.

use aiperf_config::Sampling;

use crate::Len;
use crate::random::Stream;

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
            Sampling::Random => Order::Random { stream: Stream::named(seed, "dataset.sampler.random") },
            Sampling::Shuffle => {
                let stream = Stream::named(seed, "dataset.sampler.shuffle");
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
            Order::Random { stream } => (known > 0).then(|| stream.below(known)),
            Order::Shuffle { stream, list, next } => {
                if self.len.is_growing() || known == 0 {
                    return None;
                }
                if list.is_empty() {
                    // A list of more than 2^32 conversations would not fit in memory either.
                    list.extend(0..u32::try_from(known).unwrap_or(u32::MAX));
                    stream.shuffle(list);
                } else if *next == list.len() {
                    stream.shuffle(list);
                    *next = 0;
                }
                *next += 1;
                Some(u64::from(list[*next - 1]))
            }
        }
    }
}
