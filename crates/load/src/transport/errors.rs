//! Transport failures under the names that existing analysis knows.

use std::io;

use aiperf_types::RequestError;

/// Errors of the client's own limits: descriptors, ports, buffers.
pub(crate) fn is_resource_error(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let limits = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| limits.iter().any(|errno| errno.raw_os_error() == code))
}

/// A connection could not be made to a peer, which is named with what it is: `host h:1`.
pub(crate) fn connect(peer: &str, error: &io::Error) -> RequestError {
    RequestError::new(None, "ClientConnectorError", format!("Cannot connect to {peer}: {error}"))
}

/// The name of a peer did not resolve.
pub(crate) fn dns(peer: &str, error: &io::Error) -> RequestError {
    RequestError::new(None, "ClientConnectorDNSError", format!("Cannot resolve {peer}: {error}"))
}

/// The TLS handshake failed.
pub(crate) fn tls(host: &str, error: &io::Error) -> RequestError {
    let certificate = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
    let cause = error.to_string();
    let plain = cause.contains("InvalidContentType");
    // Mostly made with one command for a server of one's own.
    let cause = if certificate && cause.contains("CaUsedAsEndEntity") {
        "invalid peer certificate: it is that of an authority, used as a server's own (self-signed); make it with `openssl \
         req -x509 -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:NAME …`, and name it in \
         SSL_CERT_FILE"
            .to_owned()
    } else {
        cause
    };
    let (kind, hint) = match (certificate, plain) {
        (true, _) => {
            ("ClientConnectorCertificateError", " (AIPERF_HTTP_SSL_VERIFY=0 accepts any certificate)")
        }
        (_, true) => {
            ("ClientConnectorSSLError", " (if the server speaks no TLS, the URL begins with http://)")
        }
        _ => ("ClientConnectorSSLError", ""),
    };
    RequestError::new(None, kind, format!("Cannot establish TLS with {host}: {cause}{hint}"))
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

/// The TLS handshake took longer than the request may.
pub(crate) fn tls_timeout(host: &str, seconds: f64) -> RequestError {
    RequestError::new(
        None,
        "TimeoutError",
        format!(
            "The TLS handshake with {host} did not end within {seconds} seconds (--request-timeout-seconds; if the server \
             speaks no TLS, the URL begins with http://)"
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_the_names_that_existing_analysis_knows() {
        let refused = io::Error::from_raw_os_error(111);
        let expected = [
            (connect("host h:1", &refused), None, "ClientConnectorError"),
            (dns("host h", &refused), None, "ClientConnectorDNSError"),
            (tls("h:1", &refused), None, "ClientConnectorSSLError"),
            (disconnected(), None, "ServerDisconnectedError"),
            (socket(&refused), None, "ClientOSError"),
            (truncated(), None, "ClientPayloadError"),
            (payload("x"), None, "ClientPayloadError"),
            (timeout(0.5), None, "TimeoutError"),
            (tls_timeout("h:1", 0.5), None, "TimeoutError"),
            (send_timeout(0.5), Some(0), "RequestSendTimeout"),
            (cancelled(0.5), Some(499), "RequestCancellationError"),
            (unbuildable("x"), Some(500), "CreditProcessingError"),
        ];
        for (error, code, kind) in expected {
            assert_eq!((error.code, error.kind.as_str()), (code, kind));
        }
        assert_eq!(
            connect("host h:1", &refused).message,
            "Cannot connect to host h:1: Connection refused (os error 111)"
        );
    }

    #[test]
    fn only_a_bad_certificate_is_a_certificate_error() {
        let of = |error: rustls::Error| tls("h", &io::Error::new(io::ErrorKind::InvalidData, error)).kind;
        let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert_eq!(of(bad), "ClientConnectorCertificateError");
        assert_eq!(of(rustls::Error::HandshakeNotComplete), "ClientConnectorSSLError");
    }

    #[test]
    fn a_self_signed_certificate_is_called_that() {
        /// As the library that checks certificates calls it.
        #[derive(Debug)]
        struct CaUsedAsEndEntity;
        impl std::fmt::Display for CaUsedAsEndEntity {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self, f)
            }
        }
        impl std::error::Error for CaUsedAsEndEntity {}
        let other = rustls::OtherError(std::sync::Arc::new(CaUsedAsEndEntity));
        let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other));
        let error = tls("h:1", &io::Error::new(io::ErrorKind::InvalidData, bad));
        assert_eq!(error.kind, "ClientConnectorCertificateError");
        assert_eq!(
            error.message,
            "Cannot establish TLS with h:1: invalid peer certificate: it is that of an authority, used as a server's own \
             (self-signed); make it with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE -addext \
             subjectAltName=DNS:NAME …`, and name it in SSL_CERT_FILE (AIPERF_HTTP_SSL_VERIFY=0 accepts any certificate)"
        );
    }

    #[test]
    fn limits_of_the_client_are_told_from_faults_of_the_server() {
        use rustix::io::Errno;
        let is_ours = |errno: Errno| is_resource_error(&errno.into());
        assert!([Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS].into_iter().all(is_ours));
        assert!(![Errno::CONNREFUSED, Errno::CONNRESET, Errno::PIPE].into_iter().any(is_ours));
    }
}
