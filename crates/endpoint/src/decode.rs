//! Bodies that came compressed although nobody asked for it.

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use thiserror::Error;

/// A compressed body that cannot be read.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The bytes are not what the header announced.
    #[error("the body is not valid {encoding}: {source}")]
    Invalid {
        /// `gzip` or `deflate`.
        encoding: &'static str,
        /// What the decoder says.
        source: std::io::Error,
    },
}

/// Whether a `Content-Encoding` leaves a body as it is.
pub fn is_identity(content_encoding: &str) -> bool {
    let encoding = content_encoding.trim();
    encoding.is_empty() || encoding.eq_ignore_ascii_case("identity")
}

/// Decodes one body read by read, so that each piece of text keeps the instant of the read it came with.
#[derive(Debug)]
pub struct BodyDecoder {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// `deflate` is zlib by the book and bare deflate in some servers: the first byte tells.
    Undecided,
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Bare(Box<DeflateDecoder<Vec<u8>>>),
}

impl BodyDecoder {
    /// A decoder for a `Content-Encoding`; `None` for `identity` and for encodings that are not built.
    pub fn new(content_encoding: &str) -> Option<BodyDecoder> {
        let encoding = content_encoding.trim();
        let inner = if encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip") {
            Inner::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))
        } else if encoding.eq_ignore_ascii_case("deflate") {
            Inner::Undecided
        } else {
            return None;
        };
        Some(BodyDecoder { inner })
    }

    /// Decodes the bytes of one read and appends all text that they complete to `out`.
    pub fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let Some(&first) = bytes.first() else { return Ok(()) };
        if matches!(self.inner, Inner::Undecided) {
            // Method 8 in the low half of the first byte is the mark of zlib.
            self.inner = if first & 0x0f == 8 {
                Inner::Zlib(Box::new(ZlibDecoder::new(Vec::new())))
            } else {
                Inner::Bare(Box::new(DeflateDecoder::new(Vec::new())))
            };
        }
        match &mut self.inner {
            Inner::Gzip(decoder) => {
                step(&mut **decoder, bytes, "gzip").map(|()| out.append(decoder.get_mut()))
            }
            Inner::Zlib(decoder) => {
                step(&mut **decoder, bytes, "deflate").map(|()| out.append(decoder.get_mut()))
            }
            Inner::Bare(decoder) => {
                step(&mut **decoder, bytes, "deflate").map(|()| out.append(decoder.get_mut()))
            }
            Inner::Undecided => Ok(()),
        }
    }
}

fn step(decoder: &mut impl Write, bytes: &[u8], encoding: &'static str) -> Result<(), DecodeError> {
    // The flush hands on what the decoder holds back: an event must not wait for the read after it.
    let done = decoder.write_all(bytes).and_then(|()| decoder.flush());
    done.map_err(|source| DecodeError::Invalid { encoding, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn pieces(encoding: &str, reads: &[Vec<u8>]) -> Vec<String> {
        let mut decoder = BodyDecoder::new(encoding).unwrap();
        let texts = reads.iter().map(|read| {
            let mut out = Vec::new();
            decoder.decode(read, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        });
        texts.collect()
    }

    macro_rules! reads_of {
        ($encoder:ident) => {{
            let mut encoder = $encoder::new(Vec::new(), Compression::default());
            let mut reads = Vec::new();
            for event in ["data: one\n\n", "data: two\n\n"] {
                encoder.write_all(event.as_bytes()).unwrap();
                encoder.flush().unwrap();
                reads.push(std::mem::take(encoder.get_mut()));
            }
            reads.push(encoder.finish().unwrap());
            reads
        }};
    }

    #[test]
    fn each_read_gives_the_text_it_completes() {
        let expected = ["data: one\n\n", "data: two\n\n", ""];
        assert_eq!(pieces("gzip", &reads_of!(GzEncoder)), expected);
        assert_eq!(pieces("deflate", &reads_of!(ZlibEncoder)), expected);
        assert_eq!(pieces("DEFLATE", &reads_of!(DeflateEncoder)), expected);
    }

    #[test]
    fn split_anywhere_the_text_is_the_same() {
        let whole = reads_of!(GzEncoder).concat();
        for at in 0..whole.len() {
            let reads = [whole[..at].to_vec(), whole[at..].to_vec()];
            assert_eq!(pieces("gzip", &reads).concat(), "data: one\n\ndata: two\n\n");
        }
    }

    #[test]
    fn what_is_not_compressed_is_an_error() {
        let mut decoder = BodyDecoder::new("gzip").unwrap();
        assert!(decoder.decode(b"{\"object\":\"chat.completion\"}", &mut Vec::new()).is_err());
        assert!(BodyDecoder::new("identity").is_none());
        assert!(BodyDecoder::new("br").is_none());
    }
}
