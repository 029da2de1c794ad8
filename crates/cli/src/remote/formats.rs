//! The formats of this build, as sources must know them.

use aiperf_config::FileFormat;
use aiperf_source::{Format, Formats, Parquet};

/// The table of the dataset room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table;

/// The format of a name that is written with `_`.
pub(super) fn of_name(name: &str) -> Option<FileFormat> {
    FileFormat::ALL.iter().copied().find(|format| format.name() == name)
}

impl Formats for Table {
    fn find(&self, name: &str) -> Option<Format> {
        let format = of_name(name)?;
        let entry = aiperf_dataset::format(format);
        let single = format == FileFormat::BasetenTrace;
        entry.is_built().then(|| Format {
            name: entry.name(),
            parquet: match (entry.parquet, single) {
                (false, _) => Parquet::No,
                (true, true) => Parquet::File,
                (true, false) => Parquet::FileOrShards,
            },
            arrow: single,
            folder: entry.reads_folders(),
            block_size: entry.takes("--isl-block-size"),
            needs_stop: format == FileFormat::DagJsonl,
        })
    }
}
