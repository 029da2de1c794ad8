//! The single sign-on of a profile: the token that `aws sso login` left behind, renewed for as long as its session lasts.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use reqsign_aws_v4::SSOCredentialProvider;
use reqsign_core::Context;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::profiles::Profiles;
use crate::digest::hex;
use crate::http::own_time;
use crate::temp;

/// Seconds that a token must still be good for.
const MARGIN: u64 = 60;

/// What a profile says of its sign-on: its own, or one that profiles share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignOn<'a> {
    profile: &'a str,
    /// The cached token has the digest of this text as its name: of the start URL of an unshared sign-on, of the name of
    /// a shared one.
    key: &'a str,
    account: &'a str,
    role: &'a str,
    region: &'a str,
}

/// What the token service answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Renewed {
    access_token: String,
    expires_in: u64,
    refresh_token: Option<String>,
}

impl<'a> SignOn<'a> {
    /// That of a profile, where it has one.
    pub(super) fn of(profiles: &'a Profiles, profile: &'a str) -> Option<SignOn<'a>> {
        let get = |key: &str| profiles.get(profile, key);
        let session = get("sso_session");
        let shared = session.and_then(|session| profiles.single_sign_on(session, "sso_region"));
        Some(SignOn {
            profile,
            key: session.or_else(|| get("sso_start_url"))?,
            account: get("sso_account_id")?,
            role: get("sso_role_name")?,
            region: shared.or_else(|| get("sso_region"))?,
        })
    }

    /// What exchanges the token for keys.
    pub(super) fn provider(self) -> SSOCredentialProvider {
        SSOCredentialProvider::new()
            .with_profile(self.profile)
            .with_start_url(self.key)
            .with_account_id(self.account)
            .with_role_name(self.role)
            .with_region(self.region)
    }

    /// Where the token is kept.
    fn path(self, home: &Path) -> PathBuf {
        let name = hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, self.key.as_bytes()).as_ref());
        home.join(".aws").join("sso").join("cache").join(format!("{name}.json"))
    }

    /// Renews a token that has ended and came with what it takes; where it is kept, and its new text. `endpoint` is in the
    /// place of the token service of AWS.
    pub(super) async fn renewed(
        self,
        context: &Context,
        endpoint: Option<&str>,
    ) -> Option<(PathBuf, Vec<u8>)> {
        let path = self.path(&context.home_dir()?);
        // What this run renewed and could not keep is read here, too.
        let kept = context.file_read(path.to_str()?).await.ok()?;
        let mut token: Map<String, Value> = serde_json::from_slice(&kept).ok()?;
        let text = |key: &str| token.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let now = own_time();
        if moment(text("expiresAt")?)? > now + MARGIN {
            return None;
        }
        // Whoever may renew it is registered for a while, too.
        let registered = text("registrationExpiresAt").and_then(moment);
        if registered.is_some_and(|end| end <= now) {
            return None;
        }
        let body = serde_json::json!({
            "grantType": "refresh_token",
            "clientId": text("clientId")?,
            "clientSecret": text("clientSecret")?,
            "refreshToken": text("refreshToken")?,
        });
        let domain = if self.region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let service =
            endpoint.map_or_else(|| format!("https://oidc.{}.{domain}", self.region), str::to_owned);
        let request = http::Request::post(format!("{service}/token"))
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))
            .ok()?;
        let response = context.http_send(request).await.ok().filter(|response| response.status() == 200)?;
        let renewed: Renewed = serde_json::from_slice(response.body()).ok()?;
        let ends = now.saturating_add(renewed.expires_in).saturating_mul(1_000_000_000);
        let ends = aiperf_clock::format_utc(ends);
        token.insert("accessToken".into(), renewed.access_token.into());
        token.insert("expiresAt".into(), format!("{}Z", ends.get(..19)?).into());
        if let Some(refresh) = renewed.refresh_token {
            token.insert("refreshToken".into(), refresh.into());
        }
        let text = serde_json::to_vec(&token).ok()?;
        // For the other tools, and for the next run; this one goes on without.
        let _ = temp::write_private(&path, &text);
        Some((path, text))
    }
}

/// `2026-11-30T12:00:00Z` as seconds since 1970.
fn moment(text: &str) -> Option<u64> {
    let digits: String = text.get(..19)?.chars().filter(char::is_ascii_digit).collect();
    aiperf_config::moment(&digits)
}
