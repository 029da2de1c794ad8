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
        Some(Format {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_by_the_formats_that_share_a_reader() {
        for format in FileFormat::ALL {
            let name = format.name();
            let Some(found) = Table.find(name) else { continue };
            let expected = match name {
                "baseten_trace" => Parquet::File,
                "mooncake_trace" | "bailian_trace" | "single_turn" | "multi_turn" => Parquet::FileOrShards,
                _ if name.starts_with("speed_bench_") => Parquet::FileOrShards,
                _ => Parquet::No,
            };
            assert_eq!(found.parquet, expected, "{name}");
            assert_eq!(found.arrow, name == "baseten_trace", "{name}");
            let folders = ["weka_trace", "sagemaker_data_capture", "raw_payload", "random_pool"];
            assert_eq!(found.folder, folders.contains(&name), "{name}");
        }
        assert_eq!(Table.find("mooncake-trace"), None, "names are written with _ by then");
    }
}
