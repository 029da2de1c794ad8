//! Sources against servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod aws;
mod damaged;
mod documents;
mod faults;
mod hostile;
mod hub;
mod hub_damaged;
mod hub_offline;
mod moto;
mod python;
mod python_datasets;
mod ranges;
mod rules;
mod s3;
mod support;
mod transit;
mod web;
