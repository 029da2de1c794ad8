//! Pictures and sound as bytes: what generated data is encoded with, and what recorded data is decoded with.

pub(crate) mod mp3;
pub(crate) mod picture;
pub(crate) mod program;
pub(crate) mod recorded;
pub(crate) mod sound;
pub(crate) mod wav;
