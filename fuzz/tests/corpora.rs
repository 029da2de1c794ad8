//! The targets over everything that is kept for them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use aiperf_fuzz::targets;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn what_is_kept_breaks_no_promise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for target in targets() {
        let mut found = Vec::new();
        for folder in target.folders() {
            files(&root.join(folder), &mut found);
        }
        assert!(!found.is_empty(), "{} has no examples", target.name);
        for file in found {
            target.run(&std::fs::read(file).unwrap());
        }
    }
}
