//! One figure of the table: samples, rivals, what it must reach, and how it did.

use serde::Serialize;

use super::stats::median;

/// A bound on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// Good at or below.
    AtMost(f64),
    /// Good at or above.
    AtLeast(f64),
}

impl Limit {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

/// Which number the limits are about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Judged {
    /// The median of our samples.
    Ours,
    /// Median of ours over median of the rival's.
    OursOverRival,
    /// Median of the rival's over median of ours.
    RivalOverOurs,
}

/// The same figure of another program.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rival {
    /// Who.
    pub(crate) name: &'static str,
    /// One value per run.
    pub(crate) samples: Vec<f64>,
}

/// How a figure did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What we aim at is reached.
    Aim,
    /// What must hold does.
    Pass,
    /// It does not.
    Fail,
    /// The measurement says nothing, and why.
    Invalid(String),
    /// Shown without a bound.
    Shown,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    row: &'static str,
    what: String,
    unit: &'static str,
    samples: Vec<f64>,
    rival: Option<Rival>,
    judged: Judged,
    must: Option<Limit>,
    aim: Option<Limit>,
    invalid: Option<String>,
    failed: bool,
    notes: Vec<String>,
}

impl Figure {
    /// A figure without a rival or a bound; `samples` are in `unit`, one per run.
    pub(crate) fn new(
        row: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        samples: Vec<f64>,
    ) -> Self {
        Self {
            row,
            what: what.into(),
            unit,
            samples,
            rival: None,
            judged: Judged::Ours,
            must: None,
            aim: None,
            invalid: None,
            failed: false,
            notes: Vec::new(),
        }
    }

    /// A row that could not be measured.
    pub(crate) fn failed(row: &'static str, what: &str, error: &anyhow::Error) -> Self {
        let mut figure = Self::new(row, what, "", Vec::new());
        figure.failed = true;
        figure.notes.push(format!("{error:#}"));
        figure
    }

    /// A row that was left out, and why.
    pub(crate) fn skipped(row: &'static str, what: &str, why: &str) -> Self {
        Self::new(row, what, "", Vec::new()).note(format!("skipped: {why}"))
    }

    /// Bounds on the median of our samples.
    pub(crate) fn bounded(mut self, must: Limit, aim: Limit) -> Self {
        (self.must, self.aim) = (Some(must), Some(aim));
        self
    }

    /// What must hold, with nothing better aimed at.
    pub(crate) fn must(mut self, must: Limit) -> Self {
        self.must = Some(must);
        self
    }

    /// What is aimed at, without failing when it is missed.
    pub(crate) fn aim(mut self, aim: Limit) -> Self {
        self.aim = Some(aim);
        self
    }

    /// Shows `rival` beside ours; bounds stay on our own value.
    pub(crate) fn beside(mut self, rival: Rival) -> Self {
        self.rival = Some(rival);
        self
    }

    /// Judges the ratio to `rival`.
    pub(crate) fn against(mut self, rival: Rival, judged: Judged) -> Self {
        self.judged = judged;
        self.beside(rival)
    }

    /// The measurement says nothing because of `reason`.
    pub(crate) fn invalid_when(mut self, holds: bool, reason: impl FnOnce() -> String) -> Self {
        if holds && self.invalid.is_none() {
            self.invalid = Some(reason());
        }
        self
    }

    /// A line below the table.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Name of the row.
    pub(crate) fn row(&self) -> &'static str {
        self.row
    }

    /// What is measured.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Unit of ours and the rival's values.
    pub(crate) fn unit(&self) -> &'static str {
        self.unit
    }

    /// Median of our samples.
    pub(crate) fn ours(&self) -> Option<f64> {
        median(&self.samples)
    }

    /// Name and median of the rival.
    pub(crate) fn rival(&self) -> Option<(&'static str, f64)> {
        let rival = self.rival.as_ref()?;
        Some((rival.name, median(&rival.samples)?))
    }

    /// The ratio that is judged, or ours over the rival's where the bound is on our own value.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (_, rival) = self.rival()?;
        let ours = self.ours()?;
        let (above, below) = match self.judged {
            Judged::RivalOverOurs => (rival, ours),
            Judged::Ours | Judged::OursOverRival => (ours, rival),
        };
        (below > 0.0).then(|| above / below)
    }

    /// Lines below the table.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The bounds.
    pub(crate) fn limits(&self) -> (Option<Limit>, Option<Limit>) {
        (self.must, self.aim)
    }

    /// Whether the bounds are about a ratio.
    pub(crate) fn judges_ratio(&self) -> bool {
        self.judged != Judged::Ours
    }

    /// How it did.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.failed {
            return Outcome::Fail;
        }
        if let Some(reason) = &self.invalid {
            return Outcome::Invalid(reason.clone());
        }
        let value = if self.judges_ratio() { self.ratio() } else { self.ours() };
        let Some(value) = value else { return Outcome::Shown };
        match (self.must, self.aim) {
            (_, Some(aim)) if aim.holds(value) => Outcome::Aim,
            (Some(must), _) if must.holds(value) => Outcome::Pass,
            (Some(_), _) => Outcome::Fail,
            (None, _) => Outcome::Shown,
        }
    }

    /// Whether something that must hold does not.
    pub(crate) fn misses(&self) -> bool {
        self.outcome() == Outcome::Fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rival(value: f64) -> Rival {
        Rival { name: "wrk", samples: vec![value] }
    }

    #[test]
    fn a_bound_is_on_the_median_of_ours_or_on_the_ratio() {
        let figure = Figure::new("r", "w", "us", vec![30.0, 50.0, 40.0]);
        assert_eq!(figure.clone().must(Limit::AtMost(40.0)).outcome(), Outcome::Pass);
        assert_eq!(figure.clone().must(Limit::AtMost(39.0)).outcome(), Outcome::Fail);
        let ratio = figure.against(rival(10.0), Judged::OursOverRival);
        assert_eq!(ratio.ratio(), Some(4.0));
        assert_eq!(ratio.clone().bounded(Limit::AtMost(5.0), Limit::AtMost(2.5)).outcome(), Outcome::Pass);
        assert_eq!(ratio.bounded(Limit::AtMost(5.0), Limit::AtMost(4.0)).outcome(), Outcome::Aim);
    }

    #[test]
    fn an_invalid_measurement_neither_passes_nor_fails() {
        let figure = Figure::new("r", "w", "us", vec![30.0])
            .must(Limit::AtMost(1.0))
            .invalid_when(true, || "x".into());
        assert_eq!(figure.outcome(), Outcome::Invalid("x".into()));
        assert!(!figure.misses());
    }

    #[test]
    fn without_samples_nothing_is_judged() {
        let figure = Figure::skipped("r", "w", "no file").must(Limit::AtMost(1.0));
        assert_eq!(figure.outcome(), Outcome::Shown);
    }

    #[test]
    fn a_factor_of_savings_is_the_rivals_over_ours() {
        let figure = Figure::new("r", "w", "us", vec![40.0])
            .against(rival(10_000.0), Judged::RivalOverOurs)
            .bounded(Limit::AtLeast(100.0), Limit::AtLeast(250.0));
        assert_eq!(figure.ratio(), Some(250.0));
        assert_eq!(figure.outcome(), Outcome::Aim);
    }
}
