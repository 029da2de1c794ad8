//! Flags of our own.

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--strict-load", &["--strict-load"], Group::Client, Kind::Switch).ours().help(
        "Exit with 3 when the load delivery is suspect: the client did not send what was planned when it was \
         planned",
    ),
    Flag::new("--bind-address", &["--bind-address"], Group::Client, Kind::Texts)
        .value("IP")
        .ours()
        .help("Local addresses to send from, used in turn: each has its own range of ports"),
    Flag::new("--input-columns", &["--input-columns"], Group::Client, Kind::Texts)
        .value("FIELD=COLUMN")
        .ours()
        .help(
            "Columns of --input-file, or keys of its records, that hold fields of the format under other names, as \
             text=question,output_length=max_tokens; aiperf datasets NAME lists the fields",
        ),
];
