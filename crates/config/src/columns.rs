//! Names that a data file has for the fields of its format.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Which columns of a data file, or keys of its records, hold the fields of its format where they are named
/// differently there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputColumns {
    /// Fields and their columns; no field and no column is in two pairs.
    pairs: Arc<[(Box<str>, Box<str>)]>,
}

impl InputColumns {
    /// Reads pairs that are written `FIELD=COLUMN`, several of them with commas between. The error says which text is
    /// none, or names a field or column a second time.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<InputColumns, String> {
        let pairs = texts.into_iter().flat_map(|text| text.split(',')).map(|pair| {
            pair.split_once('=')
                .map(|(field, column)| (field.trim(), column.trim()))
                .filter(|(field, column)| !field.is_empty() && !column.is_empty())
                .ok_or_else(|| format!("expected FIELD=COLUMN, found '{pair}'"))
        });
        InputColumns::new(pairs.collect::<Result<Vec<_>, _>>()?)
    }

    /// The columns of these fields. The error names a field or column that is there twice.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<InputColumns, String> {
        let pairs: Arc<[(Box<str>, Box<str>)]> =
            pairs.into_iter().map(|(field, column)| (field.into(), column.into())).collect();
        for (at, (field, column)) in pairs.iter().enumerate() {
            for (other, its_column) in &pairs[..at] {
                if field == other {
                    return Err(format!("the field `{field}` has two columns"));
                }
                if column == its_column {
                    return Err(format!("the column `{column}` is that of two fields"));
                }
            }
        }
        Ok(InputColumns { pairs })
    }

    /// Whether every field is found under its own name.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Fields and their columns.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(field, column)| (&**field, &**column))
    }

    /// The column that holds a field.
    pub fn column_of<'a>(&'a self, field: &'a str) -> &'a str {
        self.pairs().find(|(of, _)| *of == field).map_or(field, |(_, column)| column)
    }

    /// What a column of a file is to its format: a field, or what is no field of any format where another column takes
    /// its place.
    pub fn field_of<'a>(&'a self, column: &'a str) -> Cow<'a, str> {
        if let Some((field, _)) = self.pairs().find(|(_, of)| *of == column) {
            return field.into();
        }
        if self.pairs().any(|(field, _)| field == column) {
            return format!("{column} (another column takes its place)").into();
        }
        column.into()
    }
}

impl fmt::Display for InputColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (field, column)) in self.pairs().enumerate() {
            write!(f, "{}{field}={column}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_with_commas_or_one_by_one_and_are_written_as_they_are_read() {
        let columns = InputColumns::parse(["text=question, output_length = max", "extra=a=b"]).unwrap();
        assert_eq!(columns.to_string(), "text=question,output_length=max,extra=a=b");
        assert_eq!(columns, InputColumns::parse([columns.to_string().as_str()]).unwrap());
        assert!(InputColumns::parse([]).unwrap().is_empty());
    }

    #[test]
    fn a_column_is_its_field_and_what_it_replaces_is_none() {
        let columns = InputColumns::parse(["text=question,role=text"]).unwrap();
        assert_eq!([columns.field_of("question"), columns.field_of("text")], ["text", "role"]);
        assert_eq!(columns.field_of("other"), "other");
        assert!(columns.field_of("role").starts_with("role ("));
        assert_eq!([columns.column_of("text"), columns.column_of("timestamp")], ["question", "timestamp"]);
    }

    #[test]
    fn what_is_no_pair_or_comes_twice_is_told() {
        for (text, said) in [
            ("text", "'text'"),
            ("=a", "'=a'"),
            ("text=", "'text='"),
            ("text=a,,role=b", "''"),
            ("text=a,text=b", "`text` has two columns"),
            ("text=a,role=a", "`a` is that of two fields"),
        ] {
            let message = InputColumns::parse([text]).unwrap_err();
            assert!(message.contains(said), "{text}: {message}");
        }
    }
}
