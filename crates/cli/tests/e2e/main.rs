//! The program from end to end: what it sends, writes, prints and answers to the shell.

mod bad_input;
mod determinism;
mod documents;
mod exit_codes;
mod field_faults;
mod golden;
mod host;
mod interrupts;
mod load_delivery;
mod progress;
mod records;
mod secrets;
mod support;
