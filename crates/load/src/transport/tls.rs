//! TLS for `https` targets: system roots, HTTP/1.1 only, sessions resumed.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// How far certificates are trusted.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Do not verify the server (`AIPERF_HTTP_SSL_VERIFY=0`).
    pub insecure: bool,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There are no roots to verify with.
    #[error(
        "no trusted certificates were found for https ({0}); install the system's CA bundle (package ca-certificates), or set \
         SSL_CERT_FILE to one"
    )]
    NoRoots(String),
    /// The file that was named has no certificates to verify with.
    #[error(
        "SSL_CERT_FILE {file}: {cause}; name a PEM file with certificates, or unset it for those of the system"
    )]
    CertFile {
        /// The file.
        file: String,
        /// Why not.
        cause: String,
    },
    /// The host cannot be the name on a certificate.
    #[error("the host of --url cannot be verified: {0}")]
    Name(String),
    /// The library refused the settings.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// The configuration of all TLS connections of a run.
pub(crate) fn client_config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let mut config = if settings.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(NoVerifier(provider)))
            .with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for certificate in found.certs {
            // A root that does not parse is skipped, as every client does: the others still verify.
            let _ = roots.add(certificate);
        }
        if let Some(file) = std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty()) {
            let before = roots.len();
            let refuse = |cause: String| TlsError::CertFile { file: file.to_string_lossy().into(), cause };
            let found = CertificateDer::pem_file_iter(&file).map_err(|error| refuse(plain(&error)))?;
            for certificate in found.flatten() {
                let _ = roots.add(certificate);
            }
            if roots.len() == before {
                return Err(refuse("it has no certificate that can be used".into()));
            }
        }
        if roots.is_empty() {
            let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            return Err(TlsError::NoRoots(reasons.join("; ")));
        }
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    // HTTP/2 must never be negotiated: multiplexing changes what is measured.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What kept a file from being read, without the name of the file.
fn plain(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Accepts every certificate; signatures are still checked.
#[derive(Debug)]
struct NoVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
