//! What must be known of dataset formats before their data are here.

/// Which columnar files a format reads in the place of JSONL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parquet {
    /// None.
    #[default]
    No,
    /// One file.
    File,
    /// One file, or a folder of shards.
    FileOrShards,
}

/// One format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Its name, with `_`.
    pub name: &'static str,
    /// Whether it reads Parquet.
    pub parquet: Parquet,
    /// Whether it reads Arrow IPC files.
    pub arrow: bool,
    /// Whether it reads a folder of files that are not Parquet.
    pub folder: bool,
    /// Whether it uses a block size.
    pub block_size: bool,
    /// Whether a run over remote data needs a stop condition.
    pub needs_stop: bool,
}

/// The formats that exist in this build.
pub trait Formats {
    /// The format of this name, which is written with `_`.
    fn find(&self, name: &str) -> Option<Format>;
}

/// A format name as names are compared: `-` is `_`.
pub(crate) fn normal(name: &str) -> String {
    name.replace('-', "_")
}
