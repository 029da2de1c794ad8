//! Whole numbers of commands, read as those of a run are: in digits, or as `1e3`.

use crate::typed;

/// Reads a whole number from `least` on.
pub(super) fn whole(least: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| typed::whole(text, least, u64::MAX).map_err(|rule| format!("expected {rule}"))
}

/// The same of numbers that fit into 32 bits.
pub(super) fn whole_u32(least: u32) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let read = typed::whole(text, least.into(), u32::MAX.into());
        // What is read fits.
        read.map(|number| number as u32).map_err(|rule| format!("expected {rule}"))
    }
}
