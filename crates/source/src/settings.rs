//! What the environment says about sources: caches, tokens, offline mode, patience.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aiperf_config::Secret;

use crate::error::Problem;
use crate::events::Events;

/// The variable that moves the cache of S3 and HTTPS files.
pub const REMOTE_CACHE_VARIABLE: &str = "AIPERF_DATASET_REMOTE_CACHE_DIR";
/// The variable that moves the cache of Hub files.
pub const HUB_CACHE_VARIABLE: &str = "HF_HUB_CACHE";
/// The variable that says how long another process is waited for.
pub const LOCK_VARIABLE: &str = "AIPERF_DATASET_REMOTE_LOCK_TIMEOUT";
/// The variable that forbids the network.
pub const OFFLINE_VARIABLE: &str = "AIPERF_DATASET_REMOTE_OFFLINE";

/// Everything that the environment decides. `Debug` shows no variable: any may be a key.
#[derive(Clone)]
pub struct Settings {
    /// Environment variables; for what only one scheme reads.
    pub variables: BTreeMap<String, String>,
    /// The Hub and its cache.
    pub hub: HubSettings,
    /// Root of the cache of S3 and HTTPS files.
    pub remote_cache: PathBuf,
    /// Use only what was downloaded; no socket, no DNS.
    pub offline: bool,
    /// Read the bytes of what was downloaded before, and compare them, whatever is on record of it.
    pub compares: bool,
    /// How long this program waits for others.
    pub patience: Patience,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("hub", &self.hub)
            .field("remote_cache", &self.remote_cache)
            .field("offline", &self.offline)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// The Hub itself.
pub(crate) const HUB: &str = "https://huggingface.co";

/// The Hub and its cache.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// Base URL, without a `/` at its end.
    pub endpoint: String,
    /// The token, when there is one.
    pub token: Option<Secret>,
    /// Why there is none although there is a file for it.
    pub token_fault: Option<String>,
    /// Root of the cache, which the Python client shares.
    pub cache: PathBuf,
    /// Copy files into snapshots instead of linking them.
    pub copies: bool,
}

/// How long this program waits.
#[derive(Clone, Debug)]
pub struct Patience {
    /// To connect.
    pub connect: Duration,
    /// For the headers of an answer.
    pub headers: Duration,
    /// For the headers of an answer of the Hub that carries metadata.
    pub hub_headers: Duration,
    /// For the next byte of a body.
    pub idle: Duration,
    /// For the next byte of a body from the Hub.
    pub hub_idle: Duration,
    /// Before the second and the third attempt.
    pub between_attempts: [Duration; 2],
    /// The longest wait that a server may ask for.
    pub longest_wait: Duration,
    /// For a lock that another process holds.
    pub lock: Duration,
    /// Between two lines that say what is waited for.
    pub say_again: Duration,
    /// Where it is told that an attempt failed and another one follows.
    pub events: Events,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(10),
            headers: Duration::from_secs(30),
            hub_headers: Duration::from_secs(30),
            idle: Duration::from_mins(1),
            hub_idle: Duration::from_mins(1),
            between_attempts: [Duration::from_secs(1), Duration::from_secs(3)],
            longest_wait: Duration::from_mins(1),
            lock: Duration::from_hours(1),
            say_again: Duration::from_secs(10),
            events: Events::none(),
        }
    }
}

impl Settings {
    /// Reads the settings out of environment variables; empty ones count as unset.
    pub fn of(variables: &BTreeMap<String, String>) -> Result<Settings, Problem> {
        let get = |name: &str| variables.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let path = |name: &str| get(name).map(|text| expanded(text, variables));
        let cache_home = || path("XDG_CACHE_HOME").unwrap_or_else(|| expanded("~/.cache", variables));
        let hub_home = path("HF_HOME").unwrap_or_else(|| cache_home().join("huggingface"));
        let mut patience = Patience::default();
        for (name, targets) in [
            ("HF_HUB_ETAG_TIMEOUT", &mut patience.hub_headers),
            ("HF_HUB_DOWNLOAD_TIMEOUT", &mut patience.hub_idle),
            (LOCK_VARIABLE, &mut patience.lock),
        ] {
            if let Some(text) = get(name) {
                *targets = seconds(name, text)?;
            }
        }
        let given = |name| get(name).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let (token, token_fault) = if get("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(is_true) {
            (None, None)
        } else if let Some(token) = given("HF_TOKEN").or_else(|| given("HUGGING_FACE_HUB_TOKEN")) {
            (Some(token), None)
        } else if let Some(named) = path("HF_TOKEN_PATH") {
            match token_in(&named) {
                Ok(token) => (Some(token), None),
                Err(error) => (None, Some(format!("HF_TOKEN_PATH names {}: {error}", named.display()))),
            }
        } else {
            let usual = hub_home.join("token");
            match token_in(&usual) {
                Ok(token) => (Some(token), None),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    (None, None)
                }
                Err(error) => (None, Some(format!("the token file {} is there: {error}", usual.display()))),
            }
        };
        let offline = get(OFFLINE_VARIABLE).map(|text| switch(OFFLINE_VARIABLE, text)).transpose()?;
        let endpoint = get("HF_ENDPOINT").unwrap_or(HUB).trim_end_matches('/');
        Ok(Settings {
            compares: false,
            hub: HubSettings {
                endpoint: endpoint.to_owned(),
                token: token.map(Secret::new),
                token_fault,
                cache: path(HUB_CACHE_VARIABLE)
                    .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
                    .unwrap_or_else(|| hub_home.join("hub")),
                copies: get("HF_HUB_DISABLE_SYMLINKS").is_some_and(is_true),
            },
            remote_cache: path(REMOTE_CACHE_VARIABLE)
                .unwrap_or_else(|| expanded("~/.cache/aiperf/remote", variables)),
            offline: offline.unwrap_or(false)
                || ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
                    .iter()
                    .any(|name| get(name).is_some_and(is_true)),
            patience,
            variables: variables.clone(),
        })
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
}

/// The token that a file holds. Nothing of the file is in the error.
fn token_in(path: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    match text.trim() {
        "" => Err(io::Error::new(ErrorKind::UnexpectedEof, "it is empty")),
        token => Ok(token.to_owned()),
    }
}

/// What a variable that names a server holds, as a message may show it. Without a scheme it is no URL to anybody else:
/// what may be a password is hidden here, and so is a query, which no such address has.
pub(crate) fn shown_address(text: &str) -> String {
    const SCHEME: &str = "https://";
    let (address, query) =
        text.split_once(['?', '#']).map_or((text, ""), |(address, _)| (address, "?<redacted>"));
    let shown = if address.contains("://") {
        aiperf_config::redact_reference(address)
    } else {
        aiperf_config::redact_reference(&format!("{SCHEME}{address}"))[SCHEME.len()..].to_owned()
    };
    shown + query
}

fn is_true(text: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|yes| text.eq_ignore_ascii_case(yes))
}

/// A switch of this program; those of the Hub's own client are read as it reads them.
fn switch(name: &'static str, text: &str) -> Result<bool, Problem> {
    let is_false = || ["0", "false", "no", "off"].iter().any(|no| text.eq_ignore_ascii_case(no));
    match is_true(text) {
        true => Ok(true),
        false if is_false() => Ok(false),
        false => Err(Problem::Setting { name, value: text.to_owned(), rule: "it must be 1 or 0" }),
    }
}

fn seconds(name: &'static str, text: &str) -> Result<Duration, Problem> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| Problem::Setting { name, value: text.to_owned(), rule: "it must be seconds, above 0" })
}

/// `~` at the start, `$NAME` and `${NAME}` anywhere, as the Python client expands them; an unknown name stays.
fn expanded(text: &str, variables: &BTreeMap<String, String>) -> PathBuf {
    let home = || {
        let set = variables.get("HOME").filter(|home| !home.is_empty()).cloned();
        // The home of the account, where the variable is not set.
        let own = || std::env::home_dir().and_then(|home| home.to_str().map(str::to_owned));
        set.or_else(own).unwrap_or_else(|| "/".into())
    };
    let text = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => home() + rest,
        _ => text.to_owned(),
    };
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, length) = if let Some(braced) = after.strip_prefix('{') {
            braced.find('}').map_or(("", 0), |end| (&braced[..end], end + 2))
        } else {
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
            (&after[..end], end)
        };
        match variables.get(name) {
            Some(value) => out.push_str(value),
            None => out.push_str(&rest[at..=at + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    PathBuf::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Settings {
        let mut all: BTreeMap<String, String> = BTreeMap::from([("HOME".into(), "/home/me".into())]);
        all.extend(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Settings::of(&all).unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_python_client() {
        let settings = with(&[]);
        assert_eq!(settings.hub.endpoint, "https://huggingface.co");
        assert_eq!(settings.hub.cache, PathBuf::from("/home/me/.cache/huggingface/hub"));
        assert_eq!(settings.remote_cache, PathBuf::from("/home/me/.cache/aiperf/remote"));
        assert!(!settings.offline && !settings.hub.copies && settings.hub.token.is_none());
        let patience = settings.patience;
        assert_eq!(patience.between_attempts, [Duration::from_secs(1), Duration::from_secs(3)]);
        assert_eq!((patience.connect, patience.headers), (Duration::from_secs(10), Duration::from_secs(30)));
        assert_eq!((patience.idle, patience.hub_idle), (Duration::from_mins(1), Duration::from_mins(1)));
        assert_eq!((patience.longest_wait, patience.lock), (Duration::from_mins(1), Duration::from_hours(1)));
    }

    #[test]
    fn caches_move_in_the_documented_order_and_are_expanded() {
        let hub = |variables: &[(&str, &str)]| with(variables).hub.cache;
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/c")]), PathBuf::from("/c/huggingface/hub"));
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/c"), ("HF_HOME", "~/hf")]), PathBuf::from("/home/me/hf/hub"));
        let both = [("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "$X/old"), ("X", "/x")];
        assert_eq!(hub(&both), PathBuf::from("/x/old"));
        assert_eq!(
            hub(&[both[0], both[1], ("HF_HUB_CACHE", "${X}/new$Y"), both[2]]),
            PathBuf::from("/x/new$Y")
        );
        assert_eq!(with(&[("AIPERF_DATASET_REMOTE_CACHE_DIR", "/r")]).remote_cache, PathBuf::from("/r"));
        assert_eq!(hub(&[("HF_HUB_CACHE", "a$")]), PathBuf::from("a$"));
        assert_eq!(hub(&[("HF_HUB_CACHE", "${X")]), PathBuf::from("${X"));
    }

    #[test]
    fn tokens_come_from_variables_then_the_file_and_can_be_forbidden() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, " hf_file\n").unwrap();
        let file = file.to_str().unwrap();
        let token =
            |variables: &[(&str, &str)]| with(variables).hub.token.map(|token| token.expose().to_owned());
        let all = [("HF_TOKEN", " hf_a "), ("HUGGING_FACE_HUB_TOKEN", "hf_b"), ("HF_TOKEN_PATH", file)];
        assert_eq!(token(&all).as_deref(), Some("hf_a"));
        assert_eq!(token(&all[1..]).as_deref(), Some("hf_b"));
        assert_eq!(token(&all[2..]).as_deref(), Some("hf_file"));
        assert_eq!(token(&[("HF_HOME", dir.path().to_str().unwrap())]).as_deref(), Some("hf_file"));
        assert_eq!(token(&[all[0], ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "ON")]), None);
        let fault = |variables: &[(&str, &str)]| with(variables).hub.token_fault;
        assert_eq!((fault(&all), fault(&all[2..]), fault(&[])), (None, None, None));
        let missing = dir.path().join("missing");
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "\n").unwrap();
        let binary = dir.path().join("binary");
        std::fs::write(&binary, b"\xff\xfe").unwrap();
        for named in [dir.path(), &missing, &empty, &binary] {
            let named = named.to_str().unwrap();
            let told = fault(&[("HF_TOKEN_PATH", named)]).unwrap();
            assert!(told.starts_with(&format!("HF_TOKEN_PATH names {named}: ")), "{told}");
            assert_eq!(fault(&[("HF_TOKEN", "hf_a"), ("HF_TOKEN_PATH", named)]), None);
        }
        // The usual one may be missing, and is told when it cannot be read.
        std::fs::create_dir_all(dir.path().join("home/token")).unwrap();
        let home = dir.path().join("home");
        assert!(fault(&[("HF_HOME", home.to_str().unwrap())]).unwrap().starts_with("the token file "));
        assert_eq!(token(&[("HF_TOKEN", "  ")]), None);
    }

    #[test]
    fn each_variable_turns_offline_mode_on_for_every_scheme() {
        for text in ["1", "TRUE", "Yes", "on"] {
            assert!(with(&[(OFFLINE_VARIABLE, text)]).offline);
            assert!(with(&[("HF_HUB_OFFLINE", text)]).offline);
            assert!(with(&[("TRANSFORMERS_OFFLINE", text)]).offline);
        }
        assert!(!with(&[(OFFLINE_VARIABLE, "0")]).offline);
        assert!(!with(&[(OFFLINE_VARIABLE, "Off")]).offline);
        let bad = BTreeMap::from([(OFFLINE_VARIABLE.to_owned(), "junk".to_owned())]);
        assert!(Settings::of(&bad).unwrap_err().to_string().contains(OFFLINE_VARIABLE));
    }

    #[test]
    fn addresses_are_shown_without_what_may_be_a_password() {
        for (text, shown) in [
            ("u:CANARY@127.0.0.1:80", "<redacted>@127.0.0.1:80"),
            ("CANARY@h/x", "<redacted>@h/x"),
            ("h:80/x?t=CANARY", "h:80/x?<redacted>"),
            ("http://u:CANARY@h/", "http://<redacted>@h/"),
            ("http://h/?t=CANARY#CANARY", "http://h/?<redacted>"),
            ("http://h#CANARY", "http://h?<redacted>"),
            ("not a url", "not a url"),
            ("", ""),
        ] {
            assert_eq!(shown_address(text), shown);
        }
    }

    #[test]
    fn timeouts_are_those_of_the_environment() {
        let patience = with(&[("HF_HUB_ETAG_TIMEOUT", "7"), ("HF_HUB_DOWNLOAD_TIMEOUT", "0.5")]).patience;
        assert_eq!(patience.hub_headers, Duration::from_secs(7));
        assert_eq!(patience.hub_idle, Duration::from_millis(500));
        let bad = BTreeMap::from([("HF_HUB_ETAG_TIMEOUT".to_owned(), "soon".to_owned())]);
        assert!(Settings::of(&bad).unwrap_err().to_string().contains("HF_HUB_ETAG_TIMEOUT"));
        assert_eq!(with(&[(LOCK_VARIABLE, "90")]).patience.lock, Duration::from_secs(90));
    }
}
