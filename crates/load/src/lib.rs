//! When does it leave, on which socket, and when did each byte come back?
//!
//! [`schedule`] decides what leaves when, as a pure state machine; the rest of the crate carries it out.

pub mod schedule;
