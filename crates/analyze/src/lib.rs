//! What is in a dataset? Its lengths, times and shared prefixes, and what is wrong with it.
//!
//! Nothing is sent and no prompt is made: what the index of the dataset and its records say is all there is.

#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests say what they expect, exactly"))]

mod analysis;
mod arrivals;
mod cache;
mod console;
mod histogram;
mod json;
mod mooncake;
mod prefix;
mod stats;
mod text;
mod validation;
mod walk;
mod warnings;

pub use analysis::{Analysis, Quantity, analyze};
pub use arrivals::Rates;
pub use cache::{Cache, CumulativeCache};
pub use console::render;
pub use histogram::Bin;
pub use json::to_json;
pub use mooncake::Mooncake;
pub use stats::Stats;
pub use validation::{Finding, Validation, validate};
