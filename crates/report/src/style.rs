//! Colour on terminals, and only there.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::IsTerminal;

/// How a piece of text looks. Nothing depends on it: every meaning is also in the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Names.
    Cyan,
    /// Figures; good.
    Green,
    /// Warnings.
    Yellow,
    /// Errors.
    Red,
    /// Work in progress.
    Blue,
    /// Winding down.
    Magenta,
    /// Absent figures and side notes.
    Dim,
    /// Titles.
    Bold,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Cyan => "36",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Red => "31",
            Style::Blue => "34",
            Style::Magenta => "35",
            Style::Dim => "2",
            Style::Bold => "1",
        }
    }
}

/// Whether a stream is a terminal that knows colours and takes back what it was sent.
pub fn is_capable_terminal(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !std::env::var_os("TERM").is_some_and(is_dumb)
}

/// Whether a terminal of this kind, as `TERM` names it, takes nothing but text.
pub fn is_dumb(kind: impl AsRef<OsStr>) -> bool {
    kind.as_ref() == "dumb"
}

/// Whether styles are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colour: bool,
}

impl Palette {
    /// No colour: files and pipes.
    pub const fn plain() -> Palette {
        Palette { colour: false }
    }

    /// Colour on a terminal, where it is allowed (`NO_COLOR` is not set).
    pub const fn for_stream(is_terminal: bool, allowed: bool) -> Palette {
        Palette { colour: is_terminal && allowed }
    }

    /// Colour always.
    pub const fn coloured() -> Palette {
        Palette { colour: true }
    }

    /// `text` in a style.
    pub fn paint(self, style: Style, text: &str) -> Cow<'_, str> {
        if !self.colour || style == Style::Plain || text.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(format!("\x1b[{}m{text}\x1b[0m", style.code()))
        }
    }
}
