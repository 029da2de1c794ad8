//! JSON at wire speed: a pull scanner that validates what it passes over without building a tree, and a writer
//! of strings.

mod find;
mod number;
mod scan;
mod text;

pub(crate) use find::is_plain;
pub(crate) use number::{float, integer, unsigned};
pub(crate) use scan::{Scan, Scanner, Text, fault};
pub(crate) use text::{push_compact, push_lossy, push_string, push_unquoted};
