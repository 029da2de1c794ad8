//! What is said of a metric, and the small words the tables are written in.

use super::units::{BYTES, KB, MS, NS, SEC};
use super::{ConsoleGroup, Metric};

/// How a metric comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One value per record; the run shows their distribution.
    Record,
    /// One value per run, folded over the records.
    Aggregate(Fold),
    /// One value per run, made of other metrics.
    Derived,
    /// Made beside the records: step curves, error-adjusted copies.
    Injected,
}

/// How an aggregate folds the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sum.
    Sum,
    /// Smallest.
    Min,
    /// Largest.
    Max,
}

/// The type of a value in the metric's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A whole number.
    Int,
    /// A real number.
    Float,
    /// A list of whole numbers per record; the run pools them.
    IntList,
}

/// A property of a metric: when it applies and how it is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Flag {
    /// Needs streamed answers.
    Streaming = 1 << 0,
    /// Needs an endpoint that produces tokens.
    Tokens = 1 << 1,
    /// Needs an endpoint whose input is counted in tokens.
    TokenizesInput = 1 << 2,
    /// Larger is better; else smaller is.
    LargerIsBetter = 1 << 3,
    /// Of failed records only.
    ErrorOnly = 1 << 4,
    /// Has no value per record.
    RunOnly = 1 << 5,
    /// Has an error-adjusted copy.
    ErrorAdjusted = 1 << 6,
    /// Shown and exported per record only when asked for.
    Internal = 1 << 7,
    /// Computed only when asked for.
    Experimental = 1 << 8,
    /// Needs a goodput objective.
    Goodput = 1 << 9,
    /// Needs an endpoint that takes images.
    Images = 1 << 10,
    /// Needs an endpoint that takes audio.
    Audio = 1 << 11,
    /// Needs an endpoint that produces video.
    Video = 1 << 12,
    /// About reasoning.
    Reasoning = 1 << 13,
    /// In the table of trace timings.
    HttpTrace = 1 << 14,
    /// Needs a profiling phase that plays a fixed schedule.
    FixedSchedule = 1 << 15,
    /// Compares usage with own counts: off when the counts are the server's.
    UsageDiff = 1 << 16,
    /// Off in accuracy mode.
    NotInAccuracy = 1 << 17,
    /// Not in time slices.
    NoTimeslice = 1 << 18,
    /// Exists only where the server reports it.
    ServerReported = 1 << 19,
    /// Needs a measured or given network round trip.
    NetworkCalibrated = 1 << 20,
    /// Needs at least one failed record.
    AfterFailures = 1 << 21,
    /// Needs telemetry of GPUs.
    GpuTelemetry = 1 << 22,
}

/// Everything that is fixed about a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricDef {
    /// Which metric.
    pub metric: Metric,
    /// Key in exports.
    pub tag: &'static str,
    /// Name shown to people.
    pub header: &'static str,
    /// Name where space is short; else the header.
    pub short_header: Option<&'static str>,
    /// The short name says enough without its unit.
    pub short_header_hides_unit: bool,
    /// Unit it is computed in.
    pub unit: &'static str,
    /// Unit it is exported and shown in.
    pub display_unit: &'static str,
    /// How it comes about.
    pub kind: Kind,
    /// Type in its own unit.
    pub value_type: ValueType,
    /// Table it appears in.
    pub console_group: ConsoleGroup,
    /// Place in its table; those without one come last.
    pub display_order: Option<u32>,
    /// Properties: a set of [`Flag`]s.
    pub flags: u32,
    /// Metrics without which it cannot exist.
    pub requires: &'static [Metric],
    /// A line per record carries it.
    pub per_record_export: bool,
}

impl MetricDef {
    /// Whether the metric has this property.
    pub const fn has(&self, flag: Flag) -> bool {
        self.flags & flag as u32 != 0
    }

    /// Whether larger values are better.
    pub const fn larger_is_better(&self) -> bool {
        self.has(Flag::LargerIsBetter)
    }

    /// Whether the reference computes it from a registered class; the others are put in beside them.
    pub const fn registered(&self) -> bool {
        !matches!(self.kind, Kind::Injected)
    }

    /// Divide a figure in the metric's own unit by this for the shown one.
    pub fn shown_divisor(&self) -> f64 {
        match (self.unit, self.display_unit) {
            (NS, MS) => 1e6,
            (NS, SEC) => 1e9,
            (BYTES, KB) => 1024.0,
            (SEC, MS) => 1e-3,
            _ => 1.0,
        }
    }

    /// Whether a shown value of one record is a whole number.
    pub fn shown_as_int(&self) -> bool {
        self.value_type == ValueType::Int && self.unit == self.display_unit
    }

    const fn new(metric: Metric, tag: &'static str, header: &'static str, kind: Kind) -> MetricDef {
        MetricDef {
            metric,
            tag,
            header,
            short_header: None,
            short_header_hides_unit: false,
            unit: "",
            display_unit: "",
            kind,
            value_type: ValueType::Float,
            console_group: ConsoleGroup::Hidden,
            display_order: None,
            flags: 0,
            requires: &[],
            per_record_export: matches!(kind, Kind::Record),
        }
    }

    pub(super) const fn short(mut self, name: &'static str) -> MetricDef {
        self.short_header = Some(name);
        self
    }

    pub(super) const fn short_bare(self, name: &'static str) -> MetricDef {
        self.short(name).bare()
    }

    pub(super) const fn bare(mut self) -> MetricDef {
        self.short_header_hides_unit = true;
        self
    }

    pub(super) const fn unit(self, unit: &'static str) -> MetricDef {
        self.units(unit, unit)
    }

    pub(super) const fn units(mut self, unit: &'static str, shown: &'static str) -> MetricDef {
        self.unit = unit;
        self.display_unit = shown;
        self
    }

    pub(super) const fn int(mut self) -> MetricDef {
        self.value_type = ValueType::Int;
        self
    }

    pub(super) const fn float(mut self) -> MetricDef {
        self.value_type = ValueType::Float;
        self
    }

    pub(super) const fn list(mut self) -> MetricDef {
        self.value_type = ValueType::IntList;
        self
    }

    pub(super) const fn shown(mut self, group: ConsoleGroup, order: u32) -> MetricDef {
        self.console_group = group;
        self.display_order = Some(order);
        self
    }

    pub(super) const fn shown_last(mut self, group: ConsoleGroup) -> MetricDef {
        self.console_group = group;
        self
    }

    pub(super) const fn needs(mut self, metrics: &'static [Metric]) -> MetricDef {
        self.requires = metrics;
        self
    }

    pub(super) const fn flags(mut self, flags: &[Flag]) -> MetricDef {
        let mut index = 0;
        while index < flags.len() {
            self.flags |= flags[index] as u32;
            index += 1;
        }
        self
    }

    pub(super) const fn per_record(mut self) -> MetricDef {
        self.per_record_export = true;
        self
    }
}

pub(super) const fn record(metric: Metric, tag: &'static str, header: &'static str) -> MetricDef {
    MetricDef::new(metric, tag, header, Kind::Record)
}

pub(super) const fn derived(metric: Metric, tag: &'static str, header: &'static str) -> MetricDef {
    MetricDef::new(metric, tag, header, Kind::Derived)
}

pub(super) const fn injected(metric: Metric, tag: &'static str, header: &'static str) -> MetricDef {
    MetricDef::new(metric, tag, header, Kind::Injected)
}

pub(super) const fn sum_of(metric: Metric, tag: &'static str, header: &'static str) -> MetricDef {
    MetricDef::new(metric, tag, header, Kind::Aggregate(Fold::Sum))
}

pub(super) const fn min_of(metric: Metric, tag: &'static str, header: &'static str) -> MetricDef {
    MetricDef::new(metric, tag, header, Kind::Aggregate(Fold::Min))
}

pub(super) const fn max_of(metric: Metric, tag: &'static str, header: &'static str) -> MetricDef {
    MetricDef::new(metric, tag, header, Kind::Aggregate(Fold::Max))
}
