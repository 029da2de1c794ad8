//! Transport failures under the names that existing analysis knows.

use std::io;

use aiperf_types::RequestError;

/// Errors of the client's own limits: descriptors, ports, buffers.
pub(crate) fn is_resource_error(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let limits = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| limits.iter().any(|errno| errno.raw_os_error() == code))
}

/// A connection could not be made.
pub(crate) fn connect(host: &str, error: &io::Error) -> RequestError {
    RequestError::new(None, "ClientConnectorError", format!("Cannot connect to host {host}: {error}"))
}

/// A name did not resolve.
pub(crate) fn dns(host: &str, error: &io::Error) -> RequestError {
    RequestError::new(None, "ClientConnectorDNSError", format!("Cannot resolve host {host}: {error}"))
}

/// The TLS handshake failed.
pub(crate) fn tls(host: &str, error: &io::Error) -> RequestError {
    let certificate = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
    let kind = if certificate { "ClientConnectorCertificateError" } else { "ClientConnectorSSLError" };
    RequestError::new(None, kind, format!("Cannot establish TLS with {host}: {error}"))
}

/// The peer closed before any byte of the answer.
pub(crate) fn disconnected() -> RequestError {
    RequestError::new(None, "ServerDisconnectedError", "Server disconnected")
}

/// A socket error in the middle of an exchange.
pub(crate) fn socket(error: &io::Error) -> RequestError {
    RequestError::new(None, "ClientOSError", error.to_string())
}

/// The body of the answer ended early.
pub(crate) fn truncated() -> RequestError {
    RequestError::new(None, "ClientPayloadError", "The connection closed before the answer was complete")
}

/// What came is not an answer.
pub(crate) fn payload(message: impl Into<String>) -> RequestError {
    RequestError::new(None, "ClientPayloadError", message)
}

/// The request took longer than its limit.
pub(crate) fn timeout(seconds: f64) -> RequestError {
    RequestError::new(
        None,
        "TimeoutError",
        format!("No complete answer within {seconds} seconds (--request-timeout-seconds)"),
    )
}

/// The body could not be sent within the limit.
pub(crate) fn send_timeout(seconds: f64) -> RequestError {
    RequestError::new(
        0,
        "RequestSendTimeout",
        format!("The request could not be sent within {seconds} seconds"),
    )
}

/// The cancellation simulator broke the request off.
pub(crate) fn cancelled(delay_sec: f64) -> RequestError {
    RequestError::new(
        499,
        "RequestCancellationError",
        format!("Request cancelled {delay_sec} seconds after it was sent"),
    )
}

/// The client could not build the request.
pub(crate) fn unbuildable(message: &str) -> RequestError {
    RequestError::new(500, "CreditProcessingError", message)
}
