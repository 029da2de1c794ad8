//! Serves one file as `hf://org/repo/file` until its input ends: `hub FILE`. Prints the endpoint and the direct URL.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a program for measurements")]

use aiperf_test_servers::{StubHub, StubRepo};

fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let bytes = std::fs::read(path).expect("a readable file");
    let repo = StubRepo::new(&[("lfs:file.jsonl", &bytes)]);
    let sha256 = repo.commits.values().next().expect("one commit")["file.jsonl"].etag();
    drop(bytes);
    let hub = StubHub::start(&[("org/repo", repo)]);
    println!("{} {}", hub.endpoint(), hub.storage_url(&sha256));
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}
