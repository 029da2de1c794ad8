//! The form of a `mock://` URL.

use super::SettingsError;

/// The name and value pairs of a `mock://` URL, values percent-decoded.
pub(super) fn pairs(url: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let refuse = |part, found: &str| Err(SettingsError::UrlForm { part, found: found.to_owned() });
    let after = match url.split_at_checked(5) {
        Some((scheme, after)) if scheme.eq_ignore_ascii_case("mock:") => after,
        _ => return refuse("this is not a mock:// URL", url),
    };
    let Some(rest) = after.strip_prefix("//") else {
        return refuse("`//` is missing", if after.is_empty() { url } else { after });
    };
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, query),
        None => (rest, ""),
    };
    let (authority, path) = match place.find('/') {
        Some(at) => place.split_at(at),
        None => (place, ""),
    };
    if let Some((_, host)) = authority.rsplit_once('@') {
        // The user information may be a secret: only its place is shown.
        return refuse("it takes no user info", &format!("[hidden]@{host}"));
    }
    if let Some((_, port)) = authority.rsplit_once(':') {
        return refuse("it takes no port, a free one is found", &format!(":{port}"));
    }
    if !authority.is_empty() {
        return refuse("it takes no host, the server runs in this process", authority);
    }
    if !path.is_empty() {
        return refuse("it takes no path", path);
    }
    if let Some(fragment) = fragment {
        return refuse("it takes no fragment", &format!("#{fragment}"));
    }
    if query.is_empty() {
        return Ok(Vec::new());
    }
    query.split('&').map(pair).collect()
}

fn pair(part: &str) -> Result<(String, String), SettingsError> {
    match part.split_once('=') {
        Some((name, value)) if !name.is_empty() => match percent_decode(value) {
            Some(decoded) => Ok((name.to_owned(), decoded)),
            None => Err(SettingsError::BadEscape { name: name.to_owned(), value: value.to_owned() }),
        },
        _ => Err(SettingsError::NotAPair { part: part.to_owned() }),
    }
}

/// `text` with its `%XX` escapes resolved; nothing when an escape is broken or the result is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}
