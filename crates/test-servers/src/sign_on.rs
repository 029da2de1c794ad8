//! The two services behind a single sign-on of AWS: one renews tokens, the other gives keys for them.

use serde_json::{Value, json};

use crate::http::{Answer, Server};

/// Gives keys for the token `canary-new`, and for no other.
pub fn portal() -> Server {
    Server::start(|request| {
        if request.header("x-amz-sso_bearer_token") != Some("canary-new") {
            return Answer::status(401);
        }
        Answer::json(&json!({"roleCredentials": {
            "accessKeyId": "SSOKEY", "secretAccessKey": "s", "sessionToken": "t", "expiration": 4_070_908_800_000_u64,
        }}))
    })
}

/// Renews the token of [`ended`].
pub fn tokens() -> Server {
    Server::start(|request| {
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let expected = json!({
            "grantType": "refresh_token", "clientId": "id", "clientSecret": "canary-client",
            "refreshToken": "canary-refresh",
        });
        if (request.method.as_str(), request.path()) != ("POST", "/token") || asked != expected {
            return Answer::status(400).body(*b"{\"error\": \"invalid_grant\"}");
        }
        Answer::json(&json!({
            "accessToken": "canary-new", "expiresIn": 28_800, "refreshToken": "canary-next", "tokenType": "Bearer",
        }))
    })
}

/// What `aws sso login` left behind some time ago.
pub fn ended() -> Value {
    json!({
        "startUrl": "https://x.awsapps.com/start", "region": "eu-west-1", "accessToken": "canary-old",
        "expiresAt": "2020-01-01T00:00:00Z", "clientId": "id", "clientSecret": "canary-client",
        "registrationExpiresAt": "2099-01-01T00:00:00Z", "refreshToken": "canary-refresh",
    })
}

/// The profile `team`, which shares the sign-on `corp`.
pub const CONFIG: &str = "[profile team]\nsso_session = corp\nsso_account_id=1\nsso_role_name=r\n[sso-session \
                          corp]\nsso_region=eu-west-1\nsso_start_url=https://x.awsapps.com/start\n";

/// Where the token of `corp` is kept below `~/.aws`: the name is the sha1 of the sign-on's.
pub const TOKEN: &str = "sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
