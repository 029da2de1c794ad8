//! Caches on disk.

pub(crate) mod hub;
pub(crate) mod remote;
