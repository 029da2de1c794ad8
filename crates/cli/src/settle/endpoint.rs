//! Where and how requests go.

use std::net::IpAddr;
use std::time::Duration;

use aiperf_config::{
    ConnectionReuse, EndpointConfig, EndpointKind, Header, Secret, SecretUrl, Target, has_torn_user_info,
    redact_reference, redact_text,
};
use url::Url;

use super::{Note, pairs};
use crate::flags::Later;
use crate::typed::Typed;
use crate::usage::UsageError;

const DEFAULT_URL: &str = "http://localhost:8000";
const DEFAULT_TIMEOUT: f64 = 21_600.0;

pub(super) fn settle(typed: &Typed, notes: &mut Vec<Note>) -> Result<EndpointConfig, UsageError> {
    let kind = typed.text("--endpoint-type").and_then(EndpointKind::named).unwrap_or(EndpointKind::Chat);
    let mut streaming = typed.is_on("--streaming");
    if streaming && !kind.can_stream() {
        notes.push(Note::warning(format!(
            "--streaming is switched off: answers of --endpoint-type {} are not streamed",
            kind.name()
        )));
        streaming = false;
    }
    let use_server_token_count = typed.is_on("--use-server-token-count");
    if typed.is_on("--uuid-and-strip") && (kind != EndpointKind::Chat || !typed.has("--input-file")) {
        return Err(UsageError::combination(
            "--uuid-and-strip needs --endpoint-type chat and an --input-file of single_turn rows",
            "drop --uuid-and-strip, or add the missing ones",
        ));
    }
    let per_chunk_usage = typed.is_on("--per-chunk-usage");
    if per_chunk_usage && !(kind == EndpointKind::Chat && streaming && use_server_token_count) {
        return Err(UsageError::combination(
            "--per-chunk-usage needs --endpoint-type chat, --streaming and --use-server-token-count",
            "add the missing ones, or drop --per-chunk-usage",
        ));
    }
    let timeout = typed.number("--request-timeout-seconds").unwrap_or(DEFAULT_TIMEOUT);
    let extra_name = typed.name("--extra-inputs");
    Ok(EndpointConfig {
        kind,
        target: target(typed)?,
        custom_path: custom_path(typed)?,
        streaming,
        api_key: api_key(typed)?,
        headers: headers(typed)?,
        extra_inputs: pairs::extra_inputs(extra_name, typed.texts("--extra-inputs"))?.into_iter().collect(),
        use_legacy_max_tokens: typed.is_on("--use-legacy-max-tokens"),
        use_server_token_count,
        per_chunk_usage,
        request_timeout: duration(typed, "--request-timeout-seconds", timeout)?
            .filter(|time| !time.is_zero()),
        connection_reuse: ConnectionReuse::Pooled,
        bind_addresses: bind_addresses(typed)?,
    })
}

/// A time in seconds; infinite is none, and one that is shorter than the clock can tell is the shortest there is: 0 may
/// mean something else.
pub(super) fn duration(typed: &Typed, flag: &str, seconds: f64) -> Result<Option<Duration>, UsageError> {
    if seconds.is_infinite() {
        return Ok(None);
    }
    let least = if seconds > 0.0 { Duration::from_nanos(1) } else { Duration::ZERO };
    Duration::try_from_secs_f64(seconds).map(|time| Some(time.max(least))).map_err(|_| UsageError::Value {
        flag: typed.name(flag).into(),
        value: typed.get(flag).map_or_else(|| seconds.to_string(), |given| given.last.clone()),
        rule: "a time that fits in the clock".into(),
        similar: None,
    })
}

fn target(typed: &Typed) -> Result<Target, UsageError> {
    let mut urls = typed.texts("--url");
    let text = urls.next().unwrap_or(DEFAULT_URL);
    if urls.next().is_some() || text.contains(",http") || text.contains(",mock:") {
        return Err(UsageError::ValueNotYet {
            flag: typed.name("--url").into(),
            value: "with several servers".into(),
            what: Later::MoreEndpoints.phrase().into(),
        });
    }
    let refuse = |rule: &str| UsageError::Value {
        flag: typed.name("--url").into(),
        value: redact_reference(text),
        rule: rule.into(),
        similar: None,
    };
    if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("mock:")) {
        return match aiperf_mock_server::Settings::from_url(text) {
            Ok(_) => Ok(Target::Mock(text.to_owned())),
            Err(error) => Err(UsageError::combination(
                format!("{} {}: {error}", typed.name("--url"), redact_reference(text)),
                "'aiperf mock-server --help' lists the settings",
            )),
        };
    }
    url(text).map(|url| Target::Server(SecretUrl::new(url, text))).map_err(refuse)
}

/// A base URL; without a scheme it is http. The error is the rule that was broken.
fn url(text: &str) -> Result<Url, &'static str> {
    if text.is_empty() {
        return Err("a URL such as http://localhost:8000");
    }
    if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err("a URL without white space");
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let scheme = scheme.to_ascii_lowercase();
    let lower = rest.to_ascii_lowercase();
    if ["http", "https"].iter().any(|name| lower.strip_prefix(name).is_some_and(is_end_of_mistyped_scheme)) {
        return Err("a URL such as http://localhost:8000, with :// after the scheme");
    }
    if !["http", "https"].contains(&scheme.as_str()) {
        return Err("a URL that starts with http://, https:// or mock://");
    }
    if has_torn_user_info(rest) {
        return Err(
            "a URL that writes /, ?, # and @ in a user name or password as %2F, %3F, %23 and %40, and an @ in its path as %40",
        );
    }
    let url = Url::parse(&format!("{scheme}://{rest}")).map_err(|error| match error {
        url::ParseError::InvalidPort => "a URL whose port is a number from 1 to 65535",
        url::ParseError::EmptyHost => "a URL with a host, such as http://localhost:8000",
        url::ParseError::InvalidIpv4Address | url::ParseError::InvalidIpv6Address => {
            "a URL with a valid address"
        }
        _ => "a URL such as http://localhost:8000",
    })?;
    if url.port() == Some(0) {
        return Err("a URL whose port is a number from 1 to 65535");
    }
    if url.fragment().is_some() {
        return Err("a URL without a fragment: what follows # is never sent");
    }
    Ok(url)
}

/// Whether a scheme ends before this without being one.
fn is_end_of_mistyped_scheme(rest: &str) -> bool {
    ["//", ":", ";", "\\"].iter().any(|end| rest.starts_with(end))
}

fn custom_path(typed: &Typed) -> Result<Option<String>, UsageError> {
    let Some(path) = typed.text("--endpoint") else { return Ok(None) };
    if path.contains("://") || path.contains(|letter: char| letter.is_whitespace() || letter == '#') {
        return Err(UsageError::Value {
            flag: typed.name("--endpoint").into(),
            value: redact_text(path),
            rule: "a path such as /v1/chat/completions; the server goes to --url".into(),
            similar: None,
        });
    }
    Ok(Some(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }))
}

fn api_key(typed: &Typed) -> Result<Option<Secret>, UsageError> {
    let Some(key) = typed.text("--api-key") else { return Ok(None) };
    if key.trim().is_empty() || key.bytes().any(|byte| !(0x20..0x7f).contains(&byte)) {
        return Err(UsageError::Value {
            flag: "--api-key".into(),
            value: aiperf_config::REDACTED.into(),
            rule: "a key of visible ASCII characters".into(),
            similar: None,
        });
    }
    Ok(Some(Secret::new(key)))
}

/// The headers, later ones replacing earlier ones of the same name.
fn headers(typed: &Typed) -> Result<Vec<Header>, UsageError> {
    let mut headers: Vec<Header> = Vec::new();
    for argument in typed.texts("--header") {
        for (name, value) in pairs::headers(typed.name("--header"), argument)? {
            headers.retain(|header| !header.name.eq_ignore_ascii_case(&name));
            headers.push(Header { name, value: Secret::new(value) });
        }
    }
    Ok(headers)
}

fn bind_addresses(typed: &Typed) -> Result<Vec<IpAddr>, UsageError> {
    typed
        .texts("--bind-address")
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .map(|text| {
            text.parse().map_err(|_| UsageError::Value {
                flag: typed.name("--bind-address").into(),
                value: text.into(),
                rule: "an IP address of this host".into(),
                similar: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn a_url_without_a_scheme_is_http() {
        for (text, whole) in [
            ("localhost:8000", "http://localhost:8000/"),
            ("127.0.0.1:18431", "http://127.0.0.1:18431/"),
            ("gateway.internal/v1/", "http://gateway.internal/v1/"),
            ("HTTPS://h/x?fault=ok", "https://h/x?fault=ok"),
            ("[::1]:80", "http://[::1]/"),
            ("http/v1", "http://http/v1"),
            ("gateway:8000/@cf/model", "http://gateway:8000/@cf/model"),
        ] {
            assert_eq!(url(text).unwrap().as_str(), whole, "{text}");
        }
    }

    #[test]
    fn urls_that_cannot_be_meant_are_refused_with_the_rule() {
        for (text, rule) in [
            ("http://h:99999", "port"),
            ("http://h:0", "port"),
            ("h:port", "port"),
            ("http://h h", "white space"),
            ("ftp://h", "http://, https:// or mock://"),
            ("http:/h", ":// after the scheme"),
            ("http//me:planted@h", ":// after the scheme"),
            ("https;//h", ":// after the scheme"),
            ("http://https://h", ":// after the scheme"),
            ("http://me:planted@planted/x@127.0.0.1:1", "%2F"),
            ("http://me:planted/x@127.0.0.1", "%2F"),
            ("http://me:12/planted@127.0.0.1:1", "%2F"),
            ("me:12/planted@127.0.0.1:1", "%2F"),
            ("http://", "host"),
            ("http://h/#x", "fragment"),
            ("", "such as"),
        ] {
            let error = url(text).unwrap_err();
            assert!(error.contains(rule), "{text}: {error}");
        }
    }
}
