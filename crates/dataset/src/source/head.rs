//! The beginning of a file whose rest is elsewhere.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::coding::{Coding, coding, coding_of, reader};

/// Text of one first record; a file that promises more is not read on.
const MOST: u64 = 64 << 20;
/// Text of first lines that is kept.
const KEPT: usize = 8 << 20;

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

/// How a compressed file of lines begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With these lines.
    Lines(Vec<u8>),
    /// With lines that are too long to be kept.
    Long,
    /// With a line that is longer than any record is.
    Endless,
}

/// The first `count` lines of a compressed file that are not blank, or all that it has; `None` when it is not compressed or
/// cannot be read so far.
pub fn beginning(path: &Path, count: usize) -> Option<Beginning> {
    if !matches!(coding(path), Ok(Coding::Gzip | Coding::Zstd)) {
        return None;
    }
    let mut from = reader(path).ok()?;
    let mut buffer = vec![0; 1 << 16];
    let mut text = Vec::new();
    while text.len() < KEPT {
        let read = from.read(&mut buffer).ok()?;
        text.extend_from_slice(&buffer[..read]);
        if (read == 0 || buffer[..read].contains(&b'\n'))
            && let Some(lines) = whole_lines(&text, count, read == 0)
        {
            let length = lines.len();
            text.truncate(length);
            return Some(Beginning::Lines(text));
        }
    }
    let mut length = text.len() as u64;
    let mut ended = text.contains(&b'\n');
    drop(text);
    while !ended && length < MOST {
        let read = from.read(&mut buffer).ok()?;
        ended = read == 0 || buffer[..read].contains(&b'\n');
        length += read as u64;
    }
    Some(if ended { Beginning::Long } else { Beginning::Endless })
}

/// The text up to the end of the `count`-th line that is not blank; all of it when it is the whole file.
pub fn whole_lines(text: &[u8], count: usize, whole: bool) -> Option<&[u8]> {
    let mut found = 0;
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\n', &text[at..]) {
        let line = &text[at..at + length];
        at += length + 1;
        found += usize::from(!line.trim_ascii().is_empty());
        if found == count {
            return Some(&text[..at]);
        }
    }
    whole.then_some(text)
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
    fn compressed_files_begin_with_lines_that_are_long_or_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let begin = |text: &[u8], count: usize| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text).unwrap();
            let found = [gzip.finish().unwrap(), zstd::encode_all(text, 1).unwrap()].map(|stored| {
                std::fs::write(&path, stored).unwrap();
                beginning(&path, count).unwrap()
            });
            assert_eq!(found[0], found[1]);
            found[0].clone()
        };
        let lines = |text: &[u8]| Beginning::Lines(text.to_vec());
        assert_eq!(begin(b"\n {}\n[]\n1", 1), lines(b"\n {}\n"));
        assert_eq!(begin(b"\n {}\n[]\n1", 2), lines(b"\n {}\n[]\n"));
        assert_eq!(begin(b"\n {}\n[]\n1", 9), lines(b"\n {}\n[]\n1"));
        assert_eq!(begin(b"", 1), lines(b""));
        let mut long = vec![b' '; MOST as usize];
        assert_eq!(begin(&long, 1), Beginning::Endless);
        assert_eq!(begin(&long[1..], 1), Beginning::Long);
        long[KEPT + 1] = b'\n';
        assert_eq!(begin(&long, 1), Beginning::Long);
        std::fs::write(&path, b"{}\n").unwrap();
        assert_eq!(beginning(&path, 1), None, "it is not compressed");
    }

    #[test]
    fn a_head_ends_with_its_last_whole_record() {
        assert_eq!(whole_lines(b"\n {\"a\": 1}\n{\"b\"", 1, false), Some(&b"\n {\"a\": 1}\n"[..]));
        assert_eq!(whole_lines(b"{\"a\": 1", 1, false), None);
        assert_eq!(whole_lines(b"{\"a\": 1", 1, true), Some(&b"{\"a\": 1"[..]));
        assert_eq!(whole_lines(b"t,u\n1,2", 2, false), None);
        assert_eq!(whole_lines(b"t,u\n1,2\n3", 2, false), Some(&b"t,u\n1,2\n"[..]));
    }
}
