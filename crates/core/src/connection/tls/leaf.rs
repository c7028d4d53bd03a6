//! A server's own certificate as its authority.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// What webpki says of an authority's certificate that a server shows as its own. It has checked
/// its dates by then, and its name not yet.
const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// Verifies as `inner` does, and also accepts a server that shows one of `trusted` as its own
/// certificate: `openssl req -x509` makes self-signed certificates that are authorities too, and
/// who names just that one trusts it.
#[derive(Debug)]
pub(super) struct TrustedLeaf {
    pub(super) inner: Arc<dyn ServerCertVerifier>,
    pub(super) trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for TrustedLeaf {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Err(error) if self.trusted.contains(end_entity) => error,
            verdict => return verdict,
        };
        let is_authority = matches!(
            &error,
            Error::InvalidCertificate(CertificateError::Other(other))
                if other.0.to_string() == IS_AUTHORITY
        );
        if !is_authority {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
