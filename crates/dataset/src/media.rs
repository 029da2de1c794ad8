//! Pictures and sound as bytes: what generated data is encoded with, and what recorded data is decoded with.

pub(crate) mod picture;
