//! The beginning of a file whose rest is elsewhere.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::coding::{Coding, coding_of};

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
}
