//! The fuzzer, for one target: `AIPERF_FUZZ_TARGET` names it, `list` prints all with their folders of examples.
#![no_main]

use std::sync::OnceLock;

use aiperf_fuzz::{Target, targets};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn choose() {
    // A decoder's panic that the reader catches, and tells as a damaged file, is no finding.
    let aborts = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !aiperf_dataset::panic_is_caught() {
            aborts(info);
        }
    }));
    let wanted = std::env::var("AIPERF_FUZZ_TARGET").unwrap_or_default();
    match targets().into_iter().find(|target| target.name == wanted) {
        Some(target) => {
            let _ = TARGET.set(target);
        }
        None => list(&wanted),
    }
}

#[expect(clippy::print_stdout, reason = "the list is what was asked for")]
fn list(wanted: &str) {
    for target in targets() {
        let [own, seeds] = target.folders();
        println!("{} {} {}", target.name, own.display(), seeds.display());
    }
    std::process::exit(i32::from(wanted != "list"));
}

/// What the C library would ask the system for: without it the tables of a run are ordered otherwise than those of the
/// run before, other inputs seem new, and what passed on one machine is not what runs on the next.
///
/// # Safety
/// `buffer` is `length` bytes that may be written.
#[expect(unsafe_code, reason = "the standard library asks through a symbol of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: by what the caller of this function promises.
    unsafe { buffer.write_bytes(1, length) };
    length.cast_signed()
}

fuzz_target!(
    init: choose(),
    |bytes: &[u8]| {
        if let Some(target) = TARGET.get() {
            target.run(bytes);
        }
    }
);
