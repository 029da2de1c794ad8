//! Width and wrapping of text on a terminal.

use std::borrow::Cow;

/// Columns that a character takes.
fn char_width(c: char) -> usize {
    match u32::from(c) {
        // Combining marks, joiners, variation selectors.
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        // East Asian wide and emoji.
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x2_0000..=0x3_fffd => 2,
        _ => 1,
    }
}

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// Foreign text made fit for a terminal: control characters (escape sequences among them) become spaces where
/// they are white space and `\u{fffd}` elsewhere.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// A name made fit for a terminal, in which control characters stand as they are written in a program: it can be told
/// from every other. Line ends and tabs stay where `keeps_lines` says that there may be some.
pub fn escaped(text: &str, keeps_lines: bool) -> Cow<'_, str> {
    let is_shown = |c: char| !c.is_control() || (keeps_lines && matches!(c, '\n' | '\t'));
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_shown(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    Cow::Owned(out)
}

/// Lines of at most `limit` columns, broken at spaces; words that are longer are cut. Never empty.
pub(crate) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        wrap_paragraph(paragraph, limit, &mut lines);
    }
    lines
}

fn wrap_paragraph(paragraph: &str, limit: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    let mut used = 0;
    for word in paragraph.split_inclusive(' ') {
        let bare = width(word.trim_end_matches(' '));
        if used + bare > limit && used > 0 {
            lines.push(take_line(&mut line));
            used = 0;
        }
        if bare <= limit {
            line.push_str(word);
            used += width(word);
            continue;
        }
        for c in word.chars() {
            if used + char_width(c) > limit {
                if c == ' ' {
                    continue;
                }
                lines.push(take_line(&mut line));
                used = 0;
            }
            line.push(c);
            used += char_width(c);
        }
    }
    lines.push(take_line(&mut line));
}

fn take_line(line: &mut String) -> String {
    let mut taken = std::mem::take(line);
    taken.truncate(taken.trim_end().len());
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(text in "[a-z 你é]{0,120}", limit in 2usize..40) {
            let lines = wrap(&text, limit);
            prop_assert!(lines.iter().all(|line| width(line) <= limit));
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\nb", 10), ["a", "b"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn escape_sequences_of_a_server_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\nc"), "a\u{fffd}[31mb c");
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
        assert_eq!(escaped("a\x1b[31m\u{9b}b\n", false), "a\\u{1b}[31m\\u{9b}b\\n");
        assert_eq!(escaped("a\x1b\tb\r\n", true), "a\\u{1b}\tb\\r\n");
    }
}
