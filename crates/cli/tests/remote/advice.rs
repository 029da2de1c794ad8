//! The next step that a message names is one that helps.

use aiperf_test_servers::{Answer, StubHub, StubRepo, StubStore, rows};
use serde_json::json;

use crate::machine::{Machine, TRACE, stderr};
use crate::publish::Set;

const SINGLE: &[u8] = b"{\"path\": \"x.jsonl\", \"format\": \"single_turn\"}";
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";

/// What all findings about a folder say, with their next steps.
fn advice(set: &Set) -> String {
    let (_, shown) = set.check(&[]);
    let findings = shown["findings"].as_array().unwrap().iter();
    let lines = findings
        .map(|found| format!("{}. {}.", found["message"].as_str().unwrap(), found["fix"].as_str().unwrap()));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_folder_of_one_shard_or_of_two_splits_is_not_asked_for_a_digest() {
    let shard = rows::parquet(&[json!({"text": "hello"})], 5);
    let manifest: (&str, &[u8]) = ("aiperf.json", b"{\"path\": \"data\", \"format\": \"single_turn\"}");
    let one = Set::new(&[manifest, ("data/train-00000-of-00001.parquet", &shard)]);
    assert_eq!(advice(&one), "");
    let two = Set::new(&[
        manifest,
        ("data/train-00000-of-00001.parquet", &shard),
        ("data/test-00000-of-00001.parquet", &shard),
    ]);
    let told = advice(&two);
    assert!(!told.contains("sha256") && told.contains("not read: "), "{told}");
}

#[test]
fn data_that_cannot_be_read_get_no_digest_and_no_advice_about_records() {
    let xz = b"\xfd7zXZ\0 and more";
    let set =
        Set::new(&[("aiperf.json", b"{\"path\": \"x.xz\", \"format\": \"single_turn\"}"), ("x.xz", xz)]);
    let told = advice(&set);
    assert!(told.starts_with("cannot read x.xz: it is xz-compressed"), "{told}");
    assert!(told.contains("are read. Decompress it, or"), "{told}");
    let pointer = Set::new(&[("aiperf.json", SINGLE), ("x.jsonl", LFS_POINTER)]);
    let told = advice(&pointer);
    assert!(told.contains("Git LFS pointer and not the data. Run `git lfs pull`"), "{told}");
    for set in [&set, &pointer] {
        let (code, shown) = set.check(&[]);
        assert_eq!((code, &shown["suggested"]["sha256"]), (1, &json!(null)), "{shown:#}");
        let told = advice(set);
        assert!(!told.contains("sha256") && !told.contains("another format"), "{told}");
    }
    let (_, shown) = Set::new(&[("x.jsonl", LFS_POINTER)]).check(&[]);
    assert_eq!(shown["suggested"]["sha256"], json!(null), "{shown:#}");
}

#[test]
fn a_wrong_block_size_of_a_manifest_is_corrected_there() {
    let manifest = b"{\"path\": \"x.jsonl\", \"format\": \"mooncake_trace\", \"block_size\": 64}";
    for trace in [
        "{\"timestamp\":0,\"input_length\":1000,\"output_length\":3,\"hash_ids\":[1,2,3]}\n\
         {\"timestamp\":0,\"input_length\":100,\"output_length\":3,\"hash_ids\":[1,2]}\n",
        "{\"timestamp\":0,\"input_length\":10,\"output_length\":3,\"hash_ids\":[1,2]}\n",
    ] {
        let told = advice(&Set::new(&[("aiperf.json", manifest), ("x.jsonl", trace.as_bytes())]));
        assert!(told.contains(". Correct \"block_size\" in the aiperf.json, or the record."), "{told}");
        assert!(!told.contains("--isl-block-size") && !told.contains("another format"), "{told}");
    }
}

#[test]
fn a_license_and_a_citation_lie_beside_the_data_as_they_should() {
    let set = Set::new(&[
        ("aiperf.json", SINGLE),
        ("x.jsonl", b"{\"text\": \"a\"}\n"),
        ("LICENSE", b"MIT"),
        ("LICENSE-APACHE", b"x"),
        ("docs/license.txt", b"x"),
        ("CITATION.cff", b"x"),
        ("NOTICE.md", b"x"),
        ("licensed.csv", b"x"),
    ]);
    let told = advice(&set);
    assert!(told.contains("a run does not read licensed.csv. "), "{told}");
}

#[test]
fn a_public_data_set_that_is_named_as_a_path_is_told_as_one() {
    let output = Machine::bare().aiperf(&["dataset", "resolve", "spec-al-gsm8k"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("spec_al_gsm8k is a public data set and no path; see `aiperf datasets spec_al_gsm8k`")
            && said.contains("`aiperf dataset fetch --public-dataset spec_al_gsm8k`"),
        "{said}"
    );
    let output = Machine::bare().aiperf(&["datasets", "spec_al_gsm8k"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn faults_of_shards_name_them_with_their_folder() {
    let good = rows::parquet(&[json!({"text": "hello"})], 5);
    let hub = StubHub::start(&[(
        "me/sh",
        StubRepo::new(&[
            ("data/train-00000-of-00002.parquet", &good),
            ("data/train-00001-of-00002.parquet", b"PAR1 no more"),
        ]),
    )]);
    let machine = Machine::new(&hub);
    for (reference, place) in [
        ("hf://me/sh", "hf://me/sh/data/train-00001"),
        ("hf://me/sh/data", "hf://me/sh/data/train-00001"),
        ("hf://datasets/me/sh@main/data/", "hf://datasets/me/sh@main/data/train-00001"),
    ] {
        let said = stderr(&machine.aiperf(&["validate", "single_turn", reference]));
        assert!(said.contains(&format!("cannot read {place}-of-00002.parquet")), "{said}");
        let said =
            stderr(&machine.profile(&["--input-file", reference, "--custom-dataset-type", "single_turn"]));
        // A fault of the first look is told from the reference on.
        let below = if reference == "hf://me/sh" { "data/train-00001-of-" } else { "train-00001-of-" };
        assert!(said.contains(below) && !said.contains("sh/train-"), "{said}");
    }
}

#[test]
fn a_column_that_is_not_there_is_a_fault_of_the_flag() {
    let hub = StubHub::start(&[("me/set", StubRepo::new(&[("x.jsonl", b"{\"text\": \"a\"}\n")]))]);
    let output = Machine::new(&hub).profile(&[
        "--input-file",
        "hf://me/set/x.jsonl",
        "--custom-dataset-type",
        "single_turn",
        "--input-columns",
        "text=nope",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--input-columns text=nope: no record has such a key. Correct the name, or"),
        "{said}"
    );
    assert!(!said.contains("publisher") && !said.contains("does not look like"), "{said}");
}

#[test]
fn credentials_in_the_address_of_the_hub_are_refused() {
    let hub = StubHub::start(&[("me/set", StubRepo::new(&[("x.jsonl", TRACE)]))]);
    let mut machine = Machine::new(&hub);
    let address = machine.variables.iter().find(|(name, _)| name == "HF_ENDPOINT").unwrap().1.clone();
    machine.variables.retain(|(name, _)| name != "HF_ENDPOINT");
    machine.set("HF_ENDPOINT", &address.replace("://", "://me:canary@"));
    let output = machine.aiperf(&["dataset", "resolve", "hf://me/set/x.jsonl"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("HF_ENDPOINT is \"http://<redacted>@") && said.contains("query and credentials"),
        "{said}"
    );
    assert!(!said.contains("canary") && hub.log().is_empty(), "{said}");
}

#[test]
fn the_region_that_a_bucket_tells_is_printed() {
    let store = StubStore::start(&[("x.jsonl", TRACE)]);
    store.fault(|_| {
        let body = b"<Error><Code>PermanentRedirect</Code></Error>".to_vec();
        Some(Answer::status(301).with("x-amz-bucket-region", "eu-central-1").body(body))
    });
    let mut machine = Machine::bare();
    for (name, value) in [
        ("AWS_ENDPOINT_URL_S3", store.endpoint().as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIAx"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ] {
        machine.set(name, value);
    }
    let said = stderr(&machine.aiperf(&["dataset", "resolve", "s3://traces/x.jsonl"]));
    assert!(
        said.contains("The bucket is in eu-central-1: check the endpoint (AWS_ENDPOINT_URL_S3)")
            && said.contains("AWS_REGION=eu-central-1"),
        "{said}"
    );
}
