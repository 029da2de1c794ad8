//! Caches on disk.

pub(crate) mod hub;
