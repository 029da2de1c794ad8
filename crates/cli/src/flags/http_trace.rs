//! Flags of the group "HTTP Trace".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--export-http-trace", &["--export-http-trace"], Group::HttpTrace, Kind::Switch)
        .default("False")
        .help("Write the instants of every read and write, headers and addresses to the records"),
    Flag::new("--show-trace-timing", &["--show-trace-timing"], Group::HttpTrace, Kind::Switch)
        .default("False")
        .help("Show a table of the HTTP phases: connect, send, wait, receive"),
];
