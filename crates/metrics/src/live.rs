//! Running figures while the run goes on.
