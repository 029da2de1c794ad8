//! The fields of a `tokenizer.model` that matter, from its protocol-buffer bytes.

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// One entry of the vocabulary; its place is its number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) score: f32,
    pub(crate) kind: Kind,
}

/// How a text is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Unigram,
    Bpe,
}

/// A model file.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) algorithm: Algorithm,
    pub(crate) byte_fallback: bool,
    pub(crate) whitespace_as_suffix: bool,
    /// What an unknown token is decoded to.
    pub(crate) unknown_surface: String,
    /// The compiled rules of normalisation; empty for none.
    pub(crate) rules: Vec<u8>,
    pub(crate) add_dummy_prefix: bool,
    pub(crate) remove_extra_whitespaces: bool,
    pub(crate) escape_whitespaces: bool,
}

impl Model {
    /// Reads a model file.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Model, String> {
        let mut model = Model {
            pieces: Vec::new(),
            algorithm: Algorithm::Unigram,
            byte_fallback: false,
            whitespace_as_suffix: false,
            unknown_surface: " \u{2047} ".to_owned(),
            rules: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
        };
        for field in Fields(bytes) {
            match field? {
                (1, Value::Bytes(bytes)) => model.pieces.push(piece(bytes)?),
                (2, Value::Bytes(bytes)) => model.trainer(bytes)?,
                (3, Value::Bytes(bytes)) => model.normalizer(bytes)?,
                _ => {}
            }
        }
        if model.pieces.is_empty() {
            return Err("it is no SentencePiece model: it has no pieces".to_owned());
        }
        Ok(model)
    }

    fn trainer(&mut self, bytes: &[u8]) -> Result<(), String> {
        for field in Fields(bytes) {
            match field? {
                (3, Value::Number(1)) => self.algorithm = Algorithm::Unigram,
                (3, Value::Number(2)) => self.algorithm = Algorithm::Bpe,
                (3, Value::Number(other)) => {
                    let name = match other {
                        3 => "word",
                        4 => "char",
                        _ => "unknown",
                    };
                    return Err(format!(
                        "it is a SentencePiece model of type {name}; unigram and BPE models are read"
                    ));
                }
                (24, Value::Number(flag)) => self.whitespace_as_suffix = flag != 0,
                (35, Value::Number(flag)) => self.byte_fallback = flag != 0,
                (44, Value::Bytes(bytes)) => self.unknown_surface = text(bytes)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn normalizer(&mut self, bytes: &[u8]) -> Result<(), String> {
        for field in Fields(bytes) {
            match field? {
                (2, Value::Bytes(bytes)) => self.rules = bytes.to_vec(),
                (3, Value::Number(flag)) => self.add_dummy_prefix = flag != 0,
                (4, Value::Number(flag)) => self.remove_extra_whitespaces = flag != 0,
                (5, Value::Number(flag)) => self.escape_whitespaces = flag != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

fn piece(bytes: &[u8]) -> Result<Piece, String> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: Kind::Normal };
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(bytes)) => piece.text = text(bytes)?,
            (2, Value::Fixed(bits)) => piece.score = f32::from_bits(bits),
            (3, Value::Number(kind)) => {
                piece.kind = match kind {
                    1 => Kind::Normal,
                    2 => Kind::Unknown,
                    3 => Kind::Control,
                    4 => Kind::UserDefined,
                    5 => Kind::Unused,
                    6 => Kind::Byte,
                    other => return Err(format!("a piece is of type {other}, which is not known")),
                }
            }
            _ => {}
        }
    }
    if piece.score.is_nan() {
        return Err(format!("the piece {:?} has a score that is no number", piece.text));
    }
    Ok(piece)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "a text in it is no UTF-8".to_owned())
}

/// A value of a field.
enum Value<'bytes> {
    Number(u64),
    Fixed(u32),
    Bytes(&'bytes [u8]),
    /// A 64-bit number, which no field that matters is.
    Other,
}

/// The fields of a message, in order; ends after a fault.
struct Fields<'bytes>(&'bytes [u8]);

impl<'bytes> Fields<'bytes> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, len: usize) -> Option<&'bytes [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Value<'bytes>)> {
        let key = self.number()?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let len = usize::try_from(self.number()?).ok()?;
                Value::Bytes(self.take(len)?)
            }
            5 => Value::Fixed(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'bytes> Iterator for Fields<'bytes> {
    type Item = Result<(u64, Value<'bytes>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| "it is no SentencePiece model, or it is cut short".to_owned()))
    }
}
