//! Sockets: names to addresses, connections and their pool, one exchange on the wire and its stamps.

pub(crate) mod connection;
pub(crate) mod dial;
pub(crate) mod errors;
pub(crate) mod exchange;
pub(crate) mod pool;
pub(crate) mod proxy;
mod question;
mod request;
pub(crate) mod response;
pub(crate) mod tls;

pub use dial::{Origin, Resolver, SocketOptions};
pub use question::Question;
pub use request::{AffinityHeaders, HeadFields, HeadTemplate};
pub use tls::{TlsError, TlsSettings};
