//! The values of one record.

use std::sync::LazyLock;

use aiperf_types::RequestRecord;

use crate::context::Context;
use crate::facts::{Facts, Field, Source, gap_count};
use crate::formula;
use crate::registry::{self, Flag, Kind, Metric, ValueType};
use crate::value::RecordValues;

/// What [`evaluate`] needs of a definition, close together.
struct Entry {
    metric: Metric,
    flags: u32,
    divisor: f64,
    whole: bool,
}

/// The metrics with one number per record, in the order of exports.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    registry::all()
        .filter(|def| def.kind == Kind::Record && def.value_type != ValueType::IntList)
        .map(|def| Entry {
            metric: def.metric,
            flags: def.flags,
            divisor: def.shown_divisor(),
            whole: def.shown_as_int(),
        })
        .collect()
});

/// Computes every metric that a line of this record carries, replacing what `values` held.
pub fn evaluate(record: &RequestRecord, context: &Context, values: &mut RecordValues) {
    values.clear();
    let facts = Facts::of(record);
    let mut off = context.flags_off();
    if !context.show_internal {
        off |= Flag::Internal as u32;
    }
    if facts.is(Field::NotStreamed) {
        off |= Flag::Streaming as u32;
    }
    let failed = facts.is(Field::Failed);
    let error_only = Flag::ErrorOnly as u32;
    for entry in ENTRIES.iter() {
        if entry.flags & off != 0 || (entry.flags & error_only != 0) != failed {
            continue;
        }
        if let Some(value) = formula::value(entry.metric, &facts, context) {
            if entry.whole {
                values.set_int(entry.metric, value as i64);
            } else {
                values.set_float(entry.metric, value / entry.divisor);
            }
        }
    }
    let gaps = Metric::InterChunkLatency;
    if gaps.def().flags & off == 0 && gap_count(&facts) > 0 {
        let divisor = gaps.def().shown_divisor();
        let list = values.set_gaps(gaps);
        list.extend(
            record.answer.content.windows(2).map(|pair| pair[1].at.since(pair[0].at) as f64 / divisor),
        );
    }
}
