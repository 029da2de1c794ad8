//! Draws from the run's named streams. Every entry has a stream of its own, numbered, so that entry i needs
//! nothing of the entries before it.

use aiperf_config::Normal;
use aiperf_tokenize::seed::{Stream, below, unit};

/// Normal with mean 0 and standard deviation 1 (Box and Muller; the second value is not kept).
pub(crate) fn standard_normal(stream: &mut Stream) -> f64 {
    let radius = (-2.0 * (1.0 - unit(stream)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(stream)).cos()
}

/// A draw from `normal`, values below 0 drawn again. A deviation of 0 gives the mean.
pub(crate) fn not_negative(stream: &mut Stream, normal: Normal) -> f64 {
    if normal.stddev <= 0.0 {
        return normal.mean.max(0.0);
    }
    // With a mean at or above 0 at least every second draw is kept; the bound is for hostile means.
    (0..1000)
        .map(|_| normal.mean + normal.stddev * standard_normal(stream))
        .find(|value| *value >= 0.0)
        .unwrap_or(0.0)
}

/// A whole number from `normal`: values below 0 are drawn again, then rounded to nearest, at least `floor`.
pub(crate) fn whole(stream: &mut Stream, normal: Normal, floor: u64) -> u64 {
    (not_negative(stream, normal).round() as u64).max(floor)
}

/// Puts `list` in a random order.
pub(crate) fn shuffle(stream: &mut Stream, list: &mut [u32]) {
    for end in (1..list.len()).rev() {
        list.swap(end, below(stream, end as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use aiperf_tokenize::seed::Streams;

    use super::*;

    #[test]
    fn draws_have_the_configured_mean_and_deviation() {
        let streams = Streams::new(7, "lengths");
        for normal in [Normal { mean: 550.0, stddev: 100.0 }, Normal { mean: 3.0, stddev: 1.0 }] {
            let draws: Vec<f64> = (0..4000).map(|i| whole(&mut streams.at(i), normal, 1) as f64).collect();
            let mean = draws.iter().sum::<f64>() / 4000.0;
            let deviation = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3999.0).sqrt();
            assert!((mean / normal.mean - 1.0).abs() < 0.02, "{normal:?}: mean {mean}");
            // Rounding to whole numbers adds a variance of 1/12.
            let expected = (normal.stddev.powi(2) + 1.0 / 12.0).sqrt();
            assert!((deviation / expected - 1.0).abs() < 0.05, "{normal:?}: deviation {deviation}");
        }
    }

    #[test]
    fn a_deviation_of_zero_is_the_rounded_mean_and_the_floor_holds() {
        let mut stream = aiperf_tokenize::seed::stream(1, "x");
        assert_eq!(whole(&mut stream, Normal { mean: 10.5, stddev: 0.0 }, 1), 11);
        assert_eq!(whole(&mut stream, Normal { mean: 0.2, stddev: 0.0 }, 1), 1);
        assert_eq!(whole(&mut stream, Normal { mean: -1e9, stddev: 1.0 }, 1), 1);
    }
}
