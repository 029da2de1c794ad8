//! Images, audio and video of a record: URLs and encoded data pass through, local files are embedded as they are.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use aiperf_types::MediaKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::json::{self, Fault};

/// Whether `content` goes on the wire as it is.
fn passes(kind: MediaKind, content: &str) -> bool {
    let starts = |prefix: &str| {
        content.len() >= prefix.len()
            && content.as_bytes()[..prefix.len()].eq_ignore_ascii_case(prefix.as_bytes())
    };
    content.is_empty()
        || starts("http://")
        || starts("https://")
        || starts("data:")
        || (kind == MediaKind::Audio && (starts("wav,") || starts("mp3,")))
}

/// What a local file is, by its first bytes and name: what goes before its base64 text.
fn prefix(kind: MediaKind, path: &Path, head: &[u8]) -> Option<&'static str> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match kind {
        MediaKind::Image if head.starts_with(b"\x89PNG\r\n\x1a\n") => Some("data:image/png;base64,"),
        MediaKind::Image if head.starts_with(b"\xff\xd8\xff") => Some("data:image/jpeg;base64,"),
        MediaKind::Audio if extension == "wav" => Some("wav,"),
        MediaKind::Audio if extension == "mp3" => Some("mp3,"),
        MediaKind::Video if extension == "mp4" => Some("data:video/mp4;base64,"),
        MediaKind::Video if extension == "webm" => Some("data:video/webm;base64,"),
        _ => None,
    }
}

fn expected(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "a PNG or JPEG image",
        MediaKind::Audio => "a .wav or .mp3 file",
        MediaKind::Video => "a .mp4 or .webm file",
    }
}

/// Checks that `content` can be sent: that a local file is there and of a kind that is understood.
pub(crate) fn check(kind: MediaKind, field: &'static str, content: &str) -> Result<(), Fault> {
    if passes(kind, content) {
        return Ok(());
    }
    let path = Path::new(content);
    let mut head = [0u8; 8];
    let mut file = std::fs::File::open(path).map_err(|error| unreadable(field, content, &error))?;
    let mut filled = 0;
    while filled < head.len() {
        match file.read(&mut head[filled..]).map_err(|error| unreadable(field, content, &error))? {
            0 => break,
            count => filled += count,
        }
    }
    match prefix(kind, path, &head[..filled]) {
        Some(_) => Ok(()),
        None => Err(Fault::new(field, format!("{} is not {}", json::excerpt(content), expected(kind)))),
    }
}

/// What goes on the wire for `content`.
pub(crate) fn load(kind: MediaKind, field: &'static str, content: &str) -> Result<Arc<str>, Fault> {
    if passes(kind, content) {
        return Ok(content.into());
    }
    let path = Path::new(content);
    let bytes = std::fs::read(path).map_err(|error| unreadable(field, content, &error))?;
    let Some(prefix) = prefix(kind, path, &bytes) else {
        return Err(Fault::new(field, format!("{} is not {}", json::excerpt(content), expected(kind))));
    };
    let mut text = String::with_capacity(prefix.len() + bytes.len().div_ceil(3) * 4);
    text.push_str(prefix);
    STANDARD.encode_string(&bytes, &mut text);
    Ok(text.into())
}

fn unreadable(field: &'static str, content: &str, error: &std::io::Error) -> Fault {
    Fault::new(
        field,
        format!(
            "cannot read the local file {} ({error}); give a path relative to the working directory, a data: URL, or \
             an http(s) URL",
            json::excerpt(content)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_encoded_data_pass_through() {
        for (kind, content) in [
            (MediaKind::Image, "https://img.invalid/kite.png"),
            (MediaKind::Image, "data:image/png;base64,iVBORw0KGgo="),
            (MediaKind::Audio, "wav,UklGRgAAAAA="),
            (MediaKind::Video, "HTTP://vid.invalid/clip.mp4"),
            (MediaKind::Image, ""),
        ] {
            check(kind, "x", content).unwrap();
            assert_eq!(&*load(kind, "x", content).unwrap(), content);
        }
    }

    #[test]
    fn local_files_are_embedded_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let png = write("a.bin", b"\x89PNG\r\n\x1a\nrest");
        check(MediaKind::Image, "image", &png).unwrap();
        assert_eq!(
            &*load(MediaKind::Image, "image", &png).unwrap(),
            "data:image/png;base64,iVBORw0KGgpyZXN0"
        );
        let wav = write("b.WAV", b"RIFF");
        assert_eq!(&*load(MediaKind::Audio, "audio", &wav).unwrap(), "wav,UklGRg==");
        let webm = write("c.webm", b"xyz");
        assert_eq!(&*load(MediaKind::Video, "video", &webm).unwrap(), "data:video/webm;base64,eHl6");
        let gif = write("d.gif", b"GIF89a");
        assert!(
            check(MediaKind::Image, "image", &gif).unwrap_err().rule.contains("is not a PNG or JPEG image")
        );
        assert!(
            check(MediaKind::Video, "video", &wav).unwrap_err().rule.contains("is not a .mp4 or .webm file")
        );
        let missing = check(MediaKind::Image, "image", "no/such.png").unwrap_err();
        assert!(missing.rule.contains("cannot read the local file no/such.png"), "{}", missing.rule);
    }
}
