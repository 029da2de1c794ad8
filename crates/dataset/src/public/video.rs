//! Videos in columns, as they go on the wire.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Value;

/// Types by the ending of a name; others are taken for MP4.
const TYPES: [(&str, &str); 8] = [
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
    ("avi", "video/x-msvideo"),
    ("mkv", "video/x-matroska"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("ogv", "video/ogg"),
    ("3gp", "video/3gpp"),
];

/// A URL, which stays; a path, which becomes `file://`; or bytes with the name they had, which become a `data:` URL. `None`
/// where a cell holds none of these.
pub(super) fn url(cell: &Value) -> Option<Arc<str>> {
    match cell {
        Value::Text(text) => of_text(text),
        Value::Bytes(bytes) => Some(of_bytes(bytes, "")),
        Value::Object(_) => {
            let path = cell.get("path").and_then(Value::text);
            match cell.get("bytes").and_then(Value::bytes).filter(|bytes| !bytes.is_empty()) {
                Some(bytes) => Some(of_bytes(bytes, path.unwrap_or_default())),
                None => path.and_then(of_text),
            }
        }
        Value::List(items) => items.iter().find_map(url),
        _ => None,
    }
}

fn of_text(text: &str) -> Option<Arc<str>> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+.-".contains(letter))
    });
    if has_scheme || text.starts_with("data:") {
        return Some(text.into());
    }
    Some(format!("file://{text}").into())
}

fn of_bytes(bytes: &[u8], name: &str) -> Arc<str> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let kind = TYPES
        .iter()
        .find(|(known, _)| Some(*known) == ending.as_deref())
        .map_or("video/mp4", |(_, kind)| kind);
    format!("data:{kind};base64,{}", STANDARD.encode(bytes)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_video_is_a_url_whatever_the_column_holds() {
        let text = |text: &str| url(&Value::Text(text.into())).map(|url| url.to_string());
        assert_eq!(text("https://example.org/v.mp4").unwrap(), "https://example.org/v.mp4");
        assert_eq!(text("data:video/mp4;base64,AA==").unwrap(), "data:video/mp4;base64,AA==");
        assert_eq!(text("videos/1.mp4").unwrap(), "file://videos/1.mp4");
        assert_eq!(text(" "), None);
        let object =
            |path: Value, bytes: Value| Value::Object(vec![("bytes".into(), bytes), ("path".into(), path)]);
        let bytes = Value::Bytes(vec![0, 1]);
        assert_eq!(
            &*url(&object(Value::Text("a.webm".into()), bytes.clone())).unwrap(),
            "data:video/webm;base64,AAE="
        );
        assert_eq!(&*url(&object(Value::Null, bytes.clone())).unwrap(), "data:video/mp4;base64,AAE=");
        assert_eq!(&*url(&object(Value::Text("/v/a.mp4".into()), Value::Null)).unwrap(), "file:///v/a.mp4");
        assert_eq!(&*url(&Value::List(vec![Value::Null, bytes])).unwrap(), "data:video/mp4;base64,AAE=");
        assert_eq!(url(&object(Value::Null, Value::Null)), None);
    }
}
