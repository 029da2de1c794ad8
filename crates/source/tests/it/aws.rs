//! Where credentials for S3 come from: each link of the chain, told by the key that requests are signed with.

use aiperf_source::Ask;
use aiperf_test_servers::{Answer, Server, StubStore, sign_on};

use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"text\": \"one\"}\n";

fn with() -> Ask<'static> {
    Ask { format: Some("single_turn"), ..ask() }
}

/// A machine without credentials, but with these files in `~/.aws`.
fn machine(store: &StubStore, files: &[(&str, &str)]) -> Machine {
    let machine =
        Machine::new(&[("AWS_ENDPOINT_URL_S3", &store.endpoint()), ("AWS_EC2_METADATA_DISABLED", "true")]);
    for (name, text) in files {
        let path = machine.home.path().join(".aws").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    machine
}

fn store() -> StubStore {
    StubStore::start(&[("x.jsonl", LINES)])
}

/// The key of the first request, if it is signed, and the region that it is signed for.
fn signer(machine: &Machine, store: &StubStore) -> Option<(String, String)> {
    store.clear_log();
    machine.access("s3://traces/x.jsonl", &with()).unwrap();
    let log = store.log();
    let scope = log[0].header("authorization")?.split_once("Credential=")?.1.to_owned();
    let mut parts = scope.split('/');
    Some((parts.next()?.to_owned(), parts.nth(1)?.to_owned()))
}

fn key(machine: &Machine, store: &StubStore) -> String {
    signer(machine, store).map(|(key, _)| key).unwrap_or_default()
}

/// A token service: the key `ASIA<action>0000` for every action, in XML.
fn sts() -> Server {
    Server::start(|request| {
        let text = format!("{}&{}", request.target, String::from_utf8_lossy(&request.body));
        let action = if text.contains("AssumeRoleWithWebIdentity") {
            "AssumeRoleWithWebIdentity"
        } else {
            "AssumeRole"
        };
        let body = format!(
            "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
             <AccessKeyId>ASIA{action}0000</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
             <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>"
        );
        Answer::status(200).with("Content-Type", "text/xml").body(body.into_bytes())
    })
}

#[test]
fn the_environment_comes_before_a_profile_and_a_profile_before_nothing() {
    let store = store();
    let files = [
        (
            "credentials",
            "[default]\naws_access_key_id=FILEKEY\naws_secret_access_key=s\n[team]\naws_access_key_id=TEAMKEY\naws_secret_access_key=s\n",
        ),
        (
            "config",
            "[default]\nregion=eu-west-3\n[profile team]\nregion=eu-north-1\n[profile inline]\naws_access_key_id=INLINEKEY\naws_secret_access_key=s\n",
        ),
    ];
    let mut machine = machine(&store, &files);
    assert_eq!(signer(&machine, &store), Some(("FILEKEY".into(), "eu-west-3".into())));
    machine.set("AWS_PROFILE", "team");
    assert_eq!(signer(&machine, &store), Some(("TEAMKEY".into(), "eu-north-1".into())));
    machine.set("AWS_PROFILE", "inline");
    assert_eq!(signer(&machine, &store), Some(("INLINEKEY".into(), "us-east-1".into())));
    machine.set("AWS_REGION", "ap-south-1");
    machine.set("AWS_ACCESS_KEY_ID", "ENVKEY");
    machine.set("AWS_SECRET_ACCESS_KEY", "s");
    assert_eq!(signer(&machine, &store), Some(("ENVKEY".into(), "ap-south-1".into())));
    let none = self::machine(&store, &[]);
    assert_eq!(signer(&none, &store), None);
}

#[test]
fn a_profile_may_name_its_endpoint() {
    let store = store();
    let config = format!("[default]\nendpoint_url = {}/\n", store.endpoint());
    let mut machine = machine(&store, &[("config", &config)]);
    machine.set("AWS_ENDPOINT_URL_S3", "");
    assert_eq!(signer(&machine, &store), None);
    assert!(!store.log().is_empty());
}

#[test]
fn a_program_of_a_profile_is_run_with_its_quotes() {
    let store = store();
    let config = "[default]\ncredential_process = printf '%s' '{\"Version\":1,\"AccessKeyId\":\"PROCESSKEY\",\"SecretAccessKey\":\"s\",\"SessionToken\":\"t\",\"Expiration\":\"2099-01-01T00:00:00Z\"}'\n";
    assert_eq!(key(&machine(&store, &[("config", config)]), &store), "PROCESSKEY");
}

/// As every AWS tool runs it, whatever else the file holds.
#[test]
fn quotes_of_a_program_and_sections_that_are_broken_do_no_harm() {
    let store = store();
    let config = "[profile broken\nregion\n=\n[]\n\u{fe}= [\n[default]\ncredential_process = sh -c \"printf '%s' \
                  '{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"PROCESSKEY\\\",\\\"SecretAccessKey\\\":\\\"s\\\"}'\"\n\
                  [profile keys]\naws_access_key_id = PROFILEKEY\naws_secret_access_key = s\n";
    let mut machine = machine(&store, &[("config", config)]);
    assert_eq!(key(&machine, &store), "PROCESSKEY");
    machine.set("AWS_PROFILE", "keys");
    assert_eq!(key(&machine, &store), "PROFILEKEY");
}

#[test]
fn a_profile_may_assume_a_role_from_another_profile() {
    let (store, sts) = (store(), sts());
    let config = "[profile base]\naws_access_key_id=BASEKEY\naws_secret_access_key=s\n[profile role]\nrole_arn = \
                  arn:aws:iam::123456789012:role/reader\nsource_profile=base\nexternal_id=x1\nrole_session_name=me\n[profile \
                  loop]\nrole_arn=arn:aws:iam::123456789012:role/reader\nsource_profile=pool\n[profile \
                  pool]\nrole_arn=arn:aws:iam::123456789012:role/reader\nsource_profile=loop\n";
    let mut machine = machine(&store, &[("config", config)]);
    machine.set("AWS_ENDPOINT_URL_STS", &sts.url());
    machine.set("AWS_PROFILE", "role");
    assert_eq!(key(&machine, &store), "ASIAAssumeRole0000");
    let log = sts.log();
    let text = format!("{}&{}", log[0].target, String::from_utf8_lossy(&log[0].body));
    assert!(log[0].header("authorization").unwrap().contains("Credential=BASEKEY/"));
    assert!(text.contains("ExternalId=x1") && text.contains("RoleSessionName=me"), "{text}");
    machine.set("AWS_PROFILE", "loop");
    assert_eq!(key(&machine, &store), "", "profiles that name each other end");
}

#[test]
fn a_web_identity_is_exchanged_for_a_role() {
    let (store, sts) = (store(), sts());
    let mut machine = machine(&store, &[("token", "canary-token\n")]);
    let token = machine.home.path().join(".aws/token").display().to_string();
    machine.set("AWS_ENDPOINT_URL_STS", &sts.url());
    machine.set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    machine.set("AWS_WEB_IDENTITY_TOKEN_FILE", &token);
    assert_eq!(key(&machine, &store), "ASIAAssumeRoleWithWebIdentity0000");
    assert!(sts.log()[0].header("authorization").is_none());
    // The same, named by a profile.
    let config =
        format!("[default]\nrole_arn=arn:aws:iam::123456789012:role/pod\nweb_identity_token_file={token}\n");
    std::fs::write(machine.home.path().join(".aws/config"), config).unwrap();
    machine.set("AWS_ROLE_ARN", "");
    assert_eq!(key(&machine, &store), "ASIAAssumeRoleWithWebIdentity0000");
}

#[test]
fn containers_and_instances_are_asked_for_their_role() {
    let store = store();
    let body = |key: &str| {
        format!(
            "{{\"Code\":\"Success\",\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\"Expiration\":\
             \"2099-01-01T00:00:00Z\"}}"
        )
    };
    let (pod, instance) = (body("PODKEY"), body("INSTANCEKEY"));
    let service = Server::start(move |request| match (request.method.as_str(), request.path()) {
        ("GET", "/v1/credentials") if request.header("authorization") == Some("pod-token") => {
            Answer::status(200).body(pod.clone().into_bytes())
        }
        ("PUT", "/latest/api/token") => Answer::status(200).body(*b"imds-token"),
        ("GET", "/latest/meta-data/iam/security-credentials/") => Answer::status(200).body(*b"reader"),
        ("GET", "/latest/meta-data/iam/security-credentials/reader") => {
            Answer::status(200).body(instance.clone().into_bytes())
        }
        _ => Answer::status(404),
    });
    let mut machine = machine(&store, &[("token", "pod-token\n")]);
    machine.set("AWS_EC2_METADATA_DISABLED", "false");
    machine.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &service.url());
    assert_eq!(key(&machine, &store), "INSTANCEKEY");
    let token = machine.home.path().join(".aws/token").display().to_string();
    machine.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", &format!("{}/v1/credentials", service.url()));
    machine.set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token);
    assert_eq!(key(&machine, &store), "PODKEY");
}

#[test]
fn a_single_sign_on_is_exchanged_for_a_role() {
    let store = store();
    let portal = Server::start(|request| {
        if request.header("x-amz-sso_bearer_token") != Some("canary-sso") {
            return Answer::status(401);
        }
        Answer::status(200).body(
            *b"{\"roleCredentials\":{\"accessKeyId\":\"SSOKEY\",\"secretAccessKey\":\"s\",\"sessionToken\":\"t\",\"expiration\":4070908800000}}",
        )
    });
    let config = "[default]\nsso_start_url=https://x.awsapps.com/start\nsso_region=us-east-1\nsso_account_id=1\nsso_role_name=r\n";
    // The name is the sha1 of the start URL.
    let cached = (
        "sso/cache/3947de8b16688092197fa616c34e01335f21d256.json",
        "{\"accessToken\":\"canary-sso\",\"expiresAt\":\"2099-01-01T00:00:00Z\"}",
    );
    let mut machine = machine(&store, &[("config", config), cached]);
    machine.set("AWS_SSO_ENDPOINT", &portal.url());
    assert_eq!(key(&machine, &store), "SSOKEY");
    // One that profiles share: here the name is the sha1 of the session's.
    let config = "[profile team]\nsso_session = corp\nsso_account_id=1\nsso_role_name=r\n[sso-session corp]\nsso_region=us-east-1\n\
                  sso_start_url=https://x.awsapps.com/start\nsso_registration_scopes=sso:account:access\n";
    let cached = (
        "sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json",
        "{\"accessToken\":\"canary-sso\",\"expiresAt\":\"2099-01-01T00:00:00Z\"}",
    );
    let mut machine = self::machine(&store, &[("config", config), cached]);
    machine.set("AWS_SSO_ENDPOINT", &portal.url());
    machine.set("AWS_PROFILE", "team");
    assert_eq!(key(&machine, &store), "SSOKEY");
    let asked = portal.log().last().unwrap().target.clone();
    assert!(asked.contains("role_name=r") && asked.contains("account_id=1"), "{asked}");
    // Signed out: it is said that this profile gave nothing.
    std::fs::remove_dir_all(machine.home.path().join(".aws/sso")).unwrap();
    store.fault(|_| Some(aiperf_test_servers::s3::error(403, "AccessDenied")));
    let error = machine.access("s3://traces/x.jsonl", &with()).unwrap_err().to_string();
    assert!(error.contains("the profile \"team\" gave none"), "{error}");
}

/// A machine whose sign-on `corp` left this token behind, and the token's path.
fn signed_on(store: &StubStore, token: &serde_json::Value) -> (Machine, std::path::PathBuf) {
    let mut machine = machine(store, &[("config", sign_on::CONFIG), (sign_on::TOKEN, &token.to_string())]);
    machine.set("AWS_PROFILE", "team");
    let path = machine.home.path().join(".aws").join(sign_on::TOKEN);
    (machine, path)
}

#[test]
fn a_sign_on_that_has_ended_is_renewed_for_as_long_as_its_session_lasts() {
    use std::os::unix::fs::PermissionsExt as _;

    let store = store();
    let (portal, tokens, ended) = (sign_on::portal(), sign_on::tokens(), sign_on::ended());
    let (mut machine, path) = signed_on(&store, &ended);
    machine.set("AWS_SSO_ENDPOINT", &portal.url());
    machine.set("AWS_ENDPOINT_URL_SSO_OIDC", &tokens.url());
    assert_eq!(key(&machine, &store), "SSOKEY");
    // Other tools go on with what was renewed, and so does the next run.
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        (&kept["accessToken"], &kept["refreshToken"], &kept["startUrl"]),
        (&"canary-new".into(), &"canary-next".into(), &ended["startUrl"])
    );
    let end = kept["expiresAt"].as_str().unwrap();
    assert!(end.len() == 20 && end.ends_with('Z') && end > "2026", "{end}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(key(&machine, &store), "SSOKEY");
    assert_eq!(tokens.log().len(), 1);
    // What cannot be renewed is told with the command that signs in again.
    store.fault(|_| Some(aiperf_test_servers::s3::error(403, "AccessDenied")));
    for (change, value) in [
        ("registrationExpiresAt", "2020-01-01T00:00:00Z"),
        ("refreshToken", ""),
        ("refreshToken", "canary-revoked"),
        ("expiresAt", "soon"),
    ] {
        let mut token = ended.clone();
        token[change] = value.into();
        let (mut machine, _) = signed_on(&store, &token);
        machine.set("AWS_SSO_ENDPOINT", &portal.url());
        machine.set("AWS_ENDPOINT_URL_SSO_OIDC", &tokens.url());
        for reference in ["s3://traces/x.jsonl", "s3://traces/p/"] {
            let error = machine.access(reference, &with()).unwrap_err().to_string();
            let part = "no credentials (the profile \"team\" gave none)";
            assert!(error.contains(part), "{change}: {error}");
            assert!(error.contains("Sign in with `aws sso login --profile team`, and run again."), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }
}

#[test]
fn a_profile_may_name_its_services() {
    let (store, sts) = (store(), sts());
    let config = format!(
        "[profile local]\nservices = mine\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\n[profile \
         base]\naws_access_key_id=BASEKEY\naws_secret_access_key=s\n[services mine]\ns3 =\n  endpoint_url = {}\nsts =\n  \
         endpoint_url = {}\n",
        store.endpoint(),
        sts.url()
    );
    let mut machine = machine(&store, &[("config", &config)]);
    machine.set("AWS_ENDPOINT_URL_S3", "");
    machine.set("AWS_PROFILE", "local");
    assert_eq!(key(&machine, &store), "ASIAAssumeRole0000");
    assert_eq!(sts.log().len(), 1);
}

#[test]
fn what_is_set_up_and_gives_nothing_is_named() {
    let store = store();
    store.fault(|_| Some(aiperf_test_servers::s3::error(403, "AccessDenied")));
    let mut machine = machine(&store, &[("config", "[default]\ncredential_process = false\n")]);
    machine.set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    machine.set("AWS_WEB_IDENTITY_TOKEN_FILE", "/none");
    let error = machine.access("s3://traces/x.jsonl", &with()).unwrap_err().to_string();
    let part = "no credentials (the profile \"default\" and the web identity of AWS_ROLE_ARN gave none)";
    assert!(error.contains(part), "{error}");
    assert!(
        error.ends_with("See with `aws sts get-caller-identity --profile default` why it gives none."),
        "{error}"
    );
    let refused = |variables: &[(&str, &str)]| {
        let mut machine = self::machine(&store, &[]);
        for (name, value) in variables {
            machine.set(name, value);
        }
        machine.access("s3://traces/x.jsonl", &with()).unwrap_err().to_string()
    };
    for (variables, what, fix) in [
        (&[][..], "with no credentials: ", "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (
            &[("AWS_PROFILE", "nope")],
            "the profile \"nope\" gave none",
            "no profile \"nope\" is in ~/.aws/config",
        ),
        (&[("AWS_ACCESS_KEY_ID", "canary")], "half an access key gave none", "or neither"),
        (
            &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/x")],
            "the container gave none",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI answers",
        ),
    ] {
        let error = refused(variables);
        assert!(error.contains(what) && error.contains(fix) && !error.contains("canary"), "{error}");
    }
}

#[test]
fn why_a_profile_gives_nothing_is_told() {
    let store = store();
    store.fault(|_| Some(aiperf_test_servers::s3::error(403, "AccessDenied")));
    let config = "[profile failing]\ncredential_process = sh -c 'echo canary; exit 3'\n\
                  [profile absent]\ncredential_process = no-such-program-here\n\
                  [profile talking]\ncredential_process = echo canary\n\
                  [profile half]\naws_access_key_id = canary\n\
                  [profile other]\naws_secret_access_key = canary\n\
                  [profile lost]\nrole_arn = r\nsource_profile = nowhere\n\
                  [profile loop]\nrole_arn = r\nsource_profile = pool\n\
                  [profile pool]\nrole_arn = r\nsource_profile = loop\n";
    for (profile, why) in [
        ("failing", "The credential_process of profile \"failing\" ended with exit code 3. "),
        ("absent", "The credential_process of profile \"absent\" names a program that is not there. "),
        ("talking", "The credential_process of profile \"talking\" printed no JSON object"),
        ("half", "The profile \"half\" has aws_access_key_id and no aws_secret_access_key. "),
        ("other", "The profile \"other\" has aws_secret_access_key and no aws_access_key_id. "),
        ("lost", "The source_profile \"nowhere\" of profile \"lost\" is in neither file. "),
        ("loop", "The profiles that are named as a source lead to no keys: they name each other. "),
    ] {
        let mut machine = machine(&store, &[("config", config)]);
        machine.set("AWS_PROFILE", profile);
        let error = machine.access("s3://traces/x.jsonl", &with()).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("canary"), "{profile}: {error}");
        assert!(!error.contains("Grant"), "{error}");
    }
}

#[test]
fn a_file_of_profiles_that_is_malformed_is_named_where_no_credentials_are_found() {
    let store = store();
    store.fault(|_| Some(aiperf_test_servers::s3::error(403, "AccessDenied")));
    let machine = machine(&store, &[("config", "[default\naws_access_key_id = CANARY\n")]);
    let error = machine.access("s3://traces/x.jsonl", &with()).unwrap_err().to_string();
    let config = machine.home.path().join(".aws/config");
    let told = format!("Correct the file first: {}:1 has a section without its ]. ", config.display());
    assert!(error.contains("no credentials") && error.contains(&told), "{error}");
    assert!(!error.contains("CANARY"), "{error}");
}
