//! The aiperf command line.
fn main() {}
