//! TLS over rustls with ring.

mod leaf;

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme,
    SupportedCipherSuite,
};
use rustls_platform_verifier::Verifier;

use leaf::TrustedLeaf;

use super::config::{ProtocolChoice, TlsOptions};
use super::origin::Origin;
use crate::{Error, ErrorKind, Result};

/// The ALPN name of HTTP/2 (RFC 9113, section 3.1).
pub(super) const ALPN_HTTP2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1 (RFC 7301, section 6).
const ALPN_HTTP11: &[u8] = b"http/1.1";

/// ring's ciphers, those with AES-128 first, as browsers have it: AES-256 costs a third more CPU time,
/// and nothing that is in reach breaks either.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_costlier =
        |suite: &SupportedCipherSuite| format!("{:?}", suite.suite()).contains("AES_256");
    provider.cipher_suites.sort_by_key(is_costlier);
    provider
}

/// Builds the configuration that all TLS connections of a run share, and with it their sessions.
///
/// # Errors
/// `Usage` for a file that cannot be read or is not what it should be; `Tls` when the platform has
/// no trusted authorities.
pub(super) fn client_config(
    options: &TlsOptions,
    protocol: ProtocolChoice,
) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(provider());
    let broken = |error: rustls::Error| {
        Error::new(ErrorKind::Tls, "TLS cannot be set up").with_source(error)
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(broken)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, provider)?);
    let mut config = match &options.client_certificate {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let private_key =
                PrivateKeyDer::from_pem_file(key).map_err(|e| unusable(key, "private key", e))?;
            builder
                .with_client_auth_cert(certificates(chain)?, private_key)
                .map_err(|e| unusable(chain, "certificate for that key", e))?
        }
    };
    config.alpn_protocols = match protocol {
        ProtocolChoice::Auto => vec![ALPN_HTTP2.to_vec(), ALPN_HTTP11.to_vec()],
        ProtocolChoice::Http1 => vec![ALPN_HTTP11.to_vec()],
        ProtocolChoice::Http2 | ProtocolChoice::Http2PriorKnowledge => vec![ALPN_HTTP2.to_vec()],
    };
    Ok(Arc::new(config))
}

/// The same as `config`, and HTTP/1.1 is all that is offered.
pub(super) fn for_http1(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.alpn_protocols = vec![ALPN_HTTP11.to_vec()];
    Arc::new(config)
}

/// What a failed handshake with `origin` means, and what to do.
pub(super) fn handshake_failure(origin: &Origin, error: io::Error) -> Error {
    let (kind, why) = match cause(&error) {
        Some(cause) => (ErrorKind::Tls, explain(cause)),
        None => (ErrorKind::Connect, "the connection ended during the TLS handshake"),
    };
    let failure = Error::new(kind, format!("{origin}: {why}"));
    // What nobody has foreseen has a name for programmers alone.
    let is_unforeseen = matches!(
        cause(&error),
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
    );
    if is_unforeseen { failure } else { failure.with_source(error) }
}

/// The TLS failure behind an I/O error of a TLS stream.
pub(super) fn cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// What a TLS failure means, and what to do.
pub(super) fn explain(error: &rustls::Error) -> &'static str {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } => {
                "its certificate has expired (is this machine's clock right?)"
            }
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
                "its certificate is not valid yet (is this machine's clock right?)"
            }
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                "its certificate is for another name: use the host that it names"
            }
            Bad::UnknownIssuer => {
                "its certificate is from an unknown authority: name that authority's file with \
                 `cacert` if you trust it"
            }
            Bad::Revoked => "its certificate was revoked: ask who runs the server",
            _ => {
                "its certificate is not acceptable (it may have signed that itself): if you trust just this one, \
                 give it with `cacert`"
            }
        },
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS on this port: was http:// meant?"
        }
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "it does not offer the HTTP version that was asked for"
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it wants a client certificate: give one with `cert` and `key`"
        }
        _ => "TLS failed",
    }
}

fn verifier(
    options: &TlsOptions,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    if options.insecure {
        return Ok(Arc::new(AcceptAny(provider)));
    }
    let extra = match &options.extra_ca {
        Some(path) => certificates(path)?,
        None => Vec::new(),
    };
    let inner = platform_verifier(extra.clone(), provider)?;
    Ok(if extra.is_empty() { inner } else { Arc::new(TrustedLeaf { inner, trusted: extra }) })
}

#[cfg(not(target_os = "android"))]
fn platform_verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    let verifier = Verifier::new_with_extra_roots(extra, provider).map_err(|error| {
        let message = "no trusted authorities: install the platform's CA certificates or name a \
                       file with `cacert`";
        Error::new(ErrorKind::Tls, message).with_source(error)
    })?;
    Ok(Arc::new(verifier))
}

/// The platform's verifier needs its Kotlin part there; the authorities of the file stand alone.
#[cfg(target_os = "android")]
fn platform_verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Tls, "TLS cannot be set up").with_source(error)
    };
    if extra.is_empty() {
        return Ok(Arc::new(Verifier::new(provider).map_err(|error| failed(error.into()))?));
    }
    let mut roots = rustls::RootCertStore::empty();
    for certificate in extra {
        roots.add(certificate).map_err(|error| failed(error.into()))?;
    }
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| failed(error.into()))?;
    Ok(verifier)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(path, "certificate", error))?;
    if certificates.is_empty() {
        let message = format!("{}: holds no certificate in PEM form", path.display());
        return Err(Error::new(ErrorKind::Usage, message));
    }
    Ok(certificates)
}

fn unusable(
    path: &Path,
    what: &str,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    let message = format!("{}: holds no usable {what} in PEM form", path.display());
    Error::new(ErrorKind::Usage, message).with_source(error)
}

/// Accepts every certificate: `--insecure`. Signatures are still checked, so that the peer is the
/// holder of the certificate that it shows.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
