//! Caches on disk.

pub(crate) mod hub;
mod real;
pub(crate) mod remote;
pub(crate) mod times;
