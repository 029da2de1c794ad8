//! `strftime_now` of chat templates: the time of day in UTC, whatever the host's zone, so that two clients write
//! the same prompt.

use std::fmt::Write as _;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The current time in a `strftime` format.
pub(crate) fn now(format: &str) -> String {
    at(format, aiperf_clock::wall(aiperf_clock::now()) / 1_000_000_000)
}

/// Year, month from 1, day of the month and day of the year from 1, of days since 1970.
fn date(days: u64) -> (u64, usize, u64, u64) {
    let mut year = 1970;
    let mut left = days;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let day_of_year = left + 1;
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < len {
            break;
        }
        left -= len;
        month += 1;
    }
    (year, month, left + 1, day_of_year)
}

/// A time in seconds since 1970 in a `strftime` format; directives it does not know stay as they are.
fn at(format: &str, seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day, day_of_year) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let hour_of_half = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
    let (month_name, day_name) = (MONTHS[month - 1], DAYS[(days % 7) as usize]);
    let mut text = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        let mut directive = characters.next();
        let unpadded = directive == Some('-');
        if unpadded {
            directive = characters.next();
        }
        let width = if unpadded { 1 } else { 2 };
        // Writing to a String cannot fail.
        let _ = match directive {
            Some('Y') => write!(text, "{year}"),
            Some('y') => write!(text, "{:0width$}", year % 100),
            Some('m') => write!(text, "{month:0width$}"),
            Some('d') => write!(text, "{day:0width$}"),
            Some('e') => write!(text, "{day:2}"),
            Some('j') => write!(text, "{day_of_year:03}"),
            Some('B') => write!(text, "{month_name}"),
            Some('b' | 'h') => write!(text, "{}", &month_name[..3]),
            Some('A') => write!(text, "{day_name}"),
            Some('a') => write!(text, "{}", &day_name[..3]),
            Some('H') => write!(text, "{hour:0width$}"),
            Some('I') => write!(text, "{hour_of_half:0width$}"),
            Some('p') => write!(text, "{}", if hour < 12 { "AM" } else { "PM" }),
            Some('M') => write!(text, "{minute:0width$}"),
            Some('S') => write!(text, "{second:0width$}"),
            Some('F') => write!(text, "{year}-{month:02}-{day:02}"),
            Some('T') => write!(text, "{hour:02}:{minute:02}:{second:02}"),
            Some('Z') => write!(text, "UTC"),
            Some('z') => write!(text, "+0000"),
            Some('%') | None => write!(text, "%"),
            Some(other) => write!(text, "%{}{other}", if unpadded { "-" } else { "" }),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(at("%A %a %d %B %b %Y %j", 0), "Thursday Thu 01 January Jan 1970 001");
        assert_eq!(at("%F %T %I %p %-d/%-m/%y %%%Q", 951_782_399), "2000-02-28 23:59:59 11 PM 28/2/00 %%Q");
        assert_eq!(at("%a %F %j", 951_782_400), "Tue 2000-02-29 060");
        assert_eq!(at("%d %b %Y", 1_767_225_599), "31 Dec 2025");
        assert_eq!(at("%d %b %Y", 4_107_542_400), "01 Mar 2100");
    }
}
