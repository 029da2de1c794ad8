//! The values of one record.

use crate::registry::{Metric, ValueType};

/// A value of one record, in the unit it is shown in (`MetricDef::display_unit`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number.
    Int(i64),
    /// A real number, finite.
    Float(f64),
    /// Several real numbers.
    List(&'a [f64]),
}

impl Value<'_> {
    /// The number, when it is a single one.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Value::Int(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            Value::List(_) => None,
        }
    }
}

const WORDS: usize = Metric::COUNT.div_ceil(64);

/// The values of one record: filled by [`crate::evaluate`], reused from record to record.
///
/// Numbers are kept as bits; whether they are whole is a property of the metric, not of the value.
#[derive(Clone, Debug)]
pub struct RecordValues {
    present: [u64; WORDS],
    bits: [u64; Metric::COUNT],
    gaps: Vec<f64>,
}

impl Default for RecordValues {
    fn default() -> Self {
        RecordValues { present: [0; WORDS], bits: [0; Metric::COUNT], gaps: Vec::new() }
    }
}

impl RecordValues {
    /// No values.
    pub fn new() -> RecordValues {
        RecordValues::default()
    }

    /// Forgets all values; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.present = [0; WORDS];
        self.gaps.clear();
    }

    /// The values there are, in the order of [`crate::registry::all`].
    pub fn iter(&self) -> impl Iterator<Item = (Metric, Value<'_>)> {
        (0..WORDS).flat_map(move |word| {
            let mut rest = self.present[word];
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let index = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let metric = Metric::from_index(index)?;
                Some((metric, self.value(metric)))
            })
        })
    }

    /// The value of a metric, if there is one.
    pub fn get(&self, metric: Metric) -> Option<Value<'_>> {
        self.contains(metric).then(|| self.value(metric))
    }

    /// The value of a metric as a number, if it has a single one.
    pub fn number(&self, metric: Metric) -> Option<f64> {
        self.get(metric)?.as_f64()
    }

    /// Whether the metric has a value.
    #[inline]
    pub fn contains(&self, metric: Metric) -> bool {
        self.present[metric as usize / 64] >> (metric as usize % 64) & 1 != 0
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.present.iter().all(|word| *word == 0)
    }

    /// Gives a metric a value that was computed elsewhere, in its shown unit; a number is converted to the type of
    /// the metric, a list to its mean where the metric is no list.
    pub fn insert(&mut self, metric: Metric, value: Value<'_>) {
        let number = match value {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
            Value::List(list) => {
                if metric.def().value_type == ValueType::IntList {
                    let gaps = self.set_gaps(metric);
                    gaps.clear();
                    gaps.extend_from_slice(list);
                    return;
                }
                list.iter().sum::<f64>() / list.len().max(1) as f64
            }
        };
        match metric.def() {
            def if def.value_type == ValueType::IntList => self.insert(metric, Value::List(&[number])),
            def if def.shown_as_int() => self.set_int(metric, number as i64),
            _ => self.set_float(metric, number),
        }
    }

    fn value(&self, metric: Metric) -> Value<'_> {
        let def = metric.def();
        let bits = self.bits[metric as usize];
        if def.value_type == ValueType::IntList {
            Value::List(&self.gaps)
        } else if def.shown_as_int() {
            Value::Int(bits as i64)
        } else {
            Value::Float(f64::from_bits(bits))
        }
    }

    #[inline]
    pub(crate) fn set_int(&mut self, metric: Metric, value: i64) {
        debug_assert!(metric.def().shown_as_int(), "{metric:?} is shown as a real number");
        self.set_bits(metric, value as u64);
    }

    #[inline]
    pub(crate) fn set_float(&mut self, metric: Metric, value: f64) {
        debug_assert!(!metric.def().shown_as_int(), "{metric:?} is shown as a whole number");
        self.set_bits(metric, value.to_bits());
    }

    #[inline]
    pub(crate) fn set_gaps(&mut self, metric: Metric) -> &mut Vec<f64> {
        self.set_bits(metric, 0);
        &mut self.gaps
    }

    #[inline]
    fn set_bits(&mut self, metric: Metric, bits: u64) {
        self.present[metric as usize / 64] |= 1 << (metric as usize % 64);
        self.bits[metric as usize] = bits;
    }
}
