//! The data that a command is named: a path of this machine, or a reference whose files are brought here.

use std::path::{Path, PathBuf};

use aiperf_config::{FileFormat, redact_reference, redact_text};
use aiperf_source::{Ask, Problem, Reference, SourceError};
use serde_json::Value;

use super::{Fetched, Table, VERSION, formats};
use crate::environment::Environment;
use crate::print;

/// Data that can be read from [`Named::path`] for as long as this is held.
#[derive(Debug)]
pub(crate) struct Named {
    path: PathBuf,
    /// The format that was declared, by the person or by the publisher.
    pub(crate) format: Option<FileFormat>,
    /// The publisher's block size.
    pub(crate) block_size: Option<u32>,
    fetched: Option<(String, Fetched)>,
}

impl Named {
    /// Brings what `text` names. Progress, and which version was taken, are told on stderr.
    pub(crate) fn bring(
        text: &str,
        declared: Option<FileFormat>,
        environment: &Environment,
    ) -> Result<Named, SourceError> {
        let Some(reference) = super::reference(text) else {
            return Ok(Named { path: text.into(), format: declared, block_size: None, fetched: None });
        };
        Named::fetch(&reference?, declared, environment)
    }

    fn fetch(
        reference: &Reference,
        declared: Option<FileFormat>,
        environment: &Environment,
    ) -> Result<Named, SourceError> {
        let shown = reference.redacted();
        let about = |problem: Problem| problem.about(shown.clone());
        let (sources, _signals) = super::sources(environment).map_err(about)?;
        let plan = sources.access(
            reference,
            &Ask {
                format: declared.map(FileFormat::name),
                endpoint_type: None,
                has_stop: true,
                max_context_length: None,
                formats: &Table,
                own_version: VERSION,
            },
        )?;
        let fetched = super::fetch(&sources, &plan)?;
        for line in fetched.provenance.lines() {
            print::err(&format!("info: {}\n", redact_text(&line)));
        }
        Ok(Named {
            path: fetched.view.path().to_owned(),
            format: declared.or_else(|| plan.format.and_then(formats::of_name)),
            block_size: plan.block_size.and_then(|size| u32::try_from(size).ok()),
            fetched: Some((plan.place(), fetched)),
        })
    }

    /// What a loader reads.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What of this machine is gone with this value.
    pub(crate) fn leftover(&self) -> Option<PathBuf> {
        let (_, fetched) = self.fetched.as_ref()?;
        fetched.view.directory().map(Path::to_owned)
    }

    /// A message about the data, naming them as the person did instead of by the place that they were brought to.
    pub(crate) fn told(&self, message: &str) -> String {
        let path = self.path.to_string_lossy();
        if let Some((shown, _)) = &self.fetched {
            return message.replace(&*path, shown);
        }
        // What is no reference may be one that is mistyped.
        message.replace(&*path, &redact_reference(&path))
    }

    /// Which bytes were read, for reports: nothing where they were here all along.
    pub(crate) fn provenance(&self, found: Option<FileFormat>) -> Option<Value> {
        let (_, fetched) = self.fetched.as_ref()?;
        let mut provenance = fetched.provenance.clone();
        if let Some(found) = found {
            provenance.detected(found.name());
        }
        Some(provenance.json())
    }
}
