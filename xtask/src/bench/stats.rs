//! The little statistics the harness needs.

/// The median; absent for no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 50.0)
}

/// The percentile `p` (0 to 100) with linear interpolation between ranks; absent for no values.
pub(crate) fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let rank = p / 100.0 * last as f64;
    let below = sorted[rank.floor() as usize];
    let above = sorted[(rank.floor() as usize + 1).min(last)];
    Some(below + (above - below) * rank.fract())
}

/// Slope of the least-squares line through `(0, y0)`, `(1, y1)`, …; absent below two values.
pub(crate) fn slope(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = (values.len() - 1) as f64 / 2.0;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (mut above, mut below) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    Some(above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_or_the_mean_of_the_two_middles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn percentile_interpolates_between_ranks() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 99.0), Some(99.0));
        assert_eq!(percentile(&[0.0, 10.0], 25.0), Some(2.5));
        assert_eq!(percentile(&[0.0, 10.0], 100.0), Some(10.0));
    }

    #[test]
    fn slope_of_a_line_is_its_step() {
        let line: Vec<f64> = (0..1_000).map(|i| 7.0 + 2.5 * f64::from(i)).collect();
        assert!((slope(&line).unwrap() - 2.5).abs() < 1e-12);
        assert_eq!(slope(&[1.0]), None);
    }
}
