//! The split of a text into pieces that are merged one by one.
//!
//! The published encodings define their pieces by regular expressions with backtracking. These functions are
//! those expressions written out: each looks at the text from a position and gives the end of the piece that
//! begins there. None looks back.

static INDEX: &[u8; 0x1100] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.index"));
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.blocks"));

/// What a character is to the patterns; the numbers are written by the build script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Class {
    /// Anything else: punctuation, symbols, controls.
    Other = 0,
    /// Uppercase or titlecase letter.
    Upper = 1,
    /// Lowercase letter.
    Lower = 2,
    /// Letter without case.
    Caseless = 3,
    /// Combining mark.
    Mark = 4,
    /// Number of any kind.
    Number = 5,
    /// White space but for line ends.
    Space = 6,
    /// Carriage return or line feed.
    LineEnd = 7,
}

const CLASSES: [Class; 8] = [
    Class::Other,
    Class::Upper,
    Class::Lower,
    Class::Caseless,
    Class::Mark,
    Class::Number,
    Class::Space,
    Class::LineEnd,
];

impl Class {
    #[inline]
    fn is_letter(self) -> bool {
        matches!(self, Class::Upper | Class::Lower | Class::Caseless)
    }

    #[inline]
    fn is_space(self) -> bool {
        matches!(self, Class::Space | Class::LineEnd)
    }

    /// `[^\s\p{L}\p{N}]`
    #[inline]
    fn is_symbol(self) -> bool {
        matches!(self, Class::Other | Class::Mark)
    }

    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
    #[inline]
    fn begins_word(self) -> bool {
        matches!(self, Class::Upper | Class::Caseless | Class::Mark)
    }

    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
    #[inline]
    fn ends_word(self) -> bool {
        matches!(self, Class::Lower | Class::Caseless | Class::Mark)
    }
}

/// The class of the character at `at` and its length in bytes; length 0 at the end of the text.
#[inline]
fn class(text: &str, at: usize) -> (Class, usize) {
    match text.as_bytes().get(at) {
        None => (Class::Other, 0),
        Some(&byte) if byte < 0x80 => (CLASSES[usize::from(BLOCKS[usize::from(byte)] & 7)], 1),
        Some(_) => wide_class(text, at),
    }
}

#[inline(never)]
fn wide_class(text: &str, at: usize) -> (Class, usize) {
    let Some(character) = text[at..].chars().next() else { return (Class::Other, 0) };
    let code = character as usize;
    let block = usize::from(INDEX[code >> 8]) << 8;
    (CLASSES[usize::from(BLOCKS[block | (code & 255)] & 7)], character.len_utf8())
}

/// The end of the run of characters from `at` for which `belongs` holds.
#[inline]
fn run(text: &str, mut at: usize, belongs: impl Fn(Class) -> bool) -> usize {
    loop {
        let (found, len) = class(text, at);
        if len == 0 || !belongs(found) {
            return at;
        }
        at += len;
    }
}

/// Which expression splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `o200k_base` and its like: words by case.
    ByCase {
        /// English contractions go with the word before them.
        contractions: bool,
        /// Most digits in a piece.
        digits: u8,
    },
    /// `cl100k_base` and its like: words of any case.
    AnyCase {
        /// Most digits in a piece.
        digits: u8,
        /// White space at the end of a text is one piece, line ends or not.
        whole_end: bool,
    },
    /// `p50k_base`, `r50k_base` and GPT-2.
    Gpt2,
}

const LINES_AND_SPACES: &str = r"\s*[\r\n]+|\s+(?!\S)|\s+";
const LETTERS_OF_ANY_CASE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|";
const WORD_TO_SMALL: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+";
const WORD_FROM_CAPITAL: &str =
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*";
const SUFFIX: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

impl Pattern {
    /// The pattern that a regular expression of a `tokenizer.json` spells, if it is one of these.
    pub(crate) fn of_expression(expression: &str) -> Option<Pattern> {
        if expression == GPT2 {
            return Some(Pattern::Gpt2);
        }
        for (digits, number) in [(1, r"\p{N}"), (3, r"\p{N}{1,3}")] {
            let symbols = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|";
            if expression == format!("{LETTERS_OF_ANY_CASE}{number}{symbols}{LINES_AND_SPACES}") {
                return Some(Pattern::AnyCase { digits, whole_end: false });
            }
            let symbols = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|";
            for (contractions, suffix) in [(true, SUFFIX), (false, "")] {
                let words = format!("{WORD_TO_SMALL}{suffix}|{WORD_FROM_CAPITAL}{suffix}");
                if expression == format!("{words}|{number}{symbols}{LINES_AND_SPACES}") {
                    return Some(Pattern::ByCase { contractions, digits });
                }
            }
        }
        None
    }
}

/// Calls `piece` with each piece of `text`, in order.
#[inline]
pub(crate) fn pieces<'text>(pattern: Pattern, text: &'text str, piece: impl FnMut(&'text [u8])) {
    match pattern {
        Pattern::ByCase { contractions, digits } => {
            each(text, |text, at| by_case(text, at, contractions, digits), piece);
        }
        Pattern::AnyCase { digits, whole_end } => {
            each(text, |text, at| any_case(text, at, digits, whole_end), piece);
        }
        Pattern::Gpt2 => each(text, gpt2, piece),
    }
}

#[inline]
fn each<'text>(text: &'text str, end: impl Fn(&str, usize) -> usize, mut piece: impl FnMut(&'text [u8])) {
    let mut at = 0;
    while at < text.len() {
        let next = end(text, at);
        piece(&text.as_bytes()[at..next]);
        at = next;
    }
}

#[inline]
fn by_case(text: &str, at: usize, contractions: bool, most: u8) -> usize {
    if let Some(end) = plain_word(text.as_bytes(), at) {
        return end;
    }
    let (first, len) = class(text, at);
    if let Some(end) = cased_word(text, at, first, len, contractions) {
        return end;
    }
    if first == Class::Number {
        return digits(text, at, most);
    }
    if let Some(end) = symbols(text, at, first, len) {
        return line_ends(text, end, true);
    }
    let (end, last, line_end) = white_run(text, at);
    if let Some(line_end) = line_end {
        return line_end;
    }
    white_before_text(text, at, end, last)
}

/// The commonest piece: at most one space, at most one capital, small letters, all ASCII, and an end that
/// leaves no doubt.
#[inline]
fn plain_word(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + usize::from(bytes[at] == b' ');
    end += usize::from(bytes.get(end).is_some_and(u8::is_ascii_uppercase));
    let begin = end;
    while bytes.get(end).is_some_and(u8::is_ascii_lowercase) {
        end += 1;
    }
    let clear = end > begin && bytes.get(end).is_none_or(|&next| next < 0x80 && next != b'\'');
    clear.then_some(end)
}

fn cased_word(text: &str, at: usize, first: Class, len: usize, contractions: bool) -> Option<usize> {
    // A mark may be the character before the word or belong to it: the expression tries both, in this order.
    let after_prefix =
        (!matches!(first, Class::LineEnd | Class::Number) && !first.is_letter()).then(|| at + len);
    let end = after_prefix
        .and_then(|begin| lowercase_ended(text, begin))
        .or_else(|| lowercase_ended(text, at))
        .or_else(|| after_prefix.and_then(|begin| capitals(text, begin)))
        .or_else(|| capitals(text, at))?;
    let contracted = if contractions { contraction(text, end, true) } else { None };
    Some(contracted.unwrap_or(end))
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
fn lowercase_ended(text: &str, begin: usize) -> Option<usize> {
    let mut at = begin;
    let mut last_caseless = None;
    loop {
        let (found, len) = class(text, at);
        if len != 0 && found.begins_word() {
            at += len;
            if found != Class::Upper {
                last_caseless = Some(at);
            }
        } else if len != 0 && found == Class::Lower {
            return Some(run(text, at, Class::ends_word));
        } else {
            // The first part gives back characters until the second finds one that it may begin with.
            return last_caseless;
        }
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`, where `lowercase_ended` found nothing.
fn capitals(text: &str, begin: usize) -> Option<usize> {
    let end = run(text, begin, Class::begins_word);
    (end > begin).then_some(end)
}

/// `'s|'t|'re|'ve|'m|'ll|'d` at `at`, with every character that folds to these when `any_case`.
#[inline]
fn contraction(text: &str, at: usize, any_case: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'\'') {
        return None;
    }
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    let first = fold(*bytes.get(at + 1)?);
    match first {
        b's' | b't' | b'm' | b'd' => Some(at + 2),
        b'r' | b'v' => (fold(*bytes.get(at + 2)?) == b'e').then_some(at + 3),
        b'l' => (fold(*bytes.get(at + 2)?) == b'l').then_some(at + 3),
        // U+017F, the long s, is an s of another case.
        0xC5 if any_case => (*bytes.get(at + 2)? == 0xBF).then_some(at + 3),
        _ => None,
    }
}

fn digits(text: &str, mut at: usize, most: u8) -> usize {
    for _ in 0..most {
        let (found, len) = class(text, at);
        if len == 0 || found != Class::Number {
            break;
        }
        at += len;
    }
    at
}

/// ` ?[^\s\p{L}\p{N}]+`
#[inline]
fn symbols(text: &str, at: usize, first: Class, len: usize) -> Option<usize> {
    let begin = if first.is_symbol() {
        at + len
    } else if text.as_bytes()[at] == b' ' {
        let (second, len) = class(text, at + 1);
        if len == 0 || !second.is_symbol() {
            return None;
        }
        at + 1 + len
    } else {
        return None;
    };
    Some(run(text, begin, Class::is_symbol))
}

/// `[\r\n]*`, or `[\r\n/]*`.
#[inline]
fn line_ends(text: &str, mut at: usize, slash: bool) -> usize {
    while let Some(&byte) = text.as_bytes().get(at) {
        if !(byte == b'\r' || byte == b'\n' || slash && byte == b'/') {
            break;
        }
        at += 1;
    }
    at
}

/// A run of white space: its end, the start of its last character, the end of its last line end.
fn white_run(text: &str, begin: usize) -> (usize, usize, Option<usize>) {
    let (mut at, mut last, mut line_end) = (begin, begin, None);
    loop {
        let (found, len) = class(text, at);
        if len == 0 || !found.is_space() {
            return (at, last, line_end);
        }
        last = at;
        at += len;
        if found == Class::LineEnd {
            line_end = Some(at);
        }
    }
}

/// `\s+(?!\S)|\s+`: all of it at the end of the text, else all but its last character, which goes with what
/// follows.
#[inline]
fn white_before_text(text: &str, begin: usize, end: usize, last: usize) -> usize {
    if end == text.len() || last == begin { end } else { last }
}

#[inline]
fn any_case(text: &str, at: usize, most: u8, whole_end: bool) -> usize {
    if let Some(end) = contraction(text, at, true) {
        return end;
    }
    let (first, len) = class(text, at);
    if first.is_letter() {
        return run(text, at + len, Class::is_letter);
    }
    if !matches!(first, Class::LineEnd | Class::Number) {
        let end = run(text, at + len, Class::is_letter);
        if end > at + len {
            return end;
        }
    }
    if first == Class::Number {
        return digits(text, at, most);
    }
    if let Some(end) = symbols(text, at, first, len) {
        return line_ends(text, end, false);
    }
    let (end, last, line_end) = white_run(text, at);
    if whole_end && end == text.len() {
        return end;
    }
    line_end.unwrap_or_else(|| white_before_text(text, at, end, last))
}

#[inline]
fn gpt2(text: &str, at: usize) -> usize {
    if let Some(end) = contraction(text, at, false) {
        return end;
    }
    let after_space = at + usize::from(text.as_bytes()[at] == b' ');
    let (first, len) = class(text, after_space);
    if len != 0 {
        if first.is_letter() {
            return run(text, after_space + len, Class::is_letter);
        }
        if first == Class::Number {
            return run(text, after_space + len, |found| found == Class::Number);
        }
        if first.is_symbol() {
            return run(text, after_space + len, Class::is_symbol);
        }
    }
    let (end, last, _) = white_run(text, at);
    white_before_text(text, at, end, last)
}

/// Whether a space at `at` stands directly between two characters that are no white space. In every pattern a
/// piece begins there, whatever lies before or after, so a text may be cut there and its parts encoded apart.
#[inline]
pub(crate) fn is_seam(bytes: &[u8], at: usize) -> bool {
    at > 0
        && bytes[at] == b' '
        && (b'!'..=b'~').contains(&bytes[at - 1])
        && bytes.get(at + 1).is_some_and(|byte| (b'!'..=b'~').contains(byte))
}
