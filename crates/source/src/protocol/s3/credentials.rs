//! As whom requests are sent: the chain that every AWS tool follows, from the environment to the instance.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqsign_aws_v4::{
    AssumeRoleCredentialProvider, AssumeRoleWithWebIdentityCredentialProvider, Credential,
    ECSCredentialProvider, EnvCredentialProvider, IMDSv2CredentialProvider, RequestSigner,
    StaticCredentialProvider,
};
use reqsign_core::{
    Context, Error, FileRead, HttpSend, ProvideCredential, Signer, SigningCredential, StaticEnv,
};

use super::process;
use super::profiles::Profiles;
use super::sign_on::SignOn;
use crate::http::cause;
use crate::settings::Settings;

/// Profiles that name each other as their source: not deeper than this.
const DEEPEST: u32 = 5;
/// Of any answer with credentials.
pub(super) const MOST_BYTES: usize = 1 << 20;
const ACCESS_KEY: &str = "aws_access_key_id";
const SECRET_KEY: &str = "aws_secret_access_key";
/// The services of an instance or a container answer at once, or are not there.
const NEAR: Duration = Duration::from_secs(2);

/// Credentials, and the kind of place that they came from.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) credential: Credential,
    pub(crate) kind: String,
}

/// As whom a request was sent, for messages: a kind, never a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) name: String,
    /// What would give credentials that are set up and gave none.
    pub(crate) advice: Option<String>,
}

/// What the chain found last.
#[derive(Default)]
enum Sought {
    #[default]
    NotYet,
    Nothing,
    Found(Known),
}

/// The chain. `Debug` shows no more than the name of the profile.
pub(crate) struct Credentials {
    context: Context,
    files: Files,
    profiles: Profiles,
    region: String,
    /// In the place of the service that renews the tokens of a single sign-on.
    oidc: Option<String>,
    /// For programs.
    envs: HashMap<String, String>,
    /// The profile whose single sign-on gave nothing.
    signed_out: OnceLock<String>,
    /// Why a profile gave nothing: the first fault that was met.
    fault: OnceLock<String>,
    found: tokio::sync::Mutex<Sought>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("profiles", &self.profiles).finish_non_exhaustive()
    }
}

impl Credentials {
    pub(crate) fn new(
        settings: &Settings,
        profiles: Profiles,
        region: &str,
        client: reqwest::Client,
    ) -> Credentials {
        // A variable that is empty counts as unset everywhere.
        let envs: HashMap<String, String> = settings
            .variables
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let sts = profiles.endpoint(settings, "sts").and_then(|text| url::Url::parse(text).ok());
        let oidc = profiles.endpoint(settings, "sso_oidc").map(str::to_owned);
        let files = Files::default();
        let env = StaticEnv { home_dir: settings.variable("HOME").map(Into::into), envs: envs.clone() };
        let context = Context::new().with_env(env).with_file_read(files.clone()).with_http_send(Asks {
            client,
            sts,
            headers: settings.patience.headers,
        });
        Credentials {
            context,
            envs,
            files,
            profiles,
            region: region.to_owned(),
            oidc,
            signed_out: OnceLock::new(),
            fault: OnceLock::new(),
            found: tokio::sync::Mutex::default(),
        }
    }

    /// What signs requests now; `None` is anonymous. What expires soon is asked for again.
    pub(crate) async fn now(&self) -> Option<Known> {
        let mut found = self.found.lock().await;
        match &*found {
            Sought::Nothing => return None,
            Sought::Found(known) if known.credential.is_valid() => return Some(known.clone()),
            Sought::NotYet | Sought::Found(_) => {}
        }
        let fresh = self.chain().await;
        *found = fresh.clone().map_or(Sought::Nothing, Sought::Found);
        fresh
    }

    /// How a request without credentials is called: with what is set up and gave none, and what would help.
    pub(crate) fn nobody(&self) -> Who {
        let set = |name: &str| self.context.env_var(name).is_some();
        let profile = self.profiles.chosen.as_str();
        let of_profile =
            ["role_arn", "sso_start_url", "sso_session", "credential_process", ACCESS_KEY, SECRET_KEY]
                .iter()
                .any(|key| self.profiles.own(key).is_some());
        // Each with the next step.
        let mut fruitless = Vec::new();
        if of_profile || self.profiles.is_named {
            let advice = if let Some(profile) = self.signed_out.get() {
                format!("Sign in with `aws sso login --profile {profile}`, and run again")
            } else if self.profiles.knows(profile) {
                let why = self.fault.get().map(|fault| format!("{fault}. ")).unwrap_or_default();
                format!("{why}See with `aws sts get-caller-identity --profile {profile}` why it gives none")
            } else {
                format!(
                    "Check AWS_PROFILE: no profile \"{profile}\" is in ~/.aws/config or ~/.aws/credentials"
                )
            };
            fruitless.push((format!("the profile \"{profile}\""), advice));
        }
        if set("AWS_ROLE_ARN") && set("AWS_WEB_IDENTITY_TOKEN_FILE") {
            fruitless.push((
                "the web identity of AWS_ROLE_ARN".into(),
                "Check that the role trusts the token in AWS_WEB_IDENTITY_TOKEN_FILE".into(),
            ));
        }
        if set("AWS_CONTAINER_CREDENTIALS_FULL_URI") || set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            let advice = "Check that the service of AWS_CONTAINER_CREDENTIALS_FULL_URI answers";
            fruitless.push(("the container".into(), advice.into()));
        }
        if set("AWS_ACCESS_KEY_ID") != set("AWS_SECRET_ACCESS_KEY") {
            let advice = "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither";
            fruitless.push(("half an access key".into(), advice.into()));
        }
        let names: Vec<&str> = fruitless.iter().map(|(name, _)| name.as_str()).collect();
        let name = match names.as_slice() {
            [] => "no credentials".to_owned(),
            names => format!("no credentials ({} gave none)", names.join(" and ")),
        };
        let advice = fruitless.into_iter().next().map_or_else(
            || {
                "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: without credentials only what is public can be \
                 read"
                    .into()
            },
            |(_, advice)| advice,
        );
        // Keys may stand there that were not understood.
        let faults = self.profiles.faults.join(", and ");
        let advice =
            if faults.is_empty() { advice } else { format!("Correct the file first: {faults}. {advice}") };
        Who { name, advice: Some(advice) }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    async fn chain(&self) -> Option<Known> {
        let kept = |kind: &str| {
            let kind = kind.to_owned();
            move |credential| Known { credential, kind }
        };
        if let Some(credential) = self.ask(&EnvCredentialProvider::new()).await {
            return Some(kept("the access key of the environment")(credential));
        }
        let profile = self.profiles.chosen.as_str();
        if let Some(credential) = self.of_profile(profile, 0).await {
            return Some(kept(&format!("the profile \"{profile}\""))(credential));
        }
        let web = AssumeRoleWithWebIdentityCredentialProvider::new()
            .with_region(self.region.clone())
            .with_regional_sts_endpoint();
        if let Some(credential) = self.ask(&web).await {
            return Some(kept("the web identity of AWS_ROLE_ARN")(credential));
        }
        if let Some(credential) = self.ask(&ECSCredentialProvider::new()).await {
            return Some(kept("the credentials of the container")(credential));
        }
        let credential = self.ask(&IMDSv2CredentialProvider::new()).await?;
        Some(kept("the role of the instance")(credential))
    }

    /// What one place has. A place that fails counts as one without: the next is asked.
    async fn ask<P: ProvideCredential<Credential = Credential>>(&self, provider: &P) -> Option<Credential> {
        provider.provide_credential(&self.context).await.ok().flatten()
    }

    /// A profile: the role that it assumes, its keys, its single sign-on, or the program that it names.
    async fn of_profile(&self, profile: &str, depth: u32) -> Option<Credential> {
        if depth > DEEPEST {
            self.failed(
                "The profiles that are named as a source lead to no keys: they name each other".into(),
            );
            return None;
        }
        if let Some(role) = self.profiles.get(profile, "role_arn")
            && let Some(credential) = Box::pin(self.of_role(profile, role, depth)).await
        {
            return Some(credential);
        }
        if let Some(credential) = self.keys_of(profile) {
            return Some(credential);
        }
        if let Some(credential) = self.of_sign_on(profile).await {
            return Some(credential);
        }
        let line = self.profiles.get(profile, "credential_process")?;
        match process::keys(line, self.envs.clone()).await {
            Ok(credential) => Some(credential),
            Err(fault) => {
                self.failed(format!("The credential_process of profile \"{profile}\" {fault}"));
                None
            }
        }
    }

    /// The keys that stand in a profile.
    fn keys_of(&self, profile: &str) -> Option<Credential> {
        let get = |key: &str| self.profiles.get(profile, key).map(str::to_owned);
        match (get(ACCESS_KEY), get(SECRET_KEY)) {
            (Some(access_key_id), Some(secret_access_key)) => Some(Credential {
                access_key_id,
                secret_access_key,
                session_token: get("aws_session_token").or_else(|| get("aws_security_token")),
                expires_in: None,
            }),
            (None, None) => None,
            (has_id, _) => {
                let (has, lacks) =
                    if has_id.is_some() { (ACCESS_KEY, SECRET_KEY) } else { (SECRET_KEY, ACCESS_KEY) };
                self.failed(format!("The profile \"{profile}\" has {has} and no {lacks}"));
                None
            }
        }
    }

    /// Keeps why a profile gives nothing.
    fn failed(&self, fault: String) {
        let _ = self.fault.set(fault);
    }

    /// The single sign-on of a profile, whose token is renewed where it has ended.
    async fn of_sign_on(&self, profile: &str) -> Option<Credential> {
        let sign_on = SignOn::of(&self.profiles, profile)?;
        if let Some((path, text)) = sign_on.renewed(&self.context, self.oidc.as_deref()).await {
            self.files.put(path, text);
        }
        let found = self.ask(&sign_on.provider()).await;
        if found.is_none() {
            let _ = self.signed_out.set(profile.to_owned());
        }
        found
    }

    async fn of_role(&self, profile: &str, role: &str, depth: u32) -> Option<Credential> {
        let get = |key: &str| self.profiles.get(profile, key);
        let session = get("role_session_name").unwrap_or("aiperf").to_owned();
        if let Some(file) = get("web_identity_token_file") {
            let provider = AssumeRoleWithWebIdentityCredentialProvider::with_config(role.into(), file.into())
                .with_region(self.region.clone())
                .with_regional_sts_endpoint()
                .with_role_session_name(session);
            return self.ask(&provider).await;
        }
        let base = match (get("source_profile"), get("credential_source")) {
            // A profile that is its own source has the keys beside the role.
            (Some(source), _) if source == profile => self.keys_of(profile)?,
            (Some(source), _) if !self.profiles.knows(source) => {
                self.failed(format!(
                    "The source_profile \"{source}\" of profile \"{profile}\" is in neither file"
                ));
                return None;
            }
            (Some(source), _) => self.of_profile(source, depth + 1).await?,
            (None, Some("Environment")) => self.ask(&EnvCredentialProvider::new()).await?,
            (None, Some("EcsContainer")) => self.ask(&ECSCredentialProvider::new()).await?,
            (None, Some("Ec2InstanceMetadata")) => self.ask(&IMDSv2CredentialProvider::new()).await?,
            _ => return None,
        };
        let mut base_provider = StaticCredentialProvider::new(&base.access_key_id, &base.secret_access_key);
        if let Some(token) = &base.session_token {
            base_provider = base_provider.with_session_token(token);
        }
        let signer =
            Signer::new(self.context.clone(), base_provider, RequestSigner::new("sts", &self.region));
        let mut provider = AssumeRoleCredentialProvider::new(role.to_owned(), signer)
            .with_role_session_name(session)
            .with_region(self.region.clone())
            .with_regional_sts_endpoint();
        if let Some(id) = get("external_id") {
            provider = provider.with_external_id(id.to_owned());
        }
        let given = self.ask(&provider).await;
        if given.is_none() {
            self.failed(format!(
                "STS did not give the role of profile \"{profile}\" to whom its source names"
            ));
        }
        given
    }
}

/// Files, as the chain reads them: what was renewed as it is now, whether or not it could be written.
#[derive(Clone, Default)]
struct Files(Arc<Mutex<HashMap<PathBuf, Vec<u8>>>>);

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

impl Files {
    fn put(&self, path: PathBuf, text: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, text);
    }
}

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        if let Some(text) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(Path::new(path)) {
            return Ok(text.clone());
        }
        std::fs::read(path).map_err(|error| Error::config_invalid(format!("{path}: {}", error.kind())))
    }
}

/// Requests for credentials.
#[derive(Debug)]
struct Asks {
    client: reqwest::Client,
    /// In the place of the AWS token service.
    sts: Option<url::Url>,
    headers: Duration,
}

impl Asks {
    /// The token service of the settings, where the chain would ask that of AWS.
    fn address(&self, uri: &http::Uri) -> String {
        let host = uri.host().unwrap_or_default();
        let is_sts = host.starts_with("sts.") && host.contains(".amazonaws.");
        match &self.sts {
            Some(sts) if is_sts => {
                let rest = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
                format!("{}{rest}", sts.as_str().trim_end_matches('/'))
            }
            _ => uri.to_string(),
        }
    }
}

impl HttpSend for Asks {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let failed = |what: String| Error::unexpected(what);
        let (parts, body) = request.into_parts();
        let near = parts.uri.host().is_some_and(|host| host.starts_with("169.254."));
        let within = if near { NEAR } else { self.headers };
        let work = async {
            let mut response = self
                .client
                .request(parts.method.clone(), self.address(&parts.uri))
                // With the host that was signed, wherever it is sent.
                .headers(parts.headers.clone())
                .body(body)
                .send()
                .await
                .map_err(|error| failed(cause(&error)))?;
            let status = response.status();
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| failed(cause(&error)))? {
                if bytes.len() + chunk.len() > MOST_BYTES {
                    return Err(failed("an answer without an end".into()));
                }
                bytes.extend_from_slice(&chunk);
            }
            http::Response::builder()
                .status(status)
                .body(Bytes::from(bytes))
                .map_err(|error| failed(error.to_string()))
        };
        match tokio::time::timeout(within, work).await {
            Ok(result) => result,
            Err(_) => Err(failed("no answer in time".into())),
        }
    }
}
