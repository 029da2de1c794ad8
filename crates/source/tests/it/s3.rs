//! Objects and prefixes of S3, from a store that follows a script.

use aiperf_source::{Ask, Blame, FormatSource, Reference};
use aiperf_test_servers::s3::{error as refusal, etag};
use aiperf_test_servers::{Answer, Request, StubStore};

use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";
const MANIFEST: &[u8] = b"{\"path\": \"chat.jsonl\", \"format\": \"mooncake_trace\", \"block_size\": 16}";

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

pub(crate) fn machine(store: &StubStore) -> Machine {
    Machine::new(&[
        ("AWS_ENDPOINT_URL_S3", &store.endpoint()),
        ("AWS_ACCESS_KEY_ID", "AKIACANARYID"),
        ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
        ("AWS_SESSION_TOKEN", "canary-session"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ])
}

fn asked(store: &StubStore) -> Vec<String> {
    store.log().iter().map(|request| format!("{} {}", request.method, request.target)).collect()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;

    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn is_data(request: &Request) -> bool {
    request.method == "GET"
        && request.path().ends_with("x.jsonl")
        && request.header("range") != Some("bytes=0-0")
}

#[test]
fn an_object_is_pinned_by_its_etag_and_transferred_once() {
    let store = StubStore::start(&[("a b/x+y.jsonl", LINES)]);
    let machine = machine(&store);
    let local = machine.fetch("s3://traces/a b/x+y.jsonl", &with("mooncake_trace")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
    assert_eq!(local.files[0].name, "x+y.jsonl");
    assert_eq!(local.provenance.version.as_deref(), Some(format!("etag:{}", etag(LINES)).as_str()));
    assert_eq!(local.provenance.resolved_reference, "s3://traces/a b/x+y.jsonl");
    let key = "/traces/a%20b/x%2By.jsonl";
    assert_eq!(
        asked(&store),
        [format!("HEAD {key}"), format!("GET {key}.aiperf.json"), format!("GET {key}")]
    );
    let log = store.log();
    assert_eq!(log[2].header("if-match"), Some(etag(LINES).as_str()));
    assert_eq!(log[2].header("accept-encoding"), Some("identity"));
    for request in &log {
        let signature = request.header("authorization").unwrap();
        assert!(signature.contains("Credential=AKIACANARYID/"), "{signature}");
        assert!(signature.contains("/us-east-1/s3/aws4_request"), "{signature}");
        assert_eq!(request.header("x-amz-security-token"), Some("canary-session"));
    }
    store.clear_log();
    machine.fetch("s3://traces/a b/x+y.jsonl", &with("mooncake_trace")).unwrap();
    assert_eq!(store.log().len(), 2);
}

#[test]
fn keys_are_taken_as_they_are_written() {
    for (key, name) in [
        ("a b+c%41&d=e;f/\u{fc}'(x)*~.jsonl", "\u{fc}'(x)*~.jsonl"),
        ("/x.jsonl", "x.jsonl"),
        ("a//x.jsonl", "x.jsonl"),
        ("//x.jsonl", "x.jsonl"),
        ("a/%2e%2e", "%2e%2e"),
        ("con", "data"),
        ("a/x\\y", "data"),
        ("a/x\u{1b}y", "data"),
        ("a#b", "a#b"),
        ("\u{65e5}\u{672c} .jsonl", "\u{65e5}\u{672c} .jsonl"),
    ] {
        let store = StubStore::start(&[(key, LINES)]);
        let machine = machine(&store);
        let reference = format!("s3://traces/{key}");
        let local = machine.fetch(&reference, &with("mooncake_trace")).unwrap();
        assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES, "{key}");
        assert_eq!(local.provenance.files[0].0, key);
        let lies = local.files[0].path.file_name().unwrap().to_str().unwrap();
        assert_eq!(lies, name, "{key}");
        let prefix = machine.home.path().join(".cache/aiperf/remote/v1/s3");
        assert!(local.files[0].path.starts_with(prefix), "{key}");
    }
    // Prefixes, too: what lies below, and not what looks alike.
    for prefix in ["a b+c%41", "/p", "a//b", "a/"] {
        let store = StubStore::start(&[("p/data/y.json", b"{}"), ("data/y.json", b"{}")]);
        let folder = b"{\"path\": \"data\", \"format\": \"raw_payload\"}";
        store.put(&format!("{prefix}/aiperf.json"), folder);
        store.put(&format!("{prefix}/data/x.json"), LINES);
        let machine = machine(&store);
        let local = machine.fetch(&format!("s3://traces/{prefix}/"), &ask()).unwrap();
        let names: Vec<_> = local.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["x.json"], "{prefix}");
        assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
    }
    // Addresses fold these away: another object would be read.
    let store = StubStore::start(&[("x", LINES)]);
    for key in ["a/../x", "./x", "/"] {
        let error = machine(&store).access(&format!("s3://traces/{key}"), &with("single_turn")).unwrap_err();
        assert!(error.to_string().contains("cannot be used: "), "{error}");
    }
    assert!(store.log().is_empty());
}

#[test]
fn a_manifest_or_sidecar_has_a_version_of_its_own_and_may_be_compressed() {
    let packed = gzipped(b"{\"format\": \"mooncake_trace\", \"block_size\": 32}");
    let store = StubStore::start(&[("x.jsonl", LINES), ("x.jsonl.aiperf.json", &packed)]);
    let bytes: std::sync::Arc<[u8]> = packed.clone().into();
    store.fault(move |request| {
        let sidecar = request.path().ends_with(".aiperf.json");
        sidecar.then(|| {
            Answer::file(request, &bytes)
                .with("Content-Encoding", "gzip")
                .with("ETag", "\"e\"")
                .with("x-amz-version-id", "v7")
        })
    });
    let mut machine = machine(&store);
    let local = machine.fetch("s3://traces/x.jsonl", &ask()).unwrap();
    assert_eq!(local.provenance.format_source, Some(FormatSource::Sidecar));
    let manifest = &local.provenance.json()["manifest"];
    assert_eq!(
        (&manifest["path"], &manifest["version"]),
        (&"x.jsonl.aiperf.json".into(), &"versionId:v7".into())
    );
    // A sidecar is found again beside the exact reference: no options go with it.
    assert_eq!(local.provenance.lines().len(), 1);
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    let offline = machine.fetch("s3://traces/x.jsonl", &ask()).unwrap();
    assert_eq!(&offline.provenance.json()["manifest"], manifest);
}

#[test]
fn without_credentials_requests_are_not_signed() {
    let store = StubStore::start(&[("x.jsonl", LINES)]);
    let machine = Machine::new(&[
        ("AWS_ENDPOINT_URL", &store.endpoint()),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_ACCESS_KEY_ID", ""),
    ]);
    machine.fetch("s3://traces/x.jsonl", &with("mooncake_trace")).unwrap();
    assert!(store.log().iter().all(|request| request.header("authorization").is_none()));
    store.fault(|_| Some(refusal(403, "AccessDenied")));
    let error = machine.access("s3://traces/x.jsonl", &with("mooncake_trace")).unwrap_err().to_string();
    assert!(error.contains("access was denied") && error.contains("no credentials"), "{error}");
}

#[test]
fn a_prefix_is_read_by_its_manifest_and_versioned_by_its_listing() {
    let store = StubStore::start(&[("p/aiperf.json", MANIFEST), ("p/chat.jsonl", LINES), ("p/other", b"x")]);
    let machine = machine(&store);
    let local = machine.fetch("s3://traces/p/", &ask()).unwrap();
    assert_eq!(local.provenance.format_source, Some(FormatSource::Manifest));
    assert_eq!(local.provenance.files[0].0, "p/chat.jsonl");
    assert_eq!(local.provenance.version.as_deref(), Some(format!("etag:{}", etag(LINES)).as_str()));
    let folder = b"{\"path\": \"data\", \"format\": \"raw_payload\"}";
    store.put("q/aiperf.json", folder);
    for name in ["a.json", "b.json", "c/d.json", ".hidden", "e.json"] {
        store.put(&format!("q/data/{name}"), b"{}");
    }
    store.put("q/data/c/", b"");
    store.clear_log();
    let local = machine.fetch("s3://traces/q/", &ask()).unwrap();
    let names: Vec<_> = local.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["a.json", "b.json", "c/d.json", "e.json"]);
    let first = local.provenance.version.clone().unwrap();
    assert!(first.starts_with("listing:") && first.len() == 8 + 64, "{first}");
    assert_eq!(local.provenance.resolved_reference, "s3://traces/q/");
    let pages = asked(&store).iter().filter(|line| line.contains("list-type=2")).count();
    assert!(pages >= 3, "{pages}");
    // The same listing is the same version; another file is another.
    assert_eq!(machine.access("s3://traces/q/", &ask()).unwrap().version.as_ref(), Some(&first));
    store.put("q/data/f.json", b"{}");
    assert_ne!(machine.access("s3://traces/q/", &ask()).unwrap().version.as_ref(), Some(&first));
}

#[test]
fn a_prefix_without_a_manifest_is_an_error_even_when_it_holds_parquet() {
    let store = StubStore::start(&[("p/train-00000-of-00001.parquet", b"PAR1"), ("file", b"x")]);
    let machine = machine(&store);
    let refused = |reference: &str| {
        let error = machine.access(reference, &with("single_turn")).unwrap_err();
        assert_eq!(error.problem.blame(), Blame::Input, "{error}");
        error.to_string()
    };
    assert!(refused("s3://traces/p/").contains("s3://traces/p/ has no aiperf.json"));
    assert!(refused("s3://traces/none/").contains("was not found"));
    let error = refused("s3://traces/p");
    assert!(error.contains("Add a / at its end: s3://traces/p/ is a prefix"), "{error}");
    assert!(refused("s3://other/x").contains("the bucket other was not found"));
    assert!(refused("s3://traces/p/aiperf.json").contains("names a manifest"));
}

#[test]
fn splits_of_a_manifest_folder_without_train_fail_before_any_data() {
    let manifest = b"{\"path\": \".\", \"format\": \"single_turn\"}";
    let store = StubStore::start(&[
        ("p/aiperf.json", manifest),
        ("p/dev-00000-of-00001.parquet", b"PAR1"),
        ("p/test-00000-of-00001.parquet", b"PAR1"),
    ]);
    let machine = machine(&store);
    let error = machine.access("s3://traces/p/", &ask()).unwrap_err().to_string();
    assert!(error.contains("its manifest folder") && error.contains("holds the splits dev, test"), "{error}");
    assert!(error.contains("none is named 'train'") && error.contains("'train'"), "{error}");
    assert!(asked(&store).iter().all(|line| line.contains("aiperf.json")
        || line.contains("list-type=2")
        || line.starts_with("HEAD")));
    store.put("p/train-00000-of-00001.parquet", b"PAR1");
    store.put("p/_SUCCESS", b"x");
    let plan = machine.access("s3://traces/p/", &ask()).unwrap();
    // The whole folder is fetched; the reader of it chooses.
    assert_eq!(plan.count(), 3);
}

#[test]
fn what_s3_says_is_told_with_the_way_out() {
    for (status, code, what, fix) in [
        (403, "AccessDenied", "denied, or it does not exist", "Grant s3:GetObject"),
        (
            403,
            "InvalidAccessKeyId",
            "S3 does not know the access key of the environment",
            "AWS_ACCESS_KEY_ID",
        ),
        (403, "SignatureDoesNotMatch", "signature by the access key of the environment", "SECRET_ACCESS_KEY"),
        (400, "ExpiredToken", "has expired", "renew the credentials"),
        (403, "RequestTimeTooSkewed", "UTC here, 2026-11-30T12:00:00", "Set the clock"),
        (403, "InvalidObjectState", "is archived", "Restore it"),
        (404, "NoSuchVersion", "the version \"v1\" of s3://traces/x.jsonl was not found", "drop it"),
        (405, "MethodNotAllowed", "a delete marker, was not found", "another version"),
        (404, "NoSuchBucket", "the bucket traces was not found", "spelling"),
    ] {
        let store = StubStore::start(&[("x.jsonl", LINES)]);
        // An answer to HEAD has no body.
        store.fault(move |request| {
            let answer =
                if request.method == "HEAD" { Answer::status(status) } else { refusal(status, code) };
            Some(answer.with("Date", "Mon, 30 Nov 2026 12:00:00 GMT"))
        });
        let machine = machine(&store);
        let error = machine.access("s3://traces/x.jsonl?versionId=v1", &with("single_turn")).unwrap_err();
        assert_eq!(error.problem.blame(), Blame::Input, "{error}");
        let text = error.to_string();
        assert!(text.contains(what) && text.contains(fix), "{code}: {text}");
        assert!(!text.contains("canary") && !text.contains("AKIA"), "{text}");
        // Denied credentials are not tried without.
        assert!(store.log().iter().all(|request| request.header("authorization").is_some()));
    }
}

#[test]
fn a_sidecar_that_may_not_be_read_is_none_and_a_manifest_is_an_error() {
    let store = StubStore::start(&[("x.jsonl", LINES)]);
    store.fault(|request| request.target.contains("aiperf.json").then(|| refusal(403, "AccessDenied")));
    let machine = machine(&store);
    machine.access("s3://traces/x.jsonl", &with("single_turn")).unwrap();
    assert!(machine.notes().iter().any(|note| note.contains("taken as absent")), "{:?}", machine.notes());
    let error = machine.access("s3://traces/p/", &ask()).unwrap_err().to_string();
    assert!(error.contains("it is denied, or the prefix has no aiperf.json"), "{error}");
    assert!(error.contains("s3:ListBucket"), "{error}");
}

#[test]
fn a_store_that_is_in_trouble_is_asked_three_times() {
    for (status, code) in [(503, "SlowDown"), (500, "InternalError"), (429, ""), (400, "RequestTimeout")] {
        let store = StubStore::start(&[("x.jsonl", LINES)]);
        store.fault(move |_| Some(refusal(status, code)));
        let machine = machine(&store);
        let error = machine.access("s3://traces/p/", &ask()).unwrap_err();
        assert_eq!(error.problem.blame(), Blame::World, "{error}");
        assert!(error.to_string().contains("after 3 attempts"), "{error}");
        assert_eq!(store.log().len(), 3, "{status}");
    }
}

#[test]
fn an_object_that_is_replaced_after_the_check_is_a_change() {
    let store = StubStore::start(&[("x.jsonl", LINES)]);
    let machine = machine(&store);
    let sources = machine.sources();
    let reference = Reference::parse("s3://traces/x.jsonl").unwrap();
    let plan = sources.access(&reference, &with("single_turn")).unwrap();
    store.put("x.jsonl", b"new\n");
    store.clear_log();
    let error = sources.fetch(&plan).unwrap_err();
    assert!(error.to_string().contains("changed after AIPerf pinned its version. Run again"), "{error}");
    assert_eq!(store.log().len(), 1, "it is not retried");
    for answer in [
        || refusal(404, "NoSuchKey"),
        || refusal(404, "NoSuchVersion"),
        || Answer::status(200).with("ETag", "\"other\"").body(*LINES_ARRAY),
        || Answer::status(200).body(*LINES_ARRAY),
    ] {
        store.fault(move |request| is_data(request).then(answer));
        let error = sources.fetch(&plan).unwrap_err();
        assert!(error.to_string().contains("changed after AIPerf pinned"), "{error}");
    }
    let cache = machine.home.path().join(".cache/aiperf/remote/v1");
    assert!(!cache.join("s3").exists(), "nothing enters the cache");
    assert_eq!(std::fs::read_dir(cache.join("tmp")).unwrap().count(), 0);
}

const LINES_ARRAY: &[u8; 4] = b"new\n";

#[test]
fn a_cut_transfer_goes_on_at_the_same_version() {
    let big: Vec<u8> = (0..2_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let store = StubStore::start(&[("x.jsonl", &big)]);
    let body: std::sync::Arc<[u8]> = big.clone().into();
    let mut cuts = 0;
    store.fault(move |request| {
        if !is_data(request) || cuts == 2 {
            return None;
        }
        cuts += 1;
        let mut answer = Answer::file(request, &body).with("ETag", etag(&body));
        answer.cut_after = Some(700_000);
        Some(answer)
    });
    let machine = machine(&store);
    let local = machine.fetch("s3://traces/x.jsonl", &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), big);
    let data: Vec<_> = store.log().into_iter().filter(is_data).collect();
    assert_eq!(data.len(), 3);
    assert!(data[1..].iter().all(|request| request.header("range").is_some()));
    assert!(data.iter().all(|request| request.header("if-match") == Some(etag(&big).as_str())));
}

#[test]
fn a_bucket_in_another_region_is_asked_there_once() {
    let signed_for = |request: &Request, region: &str| {
        request.header("authorization").is_some_and(|text| text.contains(&format!("/{region}/s3/")))
    };
    for status in [301, 307, 400] {
        let store = StubStore::start(&[("x.jsonl", LINES)]);
        store.fault(move |request| {
            if signed_for(request, "eu-west-1") {
                return None;
            }
            let told = request.path() == "/traces/";
            let answer = if request.method == "HEAD" {
                Answer::status(status)
            } else {
                refusal(status, "AuthorizationHeaderMalformed")
            };
            Some(if told { answer.with("x-amz-bucket-region", "eu-west-1") } else { answer })
        });
        let machine = machine(&store);
        machine.fetch("s3://traces/x.jsonl", &with("single_turn")).unwrap();
        let log = asked(&store);
        let start = ["HEAD /traces/x.jsonl", "HEAD /traces/", "HEAD /traces/x.jsonl"];
        assert_eq!(log[..3], start, "{status} {log:?}");
        // What was learnt is kept.
        assert_eq!(log.len(), 5, "{log:?}");
    }
}

#[test]
fn a_region_that_is_no_region_and_a_redirect_to_another_host_lead_nowhere() {
    let other = StubStore::start(&[("x.jsonl", LINES)]);
    let store = StubStore::start(&[("x.jsonl", LINES)]);
    let location = format!("{}/traces/x.jsonl", other.endpoint());
    store.fault(move |_| {
        let answer = Answer::status(307).with("Location", location.clone());
        Some(answer.with("x-amz-bucket-region", "evil.example/"))
    });
    let error = machine(&store).access("s3://traces/x.jsonl", &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("the server answered 307"), "{error}");
    assert!(other.log().is_empty(), "no signature leaves");
}

#[test]
fn listings_that_are_hostile_or_endless_end_with_an_error() {
    let page = |keys: &[&str], token: &str| {
        let one = |key: &&str| format!("<Contents><Key>{key}</Key><Size>2</Size></Contents>");
        let contents = keys.iter().map(one).collect::<Vec<_>>().concat();
        let next = if token.is_empty() {
            "<IsTruncated>false</IsTruncated>".to_owned()
        } else {
            format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>")
        };
        let text =
            format!("<ListBucketResult><EncodingType>url</EncodingType>{contents}{next}</ListBucketResult>");
        Answer::status(200).body(text.into_bytes())
    };
    let many: Vec<String> = (0..10_001).map(|i| format!("p/{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let many = page(&many, "");
    for (answer, part) in [
        (page(&["p/a"], "t"), "pages lead back to each other"),
        (page(&["p/a/../../etc/x"], ""), "is empty"),
        (page(&["p/a//x"], ""), "an empty, '.' or '..' part"),
        (page(&["p/a%1B[2J"], ""), "\\u{1b}"),
        (page(&["p/a", "p/a/b"], ""), "the name of its folder"),
        (page(&["elsewhere"], ""), "does not exist at this version"),
        (many, "10001 data files, at most 10000"),
        (Answer::status(200).body(*b"<html></html>"), "no listing of the bucket traces"),
        (Answer::status(200).body(*b"<ListBucketResult><Contents>"), "no listing of the bucket traces"),
    ] {
        let store = StubStore::start(&[("p/aiperf.json", b"{\"path\": \".\", \"format\": \"raw_payload\"}")]);
        store.fault(move |request| request.target.contains("list-type=2").then(|| answer.clone()));
        let machine = machine(&store);
        let error = machine.access("s3://traces/p/", &ask()).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert!(!error.contains('\u{1b}'));
        assert!(!machine.home.path().join(".cache").exists(), "nothing is written");
    }
}

/// As headers have it.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;

    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// What the kinds of checksums of `123456789` are, by the catalogue of them all.
const NINE: &[u8] = b"123456789";
const OF_NINE: [(&str, &[u8]); 4] = [
    ("crc32", &[0xcb, 0xf4, 0x39, 0x26]),
    ("crc32c", &[0xe3, 0x06, 0x92, 0x83]),
    ("crc64nvme", &[0xae, 0x8b, 0x14, 0x86, 0x0a, 0x79, 0x98, 0x88]),
    ("sha1", b"\xf7\xc3\xbc\x1d\x80\x8e\x04\x73\x2a\xdf\x67\x99\x65\xcc\xc3\x4c\xa7\xae\x34\x41"),
];

/// Answers with a checksum, where one is asked for.
fn summed(store: &StubStore, bytes: &'static [u8], name: &str, sum: &str, kind: &str) {
    let (name, sum, kind) = (format!("x-amz-checksum-{name}"), sum.to_owned(), kind.to_owned());
    store.fault(move |request| {
        let of_data = request.path().ends_with("x.jsonl");
        (of_data && request.header("x-amz-checksum-mode") == Some("ENABLED")).then(|| {
            Answer::file(request, &bytes.into())
                .with("ETag", etag(bytes))
                .with(&name, sum.as_str())
                .with("x-amz-checksum-type", kind.as_str())
        })
    });
}

#[test]
fn a_checksum_is_kept_to_where_the_store_sends_one() {
    let sha256 = ring::digest::digest(&ring::digest::SHA256, NINE);
    let kinds = OF_NINE.into_iter().chain([("sha256", sha256.as_ref())]);
    for (name, right) in kinds {
        let wrong = vec![7; right.len()];
        for (sum, kind, works) in [
            (base64(right), "FULL_OBJECT", true),
            (base64(&wrong), "FULL_OBJECT", false),
            // Of sums, or none at all.
            (base64(&wrong), "COMPOSITE", true),
            (format!("{}-2", base64(&wrong)), "FULL_OBJECT", true),
            (base64(&[7; 3]), "FULL_OBJECT", true),
        ] {
            let store = StubStore::start(&[("x.jsonl", NINE)]);
            summed(&store, NINE, name, &sum, kind);
            let machine = machine(&store);
            let fetched = machine.fetch("s3://traces/x.jsonl", &with("single_turn"));
            assert_eq!(fetched.is_ok(), works, "{name} {kind} {sum} {fetched:?}");
            if let Err(error) = fetched {
                let text = error.to_string();
                assert!(text.contains(&format!("{name} does not match: x.jsonl has ")), "{text}");
                assert!(text.contains("and its source says 07070707"), "{text}");
                assert!(
                    text.contains("Run again; if it stays so, the file is damaged where it is kept"),
                    "{text}"
                );
                assert_eq!(
                    store.log().iter().filter(|request| is_data(request)).count(),
                    1,
                    "no second attempt"
                );
            }
            // What asks for it is signed like everything that stores understand.
            let asked = store.log();
            let signed = asked[0].header("authorization").unwrap();
            assert!(signed.contains("x-amz-checksum-mode"), "{signed}");
        }
    }
}

#[test]
fn the_checksum_of_a_file_of_a_folder_comes_with_its_bytes() {
    let manifest = b"{\"path\": \"d\", \"format\": \"raw_payload\"}";
    for (sum, works) in [(OF_NINE[2].1, true), (&[7; 8][..], false)] {
        let store = StubStore::start(&[("p/aiperf.json", manifest), ("p/d/x.jsonl", NINE)]);
        summed(&store, NINE, "crc64nvme", &base64(sum), "FULL_OBJECT");
        let fetched = machine(&store).fetch("s3://traces/p/", &ask());
        assert_eq!(fetched.is_ok(), works, "{fetched:?}");
        if let Err(error) = fetched {
            assert!(error.to_string().contains("crc64nvme does not match: p/d/x.jsonl has "), "{error}");
        }
    }
}

#[test]
fn a_checksum_is_that_of_the_whole_object_where_a_transfer_was_cut() {
    for (sum, works) in [(OF_NINE[1].1, true), (&[7; 4][..], false)] {
        let store = StubStore::start(&[("x.jsonl", NINE)]);
        let sum = base64(sum);
        let mut cuts = 0;
        store.fault(move |request| {
            if !request.path().ends_with("x.jsonl") {
                return None;
            }
            let answer = Answer::file(request, &NINE.into()).with("ETag", etag(NINE));
            // A part has no checksum of the whole.
            if request.range().is_some() {
                return Some(answer);
            }
            cuts += usize::from(is_data(request));
            let cut_after = (is_data(request) && cuts == 1).then_some(4);
            Some(Answer { cut_after, ..answer.with("x-amz-checksum-crc32c", sum.as_str()) })
        });
        let fetched = machine(&store).fetch("s3://traces/x.jsonl", &with("single_turn"));
        assert_eq!(fetched.is_ok(), works, "{fetched:?}");
        let data: Vec<_> = store.log().into_iter().filter(is_data).collect();
        assert!(data.len() == 2 && data[1].header("range") == Some("bytes=4-"), "{data:?}");
    }
}

#[test]
fn the_files_of_a_folder_come_in_the_order_of_loaders() {
    let folder = b"{\"path\": \"d\", \"format\": \"raw_payload\"}";
    let store = StubStore::start(&[
        ("p/aiperf.json", folder),
        ("p/d/a-b/x.json", b"{}"),
        ("p/d/a/x.json", b"{}"),
        ("p/d/a.json", b"{}"),
    ]);
    let plan = machine(&store).access("s3://traces/p/", &ask()).unwrap();
    let names: Vec<_> = plan.files().map(|(name, _)| name).collect();
    assert_eq!(names, ["a/x.json", "a-b/x.json", "a.json"]);
}

#[test]
fn the_sidecar_of_a_version_is_the_newest_one() {
    let store =
        StubStore::start(&[("x.jsonl", LINES), ("x.jsonl.aiperf.json", b"{\"format\": \"single_turn\"}")]);
    store.fault(|request| {
        let of_version = request.path().ends_with("x.jsonl") && request.target.contains("versionId=v1");
        of_version.then(|| {
            Answer::file(request, &LINES.into()).with("ETag", "\"e\"").with("x-amz-version-id", "v1")
        })
    });
    let plan = machine(&store).access("s3://traces/x.jsonl?versionId=v1", &ask()).unwrap();
    assert_eq!((plan.format, plan.version.as_deref()), (Some("single_turn"), Some("versionId:v1")));
    let asked = asked(&store);
    assert!(asked.contains(&"GET /traces/x.jsonl.aiperf.json".to_owned()), "{asked:?}");
}

#[test]
fn offline_an_object_a_prefix_and_a_version_are_what_was_fetched() {
    let store = StubStore::start(&[("p/aiperf.json", MANIFEST), ("p/chat.jsonl", LINES)]);
    let mut machine = machine(&store);
    let online = machine.fetch("s3://traces/p/", &ask()).unwrap();
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    store.clear_log();
    let offline = machine.fetch("s3://traces/p/", &ask()).unwrap();
    assert_eq!(offline.files, online.files);
    assert_eq!(offline.provenance.version, online.provenance.version);
    let error = machine.fetch("s3://traces/p/chat.jsonl", &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("not in the cache and offline mode is on"), "{error}");
    assert!(store.log().is_empty());
}

#[test]
fn keys_and_tokens_stay_out_of_the_cache() {
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, found) } else { found.push(path) }
        }
    }
    let store = StubStore::start(&[("p/aiperf.json", MANIFEST), ("p/chat.jsonl", LINES)]);
    let machine = machine(&store);
    machine.fetch("s3://traces/p/", &ask()).unwrap();
    let mut found = Vec::new();
    files(machine.home.path(), &mut found);
    assert!(found.len() >= 3, "{found:?}");
    for path in found {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("canary") && !text.contains("AKIA"), "{}", path.display());
    }
    let notes = format!("{:?}", machine.notes());
    assert!(!notes.contains("canary") && !notes.contains("AKIA"), "{notes}");
}

#[test]
fn a_page_in_the_place_of_a_store_leads_to_the_setting_that_names_it() {
    let console = aiperf_test_servers::Server::start(|_| {
        Answer::status(200)
            .with("Content-Type", "text/html; charset=utf-8")
            .body(b"<!doctype html><title>Console</title>".to_vec())
    });
    let machine = Machine::new(&[
        ("AWS_ENDPOINT_URL_S3", &console.url()),
        ("AWS_ACCESS_KEY_ID", "AKIACANARYID"),
        ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    for reference in ["s3://traces/p/", "s3://traces/p/x.jsonl"] {
        let error = machine.access(reference, &ask()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("the server answered with an HTML page to a question about s3://traces/p/"),
            "{text}"
        );
        assert!(text.contains("Check AWS_ENDPOINT_URL_S3") && text.contains("another port"), "{text}");
        assert_eq!(error.problem.blame(), Blame::World);
    }
    // An object of a store is one, whatever its kind.
    let store = StubStore::start(&[("p/x.jsonl", LINES)]);
    store.fault(|request| {
        let is_data = request.path() == "/traces/p/x.jsonl";
        let answer = Answer::file(request, &std::sync::Arc::from(LINES)).with("ETag", etag(LINES));
        is_data.then(|| answer.with("Content-Type", "text/html").with("x-amz-request-id", "1"))
    });
    self::machine(&store).fetch("s3://traces/p/x.jsonl", &with("mooncake_trace")).unwrap();
}
