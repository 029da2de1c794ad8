//! Files of the Hub of which only parts are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aiperf_source::{HubFiles, Problem, RepoKind, SourceError, Sources};
use aiperf_test_servers::http::{Answer, Request};
use aiperf_test_servers::hub::{StubHub, StubRepo};

use crate::support::Machine;

const SIZE: usize = 300_000;

fn content() -> Vec<u8> {
    (0..SIZE as u32).map(|at| (at * 7 % 251) as u8).collect()
}

fn hub(name: &str) -> StubHub {
    StubHub::start(&[("org/data", StubRepo::new(&[(name, &content()), ("README.md", b"# data\n")]))])
}

fn machine(hub: &StubHub) -> Machine {
    Machine::new(&[("HF_ENDPOINT", &hub.endpoint())])
}

fn files(machine: &Machine) -> (Arc<Sources>, HubFiles) {
    let sources = Arc::new(machine.sources());
    let files = sources.hub_files(RepoKind::Dataset, "org/data", None, "").unwrap();
    (sources, files)
}

/// The ranges that the stub was asked for, of either port.
fn asked(hub: &StubHub) -> Vec<String> {
    let range = |request: &Request| request.header("range").map(str::to_owned);
    let storage: Vec<String> = hub.storage_log().iter().filter_map(range).collect();
    if storage.is_empty() { hub.log().iter().filter_map(range).collect() } else { storage }
}

fn read(machine: &Machine, name: &str, start: usize, length: usize) -> Result<u64, SourceError> {
    let (sources, files) = files(machine);
    let file = sources.hub_ranged(&files, name)?;
    let mut bytes = vec![0; length];
    file.read_at(start as u64, &mut bytes)?;
    assert!(bytes == content()[start..start + length], "other bytes at {start}");
    Ok(file.fetched())
}

#[test]
fn only_what_is_missing_of_a_range_is_asked_for_and_nearby_ranges_are_one_request() {
    let hub = hub("lfs:data/train.parquet");
    let machine = machine(&hub);
    let (sources, files) = files(&machine);
    let file = sources.hub_ranged(&files, "data/train.parquet").unwrap();
    file.bring(&[50_000..60_000, 1_000..2_000, 2_500..4_000, 60_000..61_000]).unwrap();
    assert_eq!(asked(&hub), ["bytes=1000-3999", "bytes=50000-60999"]);
    hub.clear_logs();
    file.bring(&[1_500..2_000, 3_000..52_000]).unwrap();
    assert_eq!(asked(&hub), ["bytes=4000-49999"]);
    hub.clear_logs();
    let mut bytes = vec![0; 60_000];
    file.read_at(1_000, &mut bytes).unwrap();
    assert_eq!(bytes, content()[1_000..61_000]);
    assert_eq!((asked(&hub), file.fetched()), (vec![], 60_000));
}

#[test]
fn the_end_of_a_columnar_file_comes_at_once() {
    let hub = hub("lfs:data/train.parquet");
    let machine = machine(&hub);
    assert_eq!(read(&machine, "data/train.parquet", SIZE - 8, 8).unwrap(), SIZE as u64 / 64);
    assert_eq!(read(&machine, "data/train.parquet", SIZE - 4_000, 3_000).unwrap(), 0);
}

#[test]
fn ranges_that_were_read_are_read_again_offline_and_others_are_not_there() {
    let hub = hub("lfs:data/train.parquet");
    let mut machine = machine(&hub);
    read(&machine, "data/train.parquet", 700, 5_000).unwrap();
    hub.clear_logs();
    assert_eq!(read(&machine, "data/train.parquet", 1_000, 4_700).unwrap(), 0);
    machine.set("HF_HUB_OFFLINE", "1");
    assert_eq!(read(&machine, "data/train.parquet", 700, 5_000).unwrap(), 0);
    let error = read(&machine, "data/train.parquet", 5_000, 1_000).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("bytes 5700 to 5999 of data/train.parquet was not found: it is not in the cache"),
        "{error}"
    );
    assert!(asked(&hub).is_empty());
    let kept: Vec<_> = std::fs::read_dir(machine.home.path().join(".cache/aiperf/remote/v1/ranges"))
        .unwrap()
        .flat_map(|etag| std::fs::read_dir(etag.unwrap().path()).unwrap())
        .map(|range| range.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(kept, ["700-5699"]);
}

#[test]
fn a_file_that_the_cache_holds_is_read_there() {
    let hub = hub("data/train.parquet");
    let machine = machine(&hub);
    let (sources, files) = files(&machine);
    sources.hub_fetch(&files, "data/train.parquet").unwrap();
    hub.clear_logs();
    assert_eq!(read(&machine, "data/train.parquet", 10, 1_000).unwrap(), 0);
    assert!(asked(&hub).is_empty());
    assert!(!machine.home.path().join(".cache/aiperf/remote/v1/ranges").exists());
}

#[test]
fn a_copy_that_no_listing_tells_of_is_read_too() {
    let hub = hub("data/train.parquet");
    let mut machine = machine(&hub);
    machine.set("HF_HUB_DISABLE_SYMLINKS", "1");
    let (sources, found) = files(&machine);
    sources.hub_fetch(&found, "data/train.parquet").unwrap();
    let repo = machine.hub_cache().join("datasets--org--data");
    for listing in ["trees", ".aiperf"] {
        std::fs::remove_dir_all(repo.join(listing)).unwrap();
    }
    std::fs::remove_dir_all(repo.join("blobs")).unwrap();
    machine.set("HF_HUB_OFFLINE", "1");
    assert_eq!(read(&machine, "data/train.parquet", 10, 1_000).unwrap(), 0);
}

#[test]
fn a_server_that_knows_no_ranges_is_read_from_the_start() {
    let hub = hub("data/train.jsonl");
    hub.fault(|request| {
        request.header("range")?;
        let commit = request.path().split('/').nth(5)?.to_owned();
        Some(Answer::status(200).with("X-Repo-Commit", commit).body(content()))
    });
    let machine = machine(&hub);
    read(&machine, "data/train.jsonl", 200_000, 100).unwrap();
}

#[test]
fn a_cut_transfer_goes_on_where_it_ended_and_nothing_is_left_of_one_that_fails() {
    let hub = hub("lfs:data/train.parquet");
    let cuts = Arc::new(AtomicU32::new(0));
    let left = Arc::clone(&cuts);
    hub.fault(move |request| {
        request.header("range").filter(|_| request.target.contains("Signature="))?;
        left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).ok()?;
        Some(Answer { cut_after: Some(1_000), ..Answer::file(request, &content().into()) })
    });
    cuts.store(2, Ordering::SeqCst);
    let machine = machine(&hub);
    assert_eq!(read(&machine, "data/train.parquet", 100, 10_000).unwrap(), 10_000);
    assert_eq!(asked(&hub), ["bytes=100-10099", "bytes=1100-10099", "bytes=2100-10099"]);
    cuts.store(3, Ordering::SeqCst);
    let error = read(&machine, "data/train.parquet", 50_000, 10_000).unwrap_err();
    assert!(matches!(error.problem, Problem::CutShort { .. }), "{error}");
    let kept = walk(&machine.home.path().join(".cache/aiperf/remote/v1/ranges"));
    assert_eq!(kept, ["100-10099"]);
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            if entry.path().is_dir() {
                walk(&entry.path())
            } else {
                vec![entry.file_name().into_string().unwrap()]
            }
        })
        .collect()
}
