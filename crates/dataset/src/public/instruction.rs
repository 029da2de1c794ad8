//! Rows that are one prompt each: a column, or a template over columns.

use aiperf_types::{Content, Turn};

use super::{Converter, Fault, Made, Row, Value, media};

/// Where the prompt of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// In this column.
    Column(&'static str),
    /// In a text whose `{column}`s are filled from the row.
    Template(&'static str),
}

struct Instruction {
    prompt: Prompt,
    /// The column of an image that goes with it.
    image: Option<&'static str>,
}

/// A converter of such rows.
pub(super) fn make(prompt: Prompt) -> Box<dyn Converter> {
    Box::new(Instruction { prompt, image: None })
}

/// A converter of rows that have an image, too.
pub(super) fn with_image(prompt: Prompt, image: &'static str) -> Box<dyn Converter> {
    Box::new(Instruction { prompt, image: Some(image) })
}

impl Prompt {
    /// The columns that it is made of.
    fn columns(self) -> Vec<&'static str> {
        match self {
            Prompt::Column(column) => vec![column],
            Prompt::Template(template) => pieces(template)
                .filter_map(|piece| if let Piece::Column(column) = piece { Some(column) } else { None })
                .collect(),
        }
    }

    fn of(self, row: &Row) -> String {
        let shown = |column| row.cell(column).map(Value::shown).unwrap_or_default();
        match self {
            Prompt::Column(column) => shown(column),
            Prompt::Template(template) => pieces(template)
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Column(column) => shown(column),
                })
                .collect(),
        }
    }
}

enum Piece {
    Text(&'static str),
    Column(&'static str),
}

/// The texts of a template, and the columns between them.
fn pieces(template: &'static str) -> impl Iterator<Item = Piece> {
    template.split('{').enumerate().flat_map(|(number, piece)| {
        let (column, text) = match piece.split_once('}') {
            Some((column, text)) if number > 0 => (Some(Piece::Column(column)), text),
            _ => (None, piece),
        };
        column.into_iter().chain(std::iter::once(Piece::Text(text)))
    })
}

impl Converter for Instruction {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(self.prompt.columns().into_iter().chain(self.image).collect())
    }

    fn required(&self) -> Vec<&str> {
        self.prompt.columns()
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let text = self.prompt.of(row);
        if text.trim().is_empty() {
            return Ok(Made::Skipped("blank prompt"));
        }
        let content = match self.image {
            None => Content::text(text),
            Some(column) => media::with_text(&text, row.cell(column).and_then(media::image)),
        };
        Ok(Made::one(Turn { content, ..Turn::default() }))
    }
}
