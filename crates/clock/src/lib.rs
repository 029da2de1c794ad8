//! One monotonic clock for the whole program.
//!
//! Every instant is `CLOCK_MONOTONIC` in nanoseconds, so instants of two processes on one host compare. Wall
//! time is read once, when the process anchors the clock; every wall-clock figure of a report is that anchor
//! plus a monotonic difference, so a time step during a run moves nothing.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// An instant of `CLOCK_MONOTONIC`, in nanoseconds since its epoch (host boot).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Mono(pub u64);

impl Mono {
    /// Signed nanoseconds from `earlier` to `self`; negative when `self` lies before it.
    #[inline]
    pub fn since(self, earlier: Mono) -> i64 {
        self.0 as i64 - earlier.0 as i64
    }

    /// Nanoseconds from `earlier` to `self`, 0 when `self` lies before it.
    #[inline]
    pub fn saturating_since(self, earlier: Mono) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// `self` plus `ns` nanoseconds, saturating.
    #[inline]
    #[must_use]
    pub fn plus(self, ns: u64) -> Mono {
        Mono(self.0.saturating_add(ns))
    }

    /// `self` minus `ns` nanoseconds, saturating.
    #[inline]
    #[must_use]
    pub fn minus(self, ns: u64) -> Mono {
        Mono(self.0.saturating_sub(ns))
    }
}

/// The current instant.
#[inline]
pub fn now() -> Mono {
    let t = clock_gettime(ClockId::Monotonic);
    Mono(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// The pair of readings that ties monotonic to wall time.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    mono: Mono,
    wall_ns: u64,
}

static ANCHOR: OnceLock<Anchor> = OnceLock::new();

impl Anchor {
    /// The anchor of this process; the first call reads both clocks.
    pub fn process() -> Anchor {
        *ANCHOR.get_or_init(|| {
            // The monotonic reading lies between two wall readings' worth of syscalls: the error is the time of
            // one vdso call, some 20 ns.
            let wall = clock_gettime(ClockId::Realtime);
            Anchor { mono: now(), wall_ns: wall.tv_sec as u64 * 1_000_000_000 + wall.tv_nsec as u64 }
        })
    }

    /// An anchor with known readings, for tests and for data recorded elsewhere.
    pub fn fixed(mono: Mono, wall_ns: u64) -> Anchor {
        Anchor { mono, wall_ns }
    }

    /// Wall-clock nanoseconds since the Unix epoch at the instant `at`.
    #[inline]
    pub fn wall(self, at: Mono) -> u64 {
        self.wall_ns.wrapping_add_signed(at.since(self.mono))
    }

    /// The instant at which the wall clock showed `wall_ns`.
    #[inline]
    pub fn mono(self, wall_ns: u64) -> Mono {
        Mono(self.mono.0.wrapping_add_signed(wall_ns as i64 - self.wall_ns as i64))
    }
}

/// Wall-clock nanoseconds since the Unix epoch at the instant `at`, by the anchor of this process.
#[inline]
pub fn wall(at: Mono) -> u64 {
    Anchor::process().wall(at)
}

/// `duration` in nanoseconds, saturating.
#[inline]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// `2026-11-29T18:28:58.958455Z`: wall-clock nanoseconds since the Unix epoch as UTC with microseconds.
pub fn format_utc(wall_ns: u64) -> String {
    let (year, month, day, second_of_day) = civil(wall_ns / 1_000_000_000);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
        wall_ns % 1_000_000_000 / 1_000
    )
}

/// `2026-11-29 18:28:58.958`: the form of log lines, in UTC.
pub fn format_log(wall_ns: u64) -> String {
    let utc = format_utc(wall_ns);
    format!("{} {}", &utc[..10], &utc[11..23])
}

/// Year, month, day and second of the day of a Unix time (H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`).
fn civil(unix: u64) -> (u64, u64, u64, u64) {
    let days = unix / 86_400 + 719_468;
    let era = days / 146_097;
    let doe = days % 146_097;
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, day, unix % 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_is_the_anchor_plus_a_monotonic_difference() {
        let anchor = Anchor::fixed(Mono(1_000), 1_700_000_000_000_000_000);
        assert_eq!(anchor.wall(Mono(1_500)), 1_700_000_000_000_000_500);
        assert_eq!(anchor.wall(Mono(400)), 1_699_999_999_999_999_400);
        assert_eq!(anchor.mono(anchor.wall(Mono(77))), Mono(77));
    }

    #[test]
    fn differences_keep_their_sign() {
        assert_eq!(Mono(5).since(Mono(8)), -3);
        assert_eq!(Mono(5).saturating_since(Mono(8)), 0);
    }

    #[test]
    fn utc_text_of_known_instants() {
        assert_eq!(format_utc(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(format_utc(1_709_210_096_789_012_345), "2024-02-29T12:34:56.789012Z");
        assert_eq!(format_log(1_709_210_096_789_012_345), "2024-02-29 12:34:56.789");
    }

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }
}
