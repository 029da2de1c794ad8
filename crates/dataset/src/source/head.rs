//! The beginning of a file whose rest is elsewhere.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::coding::{Coding, coding, coding_of, reader};

/// Text of one first record; a file that promises more is not read on.
const MOST: u64 = 64 << 20;

/// The text that the first bytes of a file hold, decompressed as far as they go; `None` for columnar files, whose
/// rows do not lie at the beginning.
pub fn decoded_head(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    // A cut-off stream ends in an error, after what it still held.
    let _ = match coding_of(bytes) {
        Coding::Plain => bytes.take(MOST).read_to_end(&mut text),
        Coding::Gzip => MultiGzDecoder::new(bytes).take(MOST).read_to_end(&mut text),
        Coding::Zstd => match zstd::stream::read::Decoder::new(bytes) {
            Ok(decoder) => decoder.take(MOST).read_to_end(&mut text),
            Err(error) => Err(error),
        },
        Coding::Parquet | Coding::Arrow => return None,
    };
    Some(text)
}

/// Whether the first line of a compressed file is larger than any record is. None of it is kept.
pub fn expands_without_end(path: &Path) -> bool {
    if !matches!(coding(path), Ok(Coding::Gzip | Coding::Zstd)) {
        return false;
    }
    let Ok(mut text) = reader(path) else { return false };
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0;
    while length < MOST {
        match text.read(&mut buffer) {
            Ok(count @ 1..) if !buffer[..count].contains(&b'\n') => length += count as u64,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_cut_off_stream_gives_what_it_holds() {
        let lines = "{\"text_input\": \"a line of text\"}\n".repeat(20_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(lines.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(lines.as_bytes(), 1).unwrap();
        for whole in [gzip, zstd, lines.clone().into_bytes()] {
            let head = decoded_head(&whole[..whole.len() / 2]).unwrap();
            assert!(head.len() > 100 && lines.as_bytes().starts_with(&head), "{}", head.len());
            assert_eq!(decoded_head(&whole).unwrap(), lines.as_bytes());
        }
        assert_eq!(decoded_head(b"PAR1xxxx"), None);
        assert_eq!(decoded_head(b""), Some(Vec::new()));
    }

    #[test]
    fn a_first_line_that_expands_without_an_end_is_told_by_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let packed = |text: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text).unwrap();
            [gzip.finish().unwrap(), zstd::encode_all(text, 1).unwrap()]
        };
        let endless = vec![b' '; MOST as usize];
        let mut ended = endless.clone();
        ended[MOST as usize - 1] = b'\n';
        for (text, expected) in
            [(&endless[..], true), (&ended, false), (&endless[1..], false), (b"{}\n", false)]
        {
            for stored in packed(text) {
                std::fs::write(&path, stored).unwrap();
                assert_eq!(expands_without_end(&path), expected, "{}", text.len());
            }
        }
        std::fs::write(&path, &endless).unwrap();
        assert!(!expands_without_end(&path), "what is not compressed does not expand");
    }
}
