//! Entry points for hostile bytes: what a person types, what a publisher writes, what a server lists. Each gives an
//! answer or an error, never a panic.

use crate::manifest::{self, Role};
use crate::names;
use crate::protocol::s3::xml;
use crate::reference::Reference;
use crate::shards;

/// Reads `text` as a reference; one that is read is printed in a form that is read again.
///
/// # Panics
/// When the printed form is refused: that is the finding.
pub fn fuzz_reference(text: &str) {
    if let Ok(Reference::Hub(hub)) = Reference::parse(text) {
        let again = Reference::parse(&hub.canonical());
        assert!(matches!(&again, Ok(Reference::Hub(again)) if again.path == hub.path), "{again:?}");
    }
}

/// Reads `bytes` as a manifest and as a sidecar.
pub fn fuzz_manifest(bytes: &[u8]) {
    for role in [Role::Manifest, Role::Sidecar] {
        let _ = manifest::read(bytes, role, "aiperf.json", "0.14.0");
    }
}

/// Takes the lines of `text` as the names that a folder has.
///
/// # Panics
/// When a folder is read and nothing of it is chosen.
pub fn fuzz_names(text: &str) {
    let names: Vec<&str> = text.lines().collect();
    let _ = names::check(names.iter().copied(), || true);
    if let Ok(read) = shards::choose(names.iter().copied()) {
        let there = names.iter().any(|name| shards::is_parquet(name) && !shards::is_skipped(name));
        assert_eq!(!read.read.is_empty(), there);
    }
    let place = shards::Place { name: "x".into(), reference: &str::to_owned, of_manifest: false };
    let _ = shards::descend(&names, &place);
}

/// Reads `bytes` as a page of an S3 listing and as an S3 error.
pub fn fuzz_listing(bytes: &[u8]) {
    let _ = xml::Page::read(bytes).and_then(xml::Page::take);
    let _ = xml::error(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_entry_points_hold(text in ".{0,80}", bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            fuzz_reference(&text);
            fuzz_reference(&format!("hf://o/r{text}"));
            fuzz_manifest(&bytes);
            fuzz_names(&text);
            fuzz_listing(&bytes);
            fuzz_listing(format!("<ListBucketResult>{text}</ListBucketResult>").as_bytes());
        }
    }
}
