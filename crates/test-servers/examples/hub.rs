//! Serves a folder `OWNER/NAME/files…` as a Hub until its standard input ends: for looking at a client by hand.
//!
//! `cargo run -p aiperf-test-servers --example hub -- FOLDER` prints what `HF_ENDPOINT` must be.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for a person")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use aiperf_test_servers::{StubHub, StubRepo};

fn files(folder: &Path, root: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, root, found);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let large = name != "README.md";
            found.push((if large { format!("lfs:{name}") } else { name }, std::fs::read(&path).unwrap()));
        }
    }
}

fn main() {
    let root = PathBuf::from(std::env::args().nth(1).unwrap());
    let mut repos = Vec::new();
    for owner in std::fs::read_dir(&root).unwrap() {
        for repo in std::fs::read_dir(owner.unwrap().path()).unwrap() {
            let folder = repo.unwrap().path();
            let mut found = Vec::new();
            files(&folder, &folder, &mut found);
            let listed: Vec<(&str, &[u8])> =
                found.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
            let name = folder.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            repos.push((name, StubRepo::new(&listed)));
        }
    }
    let repos: Vec<(&str, StubRepo)> =
        repos.iter().map(|(name, repo)| (name.as_str(), repo.clone())).collect();
    let hub = StubHub::start(&repos);
    hub.page_of(1000);
    println!("{}", hub.endpoint());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
