//! The help, as it is read.

use aiperf_cli::flags;
use aiperf_cli::help::{Detail, profile};

use crate::support::path;

#[test]
fn the_help_fits_80_columns() {
    for detail in [Detail::Supported, Detail::All] {
        for line in profile(detail).lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }
}

/// To accept a change: `UPDATE_HELP=1 cargo test -p aiperf the_help_is_the_one_that_was_read`.
#[test]
fn the_help_is_the_one_that_was_read() {
    for (file, detail) in [("help.txt", Detail::Supported), ("help-all.txt", Detail::All)] {
        let file = path(&format!("tests/data/{file}"));
        let text = profile(detail);
        if std::env::var_os("UPDATE_HELP").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(
            text,
            std::fs::read_to_string(&file).unwrap(),
            "the help has changed: read it, then UPDATE_HELP=1"
        );
    }
}

#[test]
fn every_flag_is_in_the_help_that_should_have_it() {
    let (supported, all) = (profile(Detail::Supported), profile(Detail::All));
    let has = |text: &str, name: &str| {
        text.split(|letter: char| letter.is_whitespace() || ",]:…|".contains(letter)).any(|word| word == name)
    };
    for flag in flags::all() {
        assert_eq!(has(&supported, flag.shown), flag.acts(), "{}", flag.shown);
        assert!(has(&all, flag.shown), "{}", flag.shown);
    }
}
