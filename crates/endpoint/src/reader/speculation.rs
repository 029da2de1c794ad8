//! Speculative decoding statistics in `metrics.speculative_decoding`.

use aiperf_types::SpecDecode;
use serde_json::Value;

use crate::json::{Scan, Scanner};

/// What came of them. They are cumulative in no agreed way, so that only an answer with exactly one set has any.
#[derive(Debug, Default)]
pub(super) struct Speculation {
    sets: u32,
    first: Option<String>,
}

impl Speculation {
    /// Takes the `metrics` object of an event.
    pub(super) fn take(&mut self, metrics: &[u8]) {
        let Ok(Some(set)) = find(metrics) else { return };
        self.sets += 1;
        if self.first.is_none() {
            self.first = Some(String::from_utf8_lossy(set).into_owned());
        }
    }

    /// The statistics, and whether some were dropped because they contradict themselves.
    pub(super) fn settle(self) -> (Option<SpecDecode>, bool) {
        match (self.sets, self.first) {
            (1, Some(raw)) => {
                let read = read(&raw);
                let bad = read.is_none();
                (read, bad)
            }
            _ => (None, false),
        }
    }
}

/// The `speculative_decoding` object, when it has both keys that make a set.
fn find(metrics: &[u8]) -> Scan<Option<&[u8]>> {
    let mut found = None;
    Scanner::new(metrics).members(|scanner, key| {
        if key == b"speculative_decoding" {
            found = Some(scanner.span()?);
            Ok(())
        } else {
            scanner.skip()
        }
    })?;
    let Some(set) = found else { return Ok(None) };
    let (mut histogram, mut steps) = (false, false);
    Scanner::new(set).members(|scanner, key| {
        match key {
            b"acceptance_histogram" => histogram = true,
            b"num_spec_steps" => steps = true,
            _ => {}
        }
        scanner.skip()
    })?;
    Ok((histogram && steps).then_some(set))
}

/// Rare enough for a tree: once per answer at most.
fn read(raw: &str) -> Option<SpecDecode> {
    let value: Value = serde_json::from_str(raw).ok()?;
    let count = |key: &str| value.get(key).and_then(Value::as_u64);
    let buckets = value.get("acceptance_histogram")?.as_array()?;
    let acceptance_histogram = buckets.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()?;
    let num_spec_tokens = match value.get("num_spec_tokens") {
        None | Some(Value::Null) => None,
        Some(tokens) => Some(tokens.as_u64()?),
    };
    if num_spec_tokens.is_some_and(|tokens| acceptance_histogram.len() as u64 != tokens + 1) {
        return None;
    }
    Some(SpecDecode {
        acceptance_histogram,
        num_spec_steps: count("num_spec_steps")?,
        num_spec_tokens,
        draft_tokens: count("num_draft_tokens"),
        accepted_draft_tokens: count("num_accepted_draft_tokens"),
        mean_acceptance_length: value.get("mean_acceptance_length").and_then(Value::as_f64),
        raw: Some(raw.to_owned()),
    })
}
