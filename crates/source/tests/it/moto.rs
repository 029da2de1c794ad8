//! moto's S3: versions, listings, permissions, and what boto3 stores.

use std::sync::OnceLock;

use aiperf_source::{Ask, Blame, Reference};
use aiperf_test_servers::Moto;

use crate::support::{Machine, ask, tools};

const LINES: &[u8] = b"{\"text\": \"one\"}\n{\"text\": \"two\"}\n";

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

/// A machine that has it in the place of AWS.
fn machine_of(moto: &Moto) -> Machine {
    Machine::new(&[
        ("AWS_ENDPOINT_URL_S3", moto.endpoint()),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ])
}

/// The server of all tests that need no permissions.
fn moto() -> &'static Moto {
    static MOTO: OnceLock<Moto> = OnceLock::new();
    MOTO.get_or_init(|| Moto::start(&tools()))
}

fn put(bucket: &str, objects: &[(&str, &[u8])]) -> String {
    moto().put(bucket, objects)
}

#[test]
fn an_object_of_a_versioned_bucket_is_pinned_by_its_version() {
    let moto = moto();
    moto.run(
        "s3.create_bucket(Bucket='versioned')\ns3.put_bucket_versioning(Bucket='versioned', \
              VersioningConfiguration={'Status': 'Enabled'})",
    );
    let old = put("versioned", &[("chat.jsonl", b"{\"text\": \"old\"}\n")]);
    let new = put("versioned", &[("chat.jsonl", LINES)]);
    let machine = machine_of(moto);
    let local = machine.fetch("s3://versioned/chat.jsonl", &with("single_turn")).unwrap();
    assert_eq!(local.provenance.version.as_deref(), Some(format!("versionId:{new}").as_str()));
    assert_eq!(local.provenance.resolved_reference, format!("s3://versioned/chat.jsonl?versionId={new}"));
    assert!(local.provenance.lines()[0].contains(&format!("(version {new}, 1 file(s)")));
    let sources = machine.sources();
    let reference = Reference::parse("s3://versioned/chat.jsonl").unwrap();
    let plan = sources.access(&reference, &with("single_turn")).unwrap();
    // A newer version does not change the one that was pinned.
    put("versioned", &[("chat.jsonl", b"{\"text\": \"newer\"}\n")]);
    assert_eq!(std::fs::read(&sources.fetch(&plan).unwrap().files[0].path).unwrap(), LINES);
    let pinned = format!("s3://versioned/chat.jsonl?versionId={old}");
    let local = machine.fetch(&pinned, &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), b"{\"text\": \"old\"}\n");
    let error = machine.access("s3://versioned/chat.jsonl?versionId=none", &with("single_turn")).unwrap_err();
    assert!(
        error.to_string().contains("the version \"none\" of s3://versioned/chat.jsonl was not found"),
        "{error}"
    );
    let marker = moto.run("print(s3.delete_object(Bucket='versioned', Key='chat.jsonl')['VersionId'])");
    for reference in
        ["s3://versioned/chat.jsonl".to_owned(), format!("s3://versioned/chat.jsonl?versionId={marker}")]
    {
        let error = machine.access(&reference, &with("single_turn")).unwrap_err();
        assert!(error.to_string().contains("was not found"), "{error}");
        assert_eq!(error.problem.blame(), Blame::Input);
    }
    machine.fetch(&pinned, &with("single_turn")).unwrap();
    // What the log named runs offline, and is that version whatever came since.
    let mut machine = machine;
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    let exact = format!("s3://versioned/chat.jsonl?versionId={new}");
    let local = machine.fetch(&exact, &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
}

#[test]
fn what_boto3_stores_is_read_as_stored_whatever_its_tag() {
    let moto = moto();
    moto.run(
        "s3.create_bucket(Bucket='plain')\npart = b'{\"text\": \"x\"}\\n' * 500000\n\
         upload = s3.create_multipart_upload(Bucket='plain', Key='big.jsonl')['UploadId']\n\
         parts = [{'PartNumber': n, 'ETag': s3.upload_part(Bucket='plain', Key='big.jsonl', UploadId=upload, \
         PartNumber=n, Body=part)['ETag']} for n in (1, 2)]\n\
         s3.complete_multipart_upload(Bucket='plain', Key='big.jsonl', UploadId=upload, MultipartUpload={'Parts': parts})\n\
         s3.put_object(Bucket='plain', Key='coded.jsonl', Body=b'\\x1f\\x8b no', ContentEncoding='gzip')",
    );
    let machine = machine_of(moto);
    let local = machine.fetch("s3://plain/big.jsonl", &with("single_turn")).unwrap();
    assert_eq!(local.files[0].size, 14_000_000);
    assert!(local.provenance.version.as_deref().unwrap().ends_with("-2\""), "{:?}", local.provenance);
    let local = machine.fetch("s3://plain/coded.jsonl", &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), b"\x1f\x8b no");
    put("plain", &[("late.jsonl", LINES)]);
    let sources = machine.sources();
    let reference = Reference::parse("s3://plain/late.jsonl").unwrap();
    let plan = sources.access(&reference, &with("single_turn")).unwrap();
    put("plain", &[("late.jsonl", b"{}\n")]);
    let error = sources.fetch(&plan).unwrap_err();
    assert!(error.to_string().contains("changed after AIPerf pinned its version"), "{error}");
    let leading = sources.leading(&sources.access(&reference, &with("single_turn")).unwrap(), 2).unwrap();
    assert_eq!((leading.bytes.as_slice(), leading.whole), (&b"{}"[..], false));
}

#[test]
fn the_checksums_of_boto3_are_asked_for_and_kept_to() {
    let moto = moto();
    moto.run(
        "s3.create_bucket(Bucket='summed')\nfor kind in ['CRC32', 'SHA1', 'SHA256']: \
         s3.put_object(Bucket='summed', Key=kind + '.jsonl', Body=b'{}', ChecksumAlgorithm=kind)",
    );
    // In parts, of which the answer to HEAD does not tell.
    moto.run(
        "import io\nfrom boto3.s3.transfer import TransferConfig\n\
         s3.upload_fileobj(io.BytesIO(b'x' * 11_000_000), 'summed', 'parts.jsonl', \
         Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))",
    );
    let machine = machine_of(moto);
    for name in ["CRC32", "SHA1", "SHA256", "parts"] {
        let reference = format!("s3://summed/{name}.jsonl");
        machine.fetch(&reference, &with("single_turn")).unwrap();
    }
    // The same checksums, and other bytes.
    let said = moto.run(
        "import moto.s3.models as models\nfrom moto.core.base_backend import BackendDict\n\
         backend = models.s3_backends['123456789012']['aws']\n\
         keys = backend.buckets['summed'].keys\n\
         for kind in ['CRC32', 'SHA1', 'SHA256']:\n    key = keys[kind + '.jsonl']\n    \
         print(kind, key.checksum_value)\n    key._value_buffer.seek(0)\n    key._value_buffer.write(b'[]')",
    );
    assert_eq!(said.lines().count(), 3, "{said}");
    let machine = machine_of(moto);
    for kind in ["CRC32", "SHA1", "SHA256"] {
        let error = machine
            .fetch(&format!("s3://summed/{kind}.jsonl"), &with("single_turn"))
            .unwrap_err()
            .to_string();
        let part = format!("{} does not match: {kind}.jsonl has ", kind.to_lowercase());
        assert!(error.contains(&part), "{error}");
    }
}

#[test]
fn prefixes_with_odd_names_and_many_pages_are_read_whole() {
    let moto = moto();
    moto.run(
        "s3.create_bucket(Bucket='many')\ns3.put_object(Bucket='many', Key='p q/aiperf.json', \
         Body=b'{\"path\": \"data/\", \"format\": \"raw_payload\"}')\n\
         for i in range(1205): s3.put_object(Bucket='many', Key=f'p q/data/{i:04}.json', Body=b'{}')\n\
         for name in ['a+b.json', 'c d&e.json', '\u{fc}%41#?.json', 'sub/x.json']: \
         s3.put_object(Bucket='many', Key='p q/data/' + name, Body=b'{}')\n\
         s3.put_object(Bucket='many', Key='p q/data/', Body=b'')",
    );
    let machine = machine_of(moto);
    let plan = machine.access("s3://many/p q/", &ask()).unwrap();
    assert_eq!(plan.count(), 1209);
    let names: Vec<_> = plan.files().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names[1205..], ["a+b.json", "c d&e.json", "sub/x.json", "\u{fc}%41#?.json"]);
    assert!(plan.version.unwrap().starts_with("listing:"));
    moto.run(
        "s3.put_object(Bucket='many', Key='odd/aiperf.json', Body=b'{\"path\": \"data\", \"format\": \
         \"raw_payload\"}')\nfor name in ['a+b.json', 'c d&e.json', '\u{fc}%41#?.json']: \
         s3.put_object(Bucket='many', Key='odd/data/' + name, Body=name.encode())",
    );
    for file in machine.fetch("s3://many/odd/", &ask()).unwrap().files {
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), file.name);
    }
}

#[test]
fn what_is_missing_is_told_apart() {
    let moto = moto();
    moto.run("s3.create_bucket(Bucket='gaps')\ns3.put_object(Bucket='gaps', Key='p/x.jsonl', Body=b'{}')");
    let machine = machine_of(moto);
    for (reference, part) in [
        ("s3://no-such-bucket/x.jsonl", "the bucket no-such-bucket was not found"),
        ("s3://no-such-bucket/p/", "the bucket no-such-bucket was not found"),
        ("s3://gaps/y.jsonl", "s3://gaps/y.jsonl was not found"),
        ("s3://gaps/p", "Add a / at its end"),
        ("s3://gaps/p/", "has no aiperf.json"),
        ("s3://gaps/q/", "was not found"),
    ] {
        let error = machine.access(reference, &with("single_turn")).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.problem.blame(), Blame::Input);
    }
}

#[test]
fn permissions_are_those_of_the_key() {
    let moto = &Moto::start(&tools());
    let said = moto.run(
        r#"
s3.create_bucket(Bucket='secret')
s3.put_object(Bucket='secret', Key='x.jsonl', Body=b'{"text": "one"}\n')
iam = client('iam')
keys = []
for user, allowed in [('reader', ['s3:*']), ('nobody', ['sts:*'])]:
    iam.create_user(UserName=user)
    document = {'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Action': allowed, 'Resource': '*'}]}
    iam.put_user_policy(UserName=user, PolicyName='p', PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=user)['AccessKey']
    keys += [key['AccessKeyId'], key['SecretAccessKey']]
urllib.request.urlopen(urllib.request.Request(endpoint + '/moto-api/reset-auth', data=b'0', method='POST', headers={'Content-Type': 'text/plain'}))
print(*keys)
"#,
    );
    let keys: Vec<&str> = said.split_whitespace().collect();
    let access = |bucket: &str, id: &str, secret: &str| {
        let mut machine = machine_of(moto);
        machine.set("AWS_ACCESS_KEY_ID", id);
        machine.set("AWS_SECRET_ACCESS_KEY", secret);
        machine.access(&format!("s3://{bucket}/x.jsonl"), &with("single_turn"))
    };
    access("secret", keys[0], keys[1]).unwrap();
    // Signatures of keys that an address must encode.
    let mut reader = machine_of(moto);
    reader.set("AWS_ACCESS_KEY_ID", keys[0]);
    reader.set("AWS_SECRET_ACCESS_KEY", keys[1]);
    for key in ["a b+c%41&d=e;f.jsonl", "\u{fc}'(x)*~!@$,.jsonl", "a#b?.jsonl"] {
        let script = format!(
            "client('s3', {:?}, {:?}).put_object(Bucket='secret', Key={key:?}, Body=b'x\\n')",
            keys[0], keys[1]
        );
        moto.run(&script);
        if !key.contains('?') {
            reader.access(&format!("s3://secret/{key}"), &with("single_turn")).unwrap();
        }
    }
    for (id, secret, part) in [
        (keys[2], keys[3], "denied, or it does not exist"),
        ("AKIANOBODY", "b", "S3 does not know the access key of the environment"),
        (keys[0], "wrong", "the signature by the access key of the environment is wrong"),
        ("", "", "no credentials"),
    ] {
        let error = access("secret", id, secret).unwrap_err().to_string();
        assert!(error.contains("access was denied") && error.contains(part), "{error}");
        assert!(!said.split_whitespace().any(|key| error.contains(key)), "{error}");
    }
}

#[test]
fn a_public_object_is_read_without_credentials() {
    let moto = moto();
    moto.run(
        "s3.create_bucket(Bucket='public', ACL='public-read')\nfor acl in ['public-read', 'private']: \
         s3.put_object(Bucket='public', Key=acl + '.jsonl', Body=b'{}', ACL=acl)",
    );
    let mut machine = machine_of(moto);
    machine.set("AWS_ACCESS_KEY_ID", "");
    machine.fetch("s3://public/public-read.jsonl", &with("single_turn")).unwrap();
    let error = machine.access("s3://public/private.jsonl", &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("access was denied") && error.contains("no credentials"), "{error}");
}
