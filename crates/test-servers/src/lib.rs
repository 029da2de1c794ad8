//! Servers that tests start: small, on loopback, with a log of what they were asked.

#![expect(clippy::expect_used, reason = "a test server that cannot start fails its test")]
#![expect(clippy::missing_panics_doc, reason = "it panics where a test should fail")]

pub mod http;
pub mod hub;
pub mod moto;
pub mod nginx;
pub mod python;
pub mod rows;
pub mod s3;
pub mod sign_on;

pub use http::{Answer, Request, Server};
pub use hub::{StubFile, StubHub, StubRepo};
pub use moto::Moto;
pub use nginx::Nginx;
pub use python::venv;
pub use s3::StubStore;
