//! Columns that hold images.

use aiperf_types::{Content, Media, MediaKind, TextGroup};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Value;
use super::asr::file;
use crate::Stop;
use crate::media::picture::Picture;
use crate::media::recorded;

/// The image of a cell, or the first of a list that can be read.
pub(super) fn image(cell: &Value) -> Option<Media> {
    let cells = cell.list().unwrap_or(std::slice::from_ref(cell));
    let content = cells.iter().find_map(|cell| url(file(cell)?))?;
    Some(Media { kind: MediaKind::Image, name: None, content: content.into(), uuid: None })
}

/// PNG and JPEG are encoded anew, as JPEG; what is not decoded here stays what it is.
fn url(file: &[u8]) -> Option<String> {
    let encode = |kind: &str, bytes: &[u8]| {
        let mut url = format!("data:{kind};base64,");
        STANDARD.encode_string(bytes, &mut url);
        url
    };
    match recorded::media_type(file) {
        Some(kind) => Some(encode(kind, file)),
        None => Some(encode("image/jpeg", &Picture::decode(file).ok()?.jpeg(&Stop::default()).ok()?)),
    }
}

/// A text and what goes with it.
pub(super) fn with_text(text: &str, media: Option<Media>) -> Content {
    Content::Parts {
        texts: vec![TextGroup { name: None, contents: vec![text.into()] }],
        media: media.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(fields: Vec<(&str, Value)>) -> Value {
        Value::Object(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn png(colour: [u8; 3]) -> Vec<u8> {
        Picture { width: 9, height: 7, pixels: colour.repeat(63) }.stored_png()
    }

    fn decoded(media: &Media) -> Picture {
        let text = media.content.strip_prefix("data:image/jpeg;base64,").unwrap();
        Picture::decode(&STANDARD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn an_image_that_is_not_decoded_here_is_sent_as_it_was_recorded() {
        let webp = b"RIFF\x14\0\0\0WEBPVP8L\x07\0\0\0\x2f\0\0\0\0\x88\x88\0";
        let cells = [&b"no picture"[..], &webp[..27], webp].map(|bytes| Value::Bytes(bytes.to_vec()));
        let sent = image(&Value::List(cells.into())).unwrap();
        let text = sent.content.strip_prefix("data:image/webp;base64,").unwrap();
        assert_eq!(STANDARD.decode(text).unwrap(), webp);
    }

    #[test]
    fn an_image_is_encoded_anew_and_the_first_of_a_list_that_can_be_read_is_taken() {
        let good = cell(vec![("bytes", Value::Bytes(png([200, 10, 10]))), ("path", Value::Null)]);
        let picture = decoded(&image(&good).unwrap());
        assert_eq!((picture.width, picture.height), (9, 7));
        assert!(picture.pixels[0].abs_diff(200) < 6 && picture.pixels[1].abs_diff(10) < 6);
        let bad = cell(vec![("bytes", Value::Bytes(b"GIF89a".to_vec()))]);
        let list = Value::List(vec![Value::Null, bad.clone(), good, Value::Bytes(png([1, 1, 1]))]);
        assert!(decoded(&image(&list).unwrap()).pixels[0].abs_diff(200) < 6);
        assert!(image(&Value::Bytes(png([1, 1, 1]))).is_some());
        for none in [bad.clone(), Value::List(vec![bad]), Value::List(Vec::new()), Value::Null, cell(vec![])]
        {
            assert!(image(&none).is_none());
        }
    }
}
