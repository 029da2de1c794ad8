//! Chunked request bodies.

/// Where a decoder stands; kept across reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size {
        value: u64,
        digits: u8,
    },
    Extension {
        value: u64,
    },
    SizeEnd {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// In a trailer line with this many bytes so far.
    Trailer {
        length: u32,
    },
    TrailerEnd {
        empty: bool,
    },
    Done,
}

/// The body is not chunked as it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadChunk;

/// An incremental decoder.
#[derive(Clone, Debug)]
pub(crate) struct Dechunker(State);

impl Dechunker {
    pub(crate) fn new() -> Dechunker {
        Dechunker(State::Size { value: 0, digits: 0 })
    }

    /// Decodes from `bytes` onto `body`; gives the bytes used and whether the body is complete.
    pub(crate) fn push(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<(usize, bool), BadChunk> {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Data { left } = self.0 {
                let taken = left.min((bytes.len() - at) as u64) as usize;
                body.extend_from_slice(&bytes[at..at + taken]);
                at += taken;
                let left = left - taken as u64;
                self.0 = if left == 0 { State::DataCr } else { State::Data { left } };
                continue;
            }
            self.0 = step(self.0, bytes[at])?;
            at += 1;
            if self.0 == State::Done {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }
}

fn step(state: State, byte: u8) -> Result<State, BadChunk> {
    Ok(match (state, byte) {
        (State::Size { value, digits: 1.. } | State::Extension { value }, b'\r') => State::SizeEnd { value },
        (State::Size { value, digits: 1.. }, b';' | b' ' | b'\t') | (State::Extension { value }, b' '..) => {
            State::Extension { value }
        }
        (State::Size { value, digits }, _) if digits < 8 => {
            let digit = char::from(byte).to_digit(16).ok_or(BadChunk)?;
            State::Size { value: value * 16 + u64::from(digit), digits: digits + 1 }
        }
        (State::SizeEnd { value: 0 } | State::TrailerEnd { empty: false }, b'\n') => {
            State::Trailer { length: 0 }
        }
        (State::SizeEnd { value }, b'\n') => State::Data { left: value },
        (State::DataCr, b'\r') => State::DataLf,
        (State::DataLf, b'\n') => State::Size { value: 0, digits: 0 },
        (State::Trailer { length }, b'\r') => State::TrailerEnd { empty: length == 0 },
        (State::Trailer { length }, _) if length < 16_384 => State::Trailer { length: length + 1 },
        (State::TrailerEnd { empty: true }, b'\n') => State::Done,
        _ => return Err(BadChunk),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: &[u8] = b"5\r\nhello\r\n1;x=y\r\n \r\n0A\r\n0123456789\r\n0\r\nT: 1\r\n\r\nGET";

    #[test]
    fn a_body_is_decoded_whatever_the_split() {
        for split in 0..WIRE.len() {
            let (mut decoder, mut body) = (Dechunker::new(), Vec::new());
            let (used, done) = decoder.push(&WIRE[..split], &mut body).unwrap();
            let used = if done { used } else { split + decoder.push(&WIRE[split..], &mut body).unwrap().0 };
            assert_eq!(body, b"hello 0123456789");
            assert_eq!(&WIRE[used..], b"GET");
        }
    }

    #[test]
    fn what_is_not_chunked_is_refused() {
        for bad in [&b"x\r\n"[..], b"\r\n", b"5\r\nhelloX", b"1\rX", b"123456789\r\n", b"0\r\n\rX"] {
            assert_eq!(Dechunker::new().push(bad, &mut Vec::new()), Err(BadChunk));
        }
    }
}
