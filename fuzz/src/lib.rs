//! Everything that reads foreign bytes, as targets of a fuzzer.
//!
//! A target is a function of bytes that panics when a promise is broken. `.ci/fuzz` runs all of them; the tests of
//! this package run them over what is kept in `corpus/` and over the samples of the crates.

use std::path::{Path, PathBuf};

use aiperf_config::{EndpointKind, FileFormat, fuzz_length_pairs};
use aiperf_dataset::fuzz::{
    fuzz_columns, fuzz_detect, fuzz_format, fuzz_from_run, fuzz_picture, fuzz_records, fuzz_rows, fuzz_sound,
    fuzz_span,
};
use aiperf_endpoint::fuzzing;
use aiperf_source::fuzz::{fuzz_listing, fuzz_manifest, fuzz_names, fuzz_reference};
use aiperf_tokenize::fuzz::{fuzz_sentencepiece, fuzz_tokenizer_settings};

/// A named function of bytes, and where examples of what it reads are, besides its own corpus.
pub struct Target {
    /// As typed, and the name of its folder in `corpus/`.
    pub name: &'static str,
    seeds: &'static str,
    run: Run,
}

enum Run {
    /// One function.
    Bytes(fn(&[u8])),
    /// One function, of what is text.
    Text(fn(&str)),
    /// The loader of a format.
    Loader(FileFormat),
}

const DATA: &str = "crates/dataset/tests/data";
const MODELS: &str = "crates/tokenize/tests/data/sentencepiece-user-defined";
const SETTINGS: &str = "crates/tokenize/tests/data/byte-bpe";
const ANSWERS: &str = "crates/endpoint/tests/corpus";

/// Targets that are no loaders: one line each.
const OTHERS: [Target; 20] = [
    Target { name: "detect", seeds: DATA, run: Run::Bytes(fuzz_detect) },
    Target { name: "records", seeds: DATA, run: Run::Bytes(fuzz_records) },
    Target { name: "columns", seeds: DATA, run: Run::Bytes(fuzz_columns) },
    Target { name: "rows", seeds: "crates/dataset/tests/data/public", run: Run::Bytes(fuzz_rows) },
    Target { name: "span", seeds: "fuzz/corpus/span", run: Run::Text(fuzz_span) },
    Target { name: "from_run", seeds: "fuzz/corpus/from_run", run: Run::Bytes(fuzz_from_run) },
    Target { name: "sse", seeds: ANSWERS, run: Run::Bytes(fuzzing::sse) },
    Target { name: "chunks", seeds: ANSWERS, run: Run::Bytes(fuzzing::chunks) },
    Target { name: "json", seeds: ANSWERS, run: Run::Bytes(fuzzing::json) },
    Target { name: "body", seeds: ANSWERS, run: Run::Bytes(fuzzing::body) },
    Target { name: "listing", seeds: "fuzz/corpus/listing", run: Run::Bytes(fuzz_listing) },
    Target { name: "manifest", seeds: "fuzz/corpus/manifest", run: Run::Bytes(fuzz_manifest) },
    Target { name: "reference", seeds: "fuzz/corpus/reference", run: Run::Text(fuzz_reference) },
    Target { name: "names", seeds: "fuzz/corpus/names", run: Run::Text(fuzz_names) },
    Target { name: "picture", seeds: "fuzz/corpus/picture", run: Run::Bytes(fuzz_picture) },
    Target { name: "sound", seeds: "crates/dataset/tests/data/public", run: Run::Bytes(fuzz_sound) },
    Target { name: "compressed", seeds: ANSWERS, run: Run::Bytes(fuzzing::compressed) },
    Target { name: "length_pairs", seeds: "fuzz/corpus/length_pairs", run: Run::Text(fuzz_length_pairs) },
    Target { name: "sentencepiece", seeds: MODELS, run: Run::Bytes(fuzz_sentencepiece) },
    Target { name: "tokenizer_settings", seeds: SETTINGS, run: Run::Bytes(fuzz_tokenizer_settings) },
];

/// Every target: the loader of each format, and the others. The splits and categories of SPEED-Bench
/// are read by one loader, so one stands for all.
pub fn targets() -> Vec<Target> {
    let stands = |name: &str| !name.starts_with("speed_bench") || name == "speed_bench_coding";
    let loaders = aiperf_dataset::formats().iter().filter(|format| stands(format.name()));
    let loaders =
        loaders.map(|format| Target { name: format.name(), seeds: DATA, run: Run::Loader(format.format) });
    loaders.chain(OTHERS).collect()
}

impl Target {
    /// Gives it something to read.
    ///
    /// # Panics
    /// When a promise is broken.
    pub fn run(&self, bytes: &[u8]) {
        match self.run {
            Run::Bytes(run) => run(bytes),
            Run::Text(run) => {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    run(text);
                }
            }
            Run::Loader(format) => {
                fuzz_format(format, bytes, false, EndpointKind::Chat);
                fuzz_format(format, bytes, true, EndpointKind::Completions);
            }
        }
    }

    /// Folders with examples, below the root of the repository.
    pub fn folders(&self) -> [PathBuf; 2] {
        [Path::new("fuzz/corpus").join(self.name), PathBuf::from(self.seeds)]
    }
}
