//! How long answers may, and are to, be.

use serde_json::{Map, Value};

use super::row::Row;
use crate::synthesis::Outputs;

/// Turns recorded lengths into limits; how many had to be raised to 1. A request whose answer was cancelled before
/// its first token asks for one.
pub(super) fn limit(rows: &mut [Row], outputs: Outputs) -> u64 {
    let mut raised = 0;
    for row in rows {
        raised += u64::from(row.output_tokens == 0);
        let limit = outputs.limit(i64::from(row.output_tokens));
        row.output_tokens = u32::try_from(limit).unwrap_or(u32::MAX);
    }
    raised
}

/// A limit among the user's own body keys that is below what some row demands, with the row's number: servers
/// refuse such requests.
pub(super) fn contradiction<'a>(
    rows: &[Row],
    extra: &'a Map<String, Value>,
    limit_keys: &[&str],
) -> Option<(&'a str, u64, Row)> {
    let longest = rows.iter().max_by_key(|row| row.output_tokens)?;
    extra
        .iter()
        .filter(|(key, _)| limit_keys.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.as_str(), value.as_u64()?)))
        .find(|(_, most)| *most < u64::from(longest.output_tokens))
        .map(|(key, most)| (key, most, *longest))
}

#[cfg(test)]
mod tests {
    use aiperf_config::Synthesis;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::row::testing::row;
    use super::*;

    fn rows(outputs: &[u32]) -> Vec<Row> {
        let of = |(output, number): (&u32, u32)| Row { output_tokens: *output, ..row(number, 0.0, 0) };
        outputs.iter().zip(0..).map(of).collect()
    }

    fn limited(outputs: &[u32], output_len: f64, max_osl: Option<u64>) -> (Vec<u32>, u64) {
        let mut rows = rows(outputs);
        let synthesis = Synthesis { output_len, max_osl, ..Synthesis::default() };
        let raised = limit(&mut rows, Outputs::new(&synthesis));
        (rows.iter().map(|row| row.output_tokens).collect(), raised)
    }

    #[test]
    fn recorded_lengths_are_limits_and_none_is_below_one() {
        assert_eq!(limited(&[4, 0, 7], 1.0, None), (vec![4, 1, 7], 1));
    }

    #[test]
    fn a_factor_comes_first_then_the_cap_then_the_floor() {
        assert_eq!(limited(&[3, 0, 100], 1.5, Some(8)).0, [4, 2, 8]);
        assert_eq!(limited(&[3, 100], 0.001, None).0, [1, 1]);
        assert_eq!(limited(&[3], 1.0, Some(0)).0, [1]);
    }

    #[test]
    fn a_limit_below_a_forced_length_is_found() {
        let rows = rows(&[4, 9, 2]);
        let extra = json!({"max_tokens": 8, "seed": 1});
        let (key, most, row) = contradiction(&rows, extra.as_object().unwrap(), &["max_tokens"]).unwrap();
        assert_eq!((key, most, row.number), ("max_tokens", 8, 1));
        let enough = json!({"max_tokens": 9});
        assert!(contradiction(&rows, enough.as_object().unwrap(), &["max_tokens"]).is_none());
    }

    proptest! {
        #[test]
        fn limits_are_at_least_one_and_at_most_the_cap(
            outputs in prop::collection::vec(any::<u32>(), 1..20),
            multiplier in 0.0f64..10.0,
            most in 1u64..1000,
        ) {
            let (limits, _) = limited(&outputs, multiplier, Some(most));
            prop_assert!(limits.iter().all(|limit| (1..=most).contains(&u64::from(*limit))));
        }
    }
}
