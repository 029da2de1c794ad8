//! Recorded instants, written as text.

/// Nanoseconds since 1970-01-01T00:00:00Z of `YYYY-MM-DD HH:MM:SS[.fraction][Z|±HH:MM]`, with a space or a `T` between
/// date and time. A time without zone is UTC.
pub(crate) fn nanoseconds(text: &str) -> Option<i128> {
    let text = text.trim();
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (year, month, day) = match date.split('-').collect::<Vec<_>>()[..] {
        [year, month, day] => (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?),
        _ => return None,
    };
    let clock_end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(clock_end);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let (hour, minute, second) = match clock.split(':').collect::<Vec<_>>()[..] {
        [hour, minute, second] => (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?),
        _ => return None,
    };
    // 60 is a leap second, which the clock of the data counts into the next minute.
    let fits = (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !fits || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let fraction = digits(fraction, fraction.len())? * 10i64.pow(9 - fraction.len() as u32);
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let seconds = seconds - offset_seconds(zone)?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(fraction))
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn offset_seconds(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the Gregorian calendar since 1970-01-01; the year of the count starts in March, so that a leap day is its
/// last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn instants_are_read_in_the_forms_that_traces_use() {
        let ms = |text| nanoseconds(text).map(|nanoseconds| nanoseconds / 1_000_000);
        assert_eq!(ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(ms("2026-02-03T10:00:00.250Z"), Some(1_770_112_800_250));
        assert_eq!(ms("2024-02-29 23:59:59"), Some(1_709_251_199_000));
        assert_eq!(ms("2026-02-03T12:00:00+02:00"), ms("2026-02-03T10:00:00Z"));
        assert_eq!(ms("2026-02-03T09:30:00-00:30"), ms("2026-02-03T10:00:00Z"));
        let (one, other) = ("2023-11-16 18:15:46.6805900", "2023-11-16 18:15:50.9951690");
        assert_eq!(nanoseconds(other).unwrap() - nanoseconds(one).unwrap(), 4_314_579_000);
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for text in [
            "",
            "12.5",
            "2023-11-16",
            "2023-11-16 18:15",
            "2023-13-01 00:00:00",
            "2023-02-29 00:00:00",
            "2023-02-28 24:00:00",
            "2023-02-28 00:00:00.",
            "2023-02-28 00:00:00.1234567890",
            "2023-02-28 00:00:00+2:00",
            "2023-02-28 00:00:00+02",
            "23-02-28 00:00:00",
            "2023-02-28x00:00:00",
            "２023-02-28 00:00:00",
        ] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_day_later_is_a_day_more(days in 0i64..60_000) {
            // Counts days one by one.
            let (mut year, mut month, mut day) = (1970, 1, 1);
            for _ in 0..days {
                day += 1;
                if day > days_of_month(year, month) {
                    (month, day) = (month + 1, 1);
                }
                if month > 12 {
                    (year, month) = (year + 1, 1);
                }
            }
            prop_assert_eq!(days_since_epoch(year, month, day), days);
        }

        #[test]
        fn no_text_brings_it_down(text in "\\PC{0,40}") {
            let _ = nanoseconds(&text);
        }
    }
}
