//! What does it mean? From request records to per-request values, and from those to aggregates.
//!
//! The registry ([`registry`]) is the one list of metrics; [`evaluate`] derives the values of one record; the
//! [`store`] keeps a few packed instants and counts per record, from which [`summary`] makes every figure.
