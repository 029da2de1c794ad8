//! Whose certificates are good, and what to do about one that is not.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use rustls::CertificateError;

/// The variable that puts other roots in the place of the system's.
const ROOTS: &str = "SSL_CERT_FILE";

/// The system's roots, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` in their place.
pub(super) fn tls() -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
    Ok(config)
}

/// What went wrong with TLS.
pub(super) fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = error.source();
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls);
        }
        // What an I/O error wraps is no source of it.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

/// What is wrong with a certificate in words, and the next step; `cause` is what the library says.
pub(super) fn explained(fault: &CertificateError, cause: String) -> (String, String) {
    // The library has no variant for it, and wraps that of the one below.
    if cause.contains("CaUsedAsEndEntity") {
        return (
            "invalid peer certificate: it is that of a certificate authority, such as one that is signed by itself"
                .into(),
            "Give the server a certificate of its own that is no authority's (basicConstraints CA:FALSE), and name the \
             file of its issuer in SSL_CERT_FILE"
                .into(),
        );
    }
    let fix = match fault {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "Check the clock of this machine; where it is right, the server needs another certificate".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "Check the host name, and whether a proxy answers in the place of the server".into()
        }
        _ => unknown_issuer(std::env::var(ROOTS).ok().filter(|file| !file.is_empty()).as_deref()),
    };
    (cause, fix)
}

/// The way to trust another issuer, where `file` is what `SSL_CERT_FILE` names.
fn unknown_issuer(file: Option<&str>) -> String {
    let Some(file) = file else {
        return "Install the CA certificates of the system (package ca-certificates), or name a file that has the one \
                of its issuer in SSL_CERT_FILE, which takes their place"
            .into();
    };
    let found = rustls_native_certs::load_certs_from_paths(Some(Path::new(file)), None);
    match (found.certs.len(), found.errors.first()) {
        (0, Some(error)) => format!("Correct SSL_CERT_FILE, which is {file} and cannot be read: {error}"),
        (0, None) => format!("Correct SSL_CERT_FILE: {file} has no certificate in PEM"),
        (count, _) => format!(
            "Add the certificate of its issuer to {file}, which SSL_CERT_FILE names in the place of the system's: it \
             is none of the {count} in it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_that_is_not_known_names_what_takes_the_place_of_the_system() {
        assert!(unknown_issuer(None).contains("in SSL_CERT_FILE"));
        let missing = unknown_issuer(Some("/none/ca.pem"));
        assert!(missing.contains("SSL_CERT_FILE, which is /none/ca.pem and cannot be read: "), "{missing}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no certificate\n").unwrap();
        let empty = unknown_issuer(file.path().to_str());
        assert!(
            empty.starts_with("Correct SSL_CERT_FILE") && empty.contains("no certificate in PEM"),
            "{empty}"
        );
    }

    #[test]
    fn a_certificate_that_is_signed_by_itself_is_told_in_words() {
        let cause = "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))".to_owned();
        let (cause, fix) = explained(&CertificateError::UnknownIssuer, cause);
        assert!(cause.contains("signed by itself") && !cause.contains("OtherError"), "{cause}");
        assert!(fix.contains("CA:FALSE") && fix.contains("SSL_CERT_FILE"), "{fix}");
    }
}
