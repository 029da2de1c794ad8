//! The columns of a trace, and what a cell of each may hold.

use std::borrow::Cow;
use std::path::Path;

use arrow_array::Array;
use arrow_schema::DataType;

use crate::parquet::{Table, value};
use crate::{DatasetError, Place};

/// Start, ms since 1970.
pub(super) const START: &str = "timestamp_start_unix_ms";
/// The prompt, sent as it is.
pub(super) const PROMPT: &str = "prompt";
/// Tokens of the prompt, as recorded.
pub(super) const INPUT_TOKENS: &str = "input_tokens";
/// Tokens of the answer, as recorded.
pub(super) const OUTPUT_TOKENS: &str = "output_tokens";
/// Columns that every trace has.
pub(super) const CORE: [&str; 4] = [START, PROMPT, INPUT_TOKENS, OUTPUT_TOKENS];

/// Hashes of the blocks of the prompt in the recorded server's cache.
pub(super) const HASHES: &str = "total_hashes";
/// Tokens of such a block.
pub(super) const BLOCK_SIZE: &str = "block_size";
/// Whether the client gave up.
pub(super) const CANCELED: &str = "request_canceled";
/// Time to the end of the answer, ms.
pub(super) const E2E: &str = "duration_e2e_ms";
/// Time to the first token, ms.
pub(super) const TTFT: &str = "duration_ttft_ms";
/// The recorded answer.
pub(super) const OUTPUT_TEXT: &str = "output_text";

/// Columns that a trace may have.
pub(super) const ALL: [&str; 12] = [
    START,
    PROMPT,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    "provided_session_id",
    "poor_man_session_id",
    HASHES,
    BLOCK_SIZE,
    CANCELED,
    E2E,
    TTFT,
    OUTPUT_TEXT,
];

/// Instants beyond this are not exact in a float.
const LATEST_MS: u64 = 1 << 53;

/// Whether a column of this type can hold what it must.
type Fits = fn(&DataType) -> bool;

/// A file whose columns are named and checked.
#[derive(Clone, Copy)]
pub(super) struct Columns<'t> {
    pub(super) table: &'t Table,
}

impl<'t> Columns<'t> {
    pub(super) fn path(self) -> &'t Path {
        self.table.path()
    }

    pub(super) fn has(self, column: &str) -> bool {
        self.table.column_type(column).is_some()
    }

    /// The error when a core column is missing, or a column is of another type than it must be. Of these a first
    /// row is wrong already.
    pub(super) fn check(self) -> Result<(), DatasetError> {
        if let Some(missing) = CORE.iter().find(|column| !self.has(column)) {
            return Err(DatasetError::Unsuitable(format!(
                "{}: column `{missing}` is missing; baseten_trace needs the columns {}",
                self.path().display(),
                CORE.join(", ")
            )));
        }
        let kinds: [(&str, Fits, &str); 12] = [
            (START, is_number, WHOLE),
            (PROMPT, is_string, "must be a string"),
            (INPUT_TOKENS, is_number, WHOLE),
            (OUTPUT_TOKENS, is_number, WHOLE),
            ("provided_session_id", is_id, ID),
            ("poor_man_session_id", is_id, ID),
            (HASHES, is_whole_list, "must be a list of whole numbers"),
            (BLOCK_SIZE, is_number, WHOLE),
            (CANCELED, |kind| is_number(kind) || *kind == DataType::Boolean, SWITCH),
            (E2E, is_number, DURATION),
            (TTFT, is_number, DURATION),
            (OUTPUT_TEXT, is_string, "must be a string"),
        ];
        for (column, fits, rule) in kinds {
            let Some(kind) = self.table.column_type(column) else { continue };
            // A column without any value.
            let empty = *kind == DataType::Null && (!CORE.contains(&column) || self.table.rows() == 0);
            if !empty && !fits(stored(kind)) {
                return Err(self.bad(0, column, format!("{rule}, is {kind}")));
            }
        }
        Ok(())
    }

    /// The error for a cell; `row` from 0.
    pub(super) fn bad(self, row: u64, column: &str, rule: impl Into<String>) -> DatasetError {
        let rule = format!("column `{column}`: {}", rule.into());
        DatasetError::invalid(self.path(), Place::Row(row + 1), "", rule)
    }

    /// A whole number that is not negative; `None` for null.
    pub(super) fn whole(
        self,
        cell: Cell<'_>,
        row: u64,
        column: &str,
        most: u64,
    ) -> Result<Option<u64>, DatasetError> {
        if cell.is_null() {
            return Ok(None);
        }
        let number = cell.integer().ok_or_else(|| self.bad(row, column, WHOLE))?;
        match u64::try_from(number) {
            Ok(number) if number <= most => Ok(Some(number)),
            Ok(_) => Err(self.bad(row, column, format!("must be at most {most}, is {number}"))),
            Err(_) => Err(self.bad(row, column, format!("must be 0 or more, is {number}"))),
        }
    }

    /// A whole number of a column that has one in every row.
    pub(super) fn needed(
        self,
        cell: Cell<'_>,
        row: u64,
        column: &str,
        most: u64,
    ) -> Result<u64, DatasetError> {
        self.whole(cell, row, column, most)?
            .ok_or_else(|| self.bad(row, column, "must not be null: every row needs a value"))
    }

    /// A start, ms since 1970.
    pub(super) fn start(self, cell: Cell<'_>, row: u64) -> Result<f64, DatasetError> {
        self.needed(cell, row, START, LATEST_MS).map(|start| start as f64)
    }

    /// A session id as text; `None` for null.
    pub(super) fn id<'a>(
        self,
        cell: Cell<'a>,
        row: u64,
        column: &str,
    ) -> Result<Option<Cow<'a, str>>, DatasetError> {
        if cell.is_null() {
            return Ok(None);
        }
        if let Some(text) = cell.text() {
            return Ok(Some(text.into()));
        }
        cell.integer().map(|number| Some(number.to_string().into())).ok_or_else(|| self.bad(row, column, ID))
    }

    /// A duration, ms; `None` for null.
    pub(super) fn duration(
        self,
        cell: Cell<'_>,
        row: u64,
        column: &str,
    ) -> Result<Option<f64>, DatasetError> {
        if cell.is_null() {
            return Ok(None);
        }
        cell.number()
            .filter(|number| number.is_finite() && *number >= 0.0)
            .map(Some)
            .ok_or_else(|| self.bad(row, column, DURATION))
    }

    /// A switch: a boolean, 0 or 1; `None` for null.
    pub(super) fn switch(self, cell: Cell<'_>, row: u64, column: &str) -> Result<Option<bool>, DatasetError> {
        if cell.is_null() {
            return Ok(None);
        }
        match (value::boolean(cell.array, cell.index), cell.integer()) {
            (Some(on), _) => Ok(Some(on)),
            (None, Some(number @ 0..=1)) => Ok(Some(number == 1)),
            _ => Err(self.bad(row, column, SWITCH)),
        }
    }

    /// Hashes; none for null.
    pub(super) fn hashes(self, cell: Cell<'_>, row: u64) -> Result<Vec<u64>, DatasetError> {
        if cell.is_null() {
            return Ok(Vec::new());
        }
        let elements = value::elements(cell.array, cell.index)
            .ok_or_else(|| self.bad(row, HASHES, "must be a list of whole numbers"))?;
        (0..elements.len())
            .map(|index| {
                let number = Cell { array: elements.as_ref(), index }.integer();
                number.and_then(|number| number.try_into().ok()).ok_or_else(|| {
                    self.bad(
                        row,
                        HASHES,
                        format!("must hold whole numbers of 0 or more; element {} is none", index + 1),
                    )
                })
            })
            .collect()
    }

    /// A prompt.
    pub(super) fn prompt(self, cell: Cell<'_>, row: u64) -> Result<&str, DatasetError> {
        cell.text().ok_or_else(|| self.bad(row, PROMPT, "must not be null: every row needs a prompt"))
    }
}

const WHOLE: &str = "must be a whole number of 0 or more";
const ID: &str = "must be a string or a whole number";
const SWITCH: &str = "must be true or false, 1 or 0";
const DURATION: &str = "must be a number of 0 or more milliseconds";

/// One cell.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    pub(super) array: &'a dyn Array,
    pub(super) index: usize,
}

impl<'a> Cell<'a> {
    pub(super) fn is_null(self) -> bool {
        *self.array.data_type() == DataType::Null || value::resolve(self.array, self.index).is_none()
    }

    pub(super) fn text(self) -> Option<&'a str> {
        value::string(self.array, self.index)
    }

    /// An integer of any width, or a float that is one.
    fn integer(self) -> Option<i128> {
        value::integer(self.array, self.index).or_else(|| {
            let float = value::float(self.array, self.index)?;
            // Floats beyond this are whole because they cannot be anything else.
            (float.fract() == 0.0 && float.abs() <= LATEST_MS as f64).then_some(float as i128)
        })
    }

    fn number(self) -> Option<f64> {
        value::float(self.array, self.index)
            .or_else(|| value::integer(self.array, self.index).map(|number| number as f64))
    }
}

/// The type of the values of a column, however they are coded.
fn stored(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_integer() || matches!(kind, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

fn is_string(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_id(kind: &DataType) -> bool {
    is_string(kind) || is_number(kind)
}

fn is_whole_list(kind: &DataType) -> bool {
    match kind {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => {
            let kind = stored(element.data_type());
            is_number(kind) || *kind == DataType::Null
        }
        _ => false,
    }
}
