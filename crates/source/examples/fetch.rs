//! Fetches one reference, and says how long it took and how much memory: `fetch REFERENCE`.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a program for measurements")]

use aiperf_source::{Ask, Events, Format, Formats, Reference, Settings, Sources, Stop};

/// No format is named.
struct None_;

impl Formats for None_ {
    fn find(&self, _: &str) -> Option<Format> {
        None
    }
}

fn main() {
    let reference = Reference::parse(&std::env::args().nth(1).expect("a reference")).expect("a reference");
    let settings = Settings::of(&std::env::vars().collect()).expect("settings");
    let sources = Sources::new(settings, Events::none(), Stop::default());
    let start = aiperf_clock::now();
    let ask = Ask {
        format: None,
        endpoint_type: None,
        has_stop: true,
        max_context_length: None,
        formats: &None_,
        own_version: "0.14.0",
    };
    let local = sources.access(&reference, &ask).and_then(|plan| sources.fetch(&plan)).expect("the files");
    let seconds = aiperf_clock::now().saturating_since(start) as f64 / 1e9;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!("{} bytes in {seconds:.3} s; {peak}", local.provenance.bytes());
}
