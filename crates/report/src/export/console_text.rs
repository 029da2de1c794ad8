//! `profile_export_console.txt`: the tables as plain text.

use std::io;
use std::path::PathBuf;

use super::Exporter;
use crate::console;
use crate::files::write_atomic;
use crate::names::FileNames;
use crate::results::RunResults;
use crate::style::Palette;

pub(super) struct ConsoleText;

impl Exporter for ConsoleText {
    fn name(&self) -> &'static str {
        "console-text"
    }

    fn about(&self) -> &'static str {
        "The tables of the console as text"
    }

    fn label(&self) -> &'static str {
        "Console Text"
    }

    fn export(&self, results: &RunResults<'_>, names: &FileNames) -> io::Result<Vec<PathBuf>> {
        let text =
            console::tables(results, usize::from(results.config.tuning.console_width), Palette::plain());
        Ok(vec![write_atomic(results.config.output.dir.join(names.console()), text.as_bytes())?])
    }
}
