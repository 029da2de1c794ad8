//! Where other hub clients keep what they downloaded.
