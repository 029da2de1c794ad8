//! TLS under a connection, without I/O of its own.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::settings::TlsFiles;

/// Why https cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is missing or not PEM.
    #[error("{} is no readable PEM file of a {what}: {cause}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was expected in it.
        what: &'static str,
        /// What went wrong.
        cause: String,
    },
    /// Certificate and key do not go together, or the key is of an unknown kind.
    #[error("the certificate and key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

/// Reads certificate and key.
pub(crate) fn configure(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let pem = |path: &Path, what| {
        let path = path.to_owned();
        move |error: rustls::pki_types::pem::Error| TlsError::Pem { path, what, cause: error.to_string() }
    };
    let bad_certificate = || pem(&files.certificate, "certificate");
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(bad_certificate())?;
    if chain.is_empty() {
        return Err(bad_certificate()(rustls::pki_types::pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(pem(&files.key, "private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The TLS state of one connection.
#[derive(Debug)]
pub(crate) struct Session(ServerConnection);

impl Session {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> Result<Session, rustls::Error> {
        ServerConnection::new(Arc::clone(config)).map(Session)
    }

    /// Takes `wire` bytes, appends what they say to `plain` and what the protocol answers to `reply`.
    pub(crate) fn open(
        &mut self,
        mut wire: &[u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<(), rustls::Error> {
        while !wire.is_empty() {
            // Reading from a slice fails only when rustls's buffers are full, and they are emptied below.
            if self.0.read_tls(&mut wire).is_err() {
                return Err(rustls::Error::General("the TLS buffer is full".to_owned()));
            }
            let processed = self.0.process_new_packets();
            self.drain(reply);
            let state = processed?;
            let had = plain.len();
            plain.resize(had + state.plaintext_bytes_to_read(), 0);
            let read = self.0.reader().read(&mut plain[had..]).unwrap_or(0);
            plain.truncate(had + read);
        }
        Ok(())
    }

    /// Appends the records of `plain` to `wire`.
    pub(crate) fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), std::io::Error> {
        let mut left = plain;
        while !left.is_empty() {
            let taken = self.0.writer().write(left)?;
            left = &left[taken..];
            self.drain(wire);
        }
        Ok(())
    }

    /// Appends the record that announces the end.
    pub(crate) fn close(&mut self, wire: &mut Vec<u8>) {
        self.0.send_close_notify();
        self.drain(wire);
    }

    fn drain(&mut self, wire: &mut Vec<u8>) {
        while self.0.wants_write() {
            // Writing to a Vec cannot fail.
            if self.0.write_tls(wire).is_err() {
                break;
            }
        }
    }
}
