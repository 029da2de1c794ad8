//! Ctrl-C and SIGTERM end a transfer, and nothing else.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aiperf_source::Stop;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// The handlers, as long as this is held.
#[derive(Debug)]
pub(crate) struct Signals(Vec<SigId>);

impl Signals {
    pub(super) fn set(stop: &Stop) -> Signals {
        let flag: Arc<AtomicBool> = stop.flag();
        // Where a handler cannot be set, the signal ends the program at once.
        Signals(
            [SIGINT, SIGTERM]
                .into_iter()
                .filter_map(|signal| signal_hook::flag::register(signal, Arc::clone(&flag)).ok())
                .collect(),
        )
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in &self.0 {
            signal_hook::low_level::unregister(*id);
        }
    }
}
