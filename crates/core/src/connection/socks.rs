//! SOCKS version 5 (RFC 1928) with user name and password (RFC 1929).

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::lookup_host;

use super::origin::Origin;
use crate::{Error, ErrorKind, Result};

const VERSION: u8 = 5;
/// "X'00' NO AUTHENTICATION REQUIRED" (RFC 1928, section 3).
const NO_AUTHENTICATION: u8 = 0;
/// "X'02' USERNAME/PASSWORD".
const USER_AND_PASSWORD: u8 = 2;
/// The version of the negotiation of RFC 1929.
const PASSWORD_VERSION: u8 = 1;
const COMMAND_CONNECT: u8 = 1;
const ADDRESS_IPV4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_IPV6: u8 = 4;

/// Asks the SOCKS proxy at the other end of `stream` for a connection to `origin`. With `resolves`
/// the proxy looks the name up.
///
/// # Errors
/// `Auth` when the proxy does not accept `user`; `Resolve` for a name without address; `Connect`
/// when it cannot connect or hangs up; `Protocol` when it does not speak SOCKS 5.
pub(super) async fn connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    user: Option<&(String, String)>,
    resolves: bool,
) -> Result<()> {
    let address = address(origin, resolves).await?;
    let lost = |error: io::Error| {
        let message = format!("{origin}: the SOCKS proxy ended the connection");
        Error::new(ErrorKind::Connect, message).with_source(error)
    };
    match negotiate(stream, user).await.map_err(lost)? {
        Negotiated::Accepted => {}
        Negotiated::NotSocks => return Err(not_socks(origin)),
        Negotiated::Refused => {
            let message = format!(
                "{origin}: the SOCKS proxy wants another user name and password: give them in its URL"
            );
            return Err(Error::new(ErrorKind::Auth, message));
        }
    }
    let mut request = vec![VERSION, COMMAND_CONNECT, 0];
    request.extend(address);
    request.extend(origin.port.to_be_bytes());
    stream.write_all(&request).await.map_err(lost)?;
    stream.flush().await.map_err(lost)?;
    match reply(stream).await.map_err(lost)? {
        Some(0) => Ok(()),
        Some(code) => {
            let message = format!("{origin}: the SOCKS proxy cannot connect: {}", refusal(code));
            Err(Error::new(ErrorKind::Connect, message))
        }
        None => Err(not_socks(origin)),
    }
}

enum Negotiated {
    Accepted,
    Refused,
    NotSocks,
}

/// The method negotiation of RFC 1928, section 3, and RFC 1929 where the proxy wants it.
async fn negotiate(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    user: Option<&(String, String)>,
) -> io::Result<Negotiated> {
    let greeting: &[u8] = match user {
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD],
        None => &[VERSION, 1, NO_AUTHENTICATION],
    };
    stream.write_all(greeting).await?;
    stream.flush().await?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await?;
    match (chosen, user) {
        ([VERSION, NO_AUTHENTICATION], _) => return Ok(Negotiated::Accepted),
        ([VERSION, USER_AND_PASSWORD], Some((user, password))) => {
            let mut message = vec![PASSWORD_VERSION];
            for field in [user, password] {
                let Ok(length) = u8::try_from(field.len()) else { return Ok(Negotiated::Refused) };
                message.push(length);
                message.extend_from_slice(field.as_bytes());
            }
            stream.write_all(&message).await?;
            stream.flush().await?;
        }
        ([VERSION, _], _) => return Ok(Negotiated::Refused),
        _ => return Ok(Negotiated::NotSocks),
    }
    let mut verdict = [0; 2];
    stream.read_exact(&mut verdict).await?;
    // "If the server returns a `failure' (STATUS value other than X'00') status, it MUST close the
    // connection" (RFC 1929, section 2).
    Ok(if verdict[1] == 0 { Negotiated::Accepted } else { Negotiated::Refused })
}

/// Reads a reply (RFC 1928, section 6) up to its end and returns its code; `None` when it is none.
async fn reply(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, code, _, kind] = head;
    if version != VERSION {
        return Ok(None);
    }
    if code != 0 {
        return Ok(Some(code));
    }
    let length = match kind {
        ADDRESS_IPV4 => 4,
        ADDRESS_IPV6 => 16,
        ADDRESS_NAME => usize::from(stream.read_u8().await?),
        _ => return Ok(None),
    };
    let mut bound = vec![0; length + 2];
    stream.read_exact(&mut bound).await?;
    Ok(Some(0))
}

/// The address type and address of a request (RFC 1928, section 5).
async fn address(origin: &Origin, resolves: bool) -> Result<Vec<u8>> {
    let host: &str = &origin.host;
    let unresolved = || Error::new(ErrorKind::Resolve, format!("{host}: cannot be resolved"));
    let ip = match host.parse::<IpAddr>() {
        Ok(ip) => Some(ip),
        Err(_) if resolves => None,
        Err(_) => {
            let mut found =
                lookup_host((host, origin.port)).await.map_err(|e| unresolved().with_source(e))?;
            Some(found.next().ok_or_else(unresolved)?.ip())
        }
    };
    let mut bytes = Vec::with_capacity(2 + host.len());
    match ip {
        Some(IpAddr::V4(ip)) => {
            bytes.push(ADDRESS_IPV4);
            bytes.extend(ip.octets());
        }
        Some(IpAddr::V6(ip)) => {
            bytes.push(ADDRESS_IPV6);
            bytes.extend(ip.octets());
        }
        None => {
            bytes.push(ADDRESS_NAME);
            bytes.push(u8::try_from(host.len()).map_err(|_| unresolved())?);
            bytes.extend_from_slice(host.as_bytes());
        }
    }
    Ok(bytes)
}

fn not_socks(origin: &Origin) -> Error {
    let message = format!("{origin}: the proxy does not speak SOCKS 5: is its port right?");
    Error::new(ErrorKind::Protocol, message)
}

/// The reply codes of RFC 1928, section 6.
fn refusal(code: u8) -> &'static str {
    match code {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "it does not know the command",
        8 => "it does not know this kind of address",
        _ => "unknown failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    /// Lets the proxy say `says` and returns what it heard, and the outcome.
    async fn talk(
        url: &str,
        user: Option<(&str, &str)>,
        says: &[u8],
    ) -> (Vec<u8>, Result<(), ErrorKind>) {
        let origin = Origin::of(&Url::parse(url).unwrap()).unwrap();
        let (mut ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(says).await.unwrap();
        theirs.shutdown().await.unwrap();
        let user = user.map(|(user, password)| (user.to_owned(), password.to_owned()));
        let outcome = connect(&mut ours, &origin, user.as_ref(), true).await;
        drop(ours);
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).await.unwrap();
        (heard, outcome.map_err(|error| error.kind()))
    }

    #[tokio::test]
    async fn names_and_addresses_are_sent_as_the_rfc_says() {
        let accepted = [5, 0, 5, 0, 0, 3, 1, b'x', 0, 1];
        let (heard, outcome) = talk("http://ab.test:258/", None, &accepted).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(heard, *b"\x05\x01\x00\x05\x01\x00\x03\x07ab.test\x01\x02");

        let accepted = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let (heard, outcome) = talk("http://1.2.3.4/", None, &accepted).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(heard, [5, 1, 0, 5, 1, 0, 1, 1, 2, 3, 4, 0, 80]);

        let (heard, _) = talk("https://[::1]/", None, &accepted).await;
        assert_eq!(heard[3..7], [5, 1, 0, 4]);
        assert_eq!(heard[22..], [1, 1, 187]);
    }

    #[tokio::test]
    async fn user_and_password_are_sent_when_wanted() {
        let accepted = [5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let (heard, outcome) = talk("http://1.2.3.4/", Some(("me", "pw")), &accepted).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(heard[..11], *b"\x05\x02\x00\x02\x01\x02me\x02pw");
        let (_, outcome) = talk("http://1.2.3.4/", Some(("me", "pw")), &[5, 2, 1, 1]).await;
        assert_eq!(outcome, Err(ErrorKind::Auth));
        for says in [[5, 2], [5, 255]] {
            let (_, outcome) = talk("http://1.2.3.4/", None, &says).await;
            assert_eq!(outcome, Err(ErrorKind::Auth));
        }
    }

    #[tokio::test]
    async fn failures_are_told_apart() {
        let (_, outcome) = talk("http://1.2.3.4/", None, &[5, 0, 5, 5, 0, 1]).await;
        assert_eq!(outcome, Err(ErrorKind::Connect));
        let (_, outcome) = talk("http://1.2.3.4/", None, b"HTTP/1.1 400").await;
        assert_eq!(outcome, Err(ErrorKind::Protocol));
        let (_, outcome) = talk("http://1.2.3.4/", None, &[5, 0, 5, 0]).await;
        assert_eq!(outcome, Err(ErrorKind::Connect));
        let (_, outcome) = talk("http://1.2.3.4/", None, &[5, 0, 5, 0, 0, 9]).await;
        assert_eq!(outcome, Err(ErrorKind::Protocol));
    }
}
