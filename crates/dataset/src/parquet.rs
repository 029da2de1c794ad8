//! Columnar files: parquet, and Arrow IPC where a format takes it. Rows are read in order for the index, and at
//! any place afterwards; memory follows what is being read, not the file.

mod aside;
mod bytes;
mod cells;
mod costs;
mod guard;
mod ipc;
mod json;
mod pages;
mod readers;
mod table;
mod types;
pub(crate) mod value;

pub(crate) use cells::{Cell, Cells};
pub(crate) use guard::guarded;
pub use guard::panic_is_caught;
pub(crate) use json::{NotFinite, Writer, write_string};
pub(crate) use table::{Batches, Table};
pub(crate) use types::has_texts;

#[cfg(test)]
mod aside_tests;
#[cfg(test)]
mod tests;
