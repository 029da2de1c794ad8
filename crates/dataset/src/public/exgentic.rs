//! Exgentic, first and second version: recorded sessions of agents, one in each row. Every successful call of a model
//! is one request that says all that was said then; nothing is run, and no live answer is said again.

mod attributes;
mod combinations;
mod controls;
mod filter;
mod head;
mod messages;
mod session;
mod span;
mod tools;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::{Converter, Fault, Job, Made, Row};
pub(crate) use combinations::Version;
use filter::{Filter, Seen};
use head::Head;
use session::{Counts, Session};

/// Makes the converter of a version.
pub(super) fn make(version: Version, job: Job<'_>) -> Result<Box<dyn Converter + '_>, Fault> {
    let filter = Filter::new(version, job.filters)
        .map_err(|what| Fault::new(what, "Choose one of these with --dataset-filter"))?;
    Ok(Box::new(Exgentic {
        filter,
        fixed_schedule: job.fixed_schedule,
        context_limit: job.context_limit,
        found: Mutex::default(),
        ids: HashSet::new(),
    }))
}

/// Whether a version can be filtered so; the error lists what there is.
pub(super) fn check_filters(version: Version, filters: &[(String, String)]) -> Result<(), String> {
    Filter::new(version, filters).map(|_| ())
}

struct Exgentic {
    filter: Filter,
    /// Every call is a conversation of its own.
    fixed_schedule: bool,
    /// Tokens that the target takes, where that is given.
    context_limit: Option<u64>,
    found: Mutex<Found>,
    /// Sessions that were kept.
    ids: HashSet<String>,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    seen: Seen,
    /// Sessions that were asked for.
    matched: u64,
    counts: Counts,
}

impl Converter for Exgentic {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(head::COLUMNS.into_iter().chain([session::SPANS]).collect())
    }

    fn chooses_by(&self) -> Option<Vec<&str>> {
        (!self.filter.is_empty()).then(|| head::COLUMNS.to_vec())
    }

    fn chooses(&self, row: &Row) -> Result<bool, Fault> {
        let head = Head::of(&row.value).map_err(|fault| in_row(row, &fault))?;
        let matches = self.filter.matches(&head);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seen.take(&head);
        found.matched += u64::from(matches);
        Ok(matches)
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let head = Head::of(&row.value).map_err(|fault| in_row(row, &fault))?;
        let spans = row.value.get(session::SPANS);
        let (session, counts) = Session::read(&head, spans, self.context_limit)
            .map_err(|fault| in_row(row, &fault.within(format!("session {}", head.session_id))))?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).counts.add(&counts);
        if session.is_empty() {
            return Ok(Made::Skipped("no successful call in the session"));
        }
        let drafts =
            if self.fixed_schedule { session.apart() } else { session.whole().map(|draft| vec![draft]) };
        drafts.map(Made::Conversations).map_err(|fault| in_row(row, &fault))
    }

    fn took(&mut self, row: &Row, made: &Made) -> Result<(), Fault> {
        let Made::Conversations(drafts) = made else { return Ok(()) };
        let Some(id) = drafts.first().and_then(|draft| draft.source_session.as_deref()) else {
            return Ok(());
        };
        if self.ids.insert(id.to_owned()) {
            return Ok(());
        }
        Err(Fault::new(
            format!("{}: session {id} occurs twice", row.place()),
            "Lower --num-conversations so that only the first is read, or tell the publisher",
        ))
    }

    fn notes(&self) -> Vec<String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.counts.lines(self.ids.len())
    }

    fn warnings(&self) -> Vec<String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        self.context_limit.and_then(|limit| found.counts.warning(limit)).into_iter().collect()
    }

    fn nothing(&self) -> Option<Fault> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if self.filter.is_empty() {
            return None;
        }
        let (what, fix) = if found.matched == 0 {
            (found.seen.no_match(&self.filter), "Choose one of these with --dataset-filter")
        } else {
            let what =
                format!("none of the {} session(s) of {} has a successful call", found.matched, self.filter);
            (what, "Choose others with --dataset-filter")
        };
        Some(Fault::new(what, fix))
    }
}

fn in_row(row: &Row, fault: &crate::json::Fault) -> Fault {
    let field = if fault.field.is_empty() { String::new() } else { format!(" {}:", fault.field) };
    Fault::new(
        format!("{}:{field} {}", row.place(), fault.rule),
        "Choose other sessions with --dataset-filter or a lower bound, or tell the publisher",
    )
}
