//! The heads of requests and responses.

use std::borrow::Cow;
use std::io;

use bytes::{Buf, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};

/// The longest head that is taken: servers limit theirs to less.
pub(in crate::connection) const LONGEST_HEAD: usize = 64 * 1024;
/// Most fields of a head.
const MOST_FIELDS: usize = 512;

/// How a TLS server begins that takes a request for a handshake: with an alert, or with a handshake of
/// its own (RFC 8446, section 5.1).
const TLS_RECORDS: [&[u8]; 2] = [&[0x15, 0x03], &[0x16, 0x03]];

/// What a server sent is no HTTP.
pub(super) fn malformed(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The head of `request` as it goes over the wire.
pub(super) fn written<T>(request: &Request<T>) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
    for (name, value) in request.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Takes the head of a response from the beginning of `buffer`. `None` while it is incomplete.
pub(super) fn read(buffer: &mut BytesMut) -> io::Result<Option<Response<()>>> {
    if TLS_RECORDS.iter().any(|record| buffer.starts_with(record)) {
        return Err(malformed("it speaks TLS on this port: was https:// meant?"));
    }
    if begins_http2(buffer) {
        return Err(malformed(
            "it answers with HTTP/2 what was asked over HTTP/1.1: if it speaks that without TLS, ask with \
             `http2-prior-knowledge`",
        ));
    }
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    // RFC 9112, section 5.1: to be removed from a response.
    config.allow_spaces_after_header_name_in_responses(true);
    let read = config.parse_response(&mut parsed, buffer).map_err(malformed)?;
    let httparse::Status::Complete(length) = read else {
        return match buffer.len() {
            ..LONGEST_HEAD => Ok(None),
            _ => Err(malformed("the head of the response is longer than 64 KiB")),
        };
    };
    let mut response = Response::new(());
    let status = parsed.code.unwrap_or_default();
    *response.status_mut() = StatusCode::from_u16(status).map_err(malformed)?;
    if parsed.version == Some(0) {
        *response.version_mut() = Version::HTTP_10;
    }
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(malformed)?;
        let value = HeaderValue::from_bytes(&unfolded(field.value)).map_err(malformed)?;
        response.headers_mut().append(name, value);
    }
    buffer.advance(length);
    Ok(Some(response))
}

/// Whether `answer` begins with the frame that a server of HTTP/2 sends first: its settings, of the
/// connection as a whole and no acknowledgement (RFC 9113, sections 3.4, 4.1 and 6.5).
const fn begins_http2(answer: &[u8]) -> bool {
    matches!(answer, [_, _, _, 4, 0, 0, 0, 0, 0, ..])
}

/// A value that goes over several lines, as one (RFC 9112, section 5.2).
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    if !value.iter().any(is_break) {
        return Cow::Borrowed(value);
    }
    value.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect()
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// After as many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// How the body of `response` ends (RFC 9112, section 6.3).
pub(super) fn framing(method: &Method, response: &Response<()>) -> io::Result<Framing> {
    let (status, headers) = (response.status(), response.headers());
    let is_empty = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    if method == Method::HEAD || is_empty {
        return Ok(Framing::Length(0));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        let codings = || options(headers, &TRANSFER_ENCODING).filter(|coding| !coding.is_empty());
        return match (codings().next(), codings().nth(1)) {
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            _ => Err(malformed("a transfer coding that was not asked for")),
        };
    }
    let mut lengths = options(headers, &CONTENT_LENGTH).map(decimal);
    match lengths.next() {
        None => Ok(Framing::UntilClose),
        Some(Some(length)) if lengths.all(|other| other == Some(length)) => {
            Ok(Framing::Length(length))
        }
        Some(_) => Err(malformed("Content-Length is no length")),
    }
}

/// Whether the connection takes another request after `response` (RFC 9112, section 9.3).
pub(super) fn stays_open(response: &Response<()>) -> bool {
    let headers = response.headers();
    let says =
        |what: &[u8]| options(headers, &CONNECTION).any(|option| option.eq_ignore_ascii_case(what));
    // A message with both framings may be read otherwise by who is in between (section 6.1).
    let is_ambiguous =
        headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH);
    match response.version() {
        Version::HTTP_10 => says(b"keep-alive") && !headers.contains_key(TRANSFER_ENCODING),
        _ => !says(b"close") && !is_ambiguous,
    }
}

/// The members of a list field, over all its lines (RFC 9110, section 5.6.1).
fn options<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

/// Digits alone: Rust's own parser takes a sign.
fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response(head: &str) -> Response<()> {
        let mut buffer = BytesMut::from(head.as_bytes());
        read(&mut buffer).unwrap().expect("a whole head")
    }

    fn framing_of(fields: &str) -> Result<Framing, String> {
        let response = response(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
        framing(&Method::GET, &response).map_err(|error| error.to_string())
    }

    #[test]
    fn a_head_is_taken_and_the_body_left() {
        let mut buffer = BytesMut::from("HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\n\r\nbody");
        let response = read(&mut buffer).unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(response.headers()["etag"], "\"a\"");
        assert_eq!(&buffer[..], b"body");
    }

    #[test]
    fn an_incomplete_head_is_waited_for_and_an_endless_one_is_refused() {
        let mut buffer = BytesMut::from("HTTP/1.1 200 OK\r\nServer: ");
        assert!(read(&mut buffer).unwrap().is_none());
        buffer.extend_from_slice(&vec![b'x'; LONGEST_HEAD]);
        assert!(read(&mut buffer).is_err());
    }

    #[test]
    fn spaces_before_a_colon_are_removed() {
        let answer = response("HTTP/1.1 200 OK\r\nX-Name : abc\r\nContent-Length : 5\r\n\r\n");
        assert_eq!(answer.headers()["x-name"], "abc");
        assert_eq!(framing(&Method::GET, &answer).unwrap(), Framing::Length(5));
    }

    #[test]
    fn a_folded_field_is_one_line() {
        let answer = response("HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\nContent-Length: 5\r\n\r\n");
        let value = answer.headers()["x-long"].to_str().unwrap();
        assert_eq!(value.split_whitespace().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(framing(&Method::GET, &answer).unwrap(), Framing::Length(5));
    }

    #[test]
    fn many_fields_are_taken() {
        let fields = "X-Many: 1\r\n".repeat(300);
        assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).headers().len(), 300);
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for garbage in ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 2xx OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n"]
        {
            assert!(read(&mut BytesMut::from(garbage)).is_err(), "{garbage}");
        }
    }

    #[test]
    fn other_protocols_are_told_by_how_they_begin() {
        let refusal = |answer: &[u8]| read(&mut BytesMut::from(answer)).unwrap_err().to_string();
        // An alert and a ServerHello as OpenSSL begins them.
        for answer in [b"\x15\x03\x03\x00\x02\x02\x46", b"\x16\x03\x03\x00\x7a\x02\x00"] {
            assert!(refusal(answer).contains("https://"));
        }
        let settings = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64";
        for answer in [&settings[..], b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"] {
            assert!(refusal(answer).contains("`http2-prior-knowledge`"));
        }
        for answer in [&b"\x00\x00\x06\x04\x01\x00\x00\x00\x00"[..], b"\x15\x02", b"220 ready\r\n"]
        {
            let refusal = refusal(answer);
            assert!(!refusal.contains("https://") && !refusal.contains("http2"), "{refusal}");
        }
    }

    #[test]
    fn framings() {
        assert_eq!(framing_of("Content-Length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing_of("Content-Length: 5, 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(framing_of("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
        assert_eq!(framing_of("Transfer-Encoding: ,chunked\r\n"), Ok(Framing::Chunked));
        assert_eq!(framing_of(""), Ok(Framing::UntilClose));
        for wrong in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
        ] {
            assert!(framing_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_head_alone_has_no_body() {
        let answer = response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(framing(&Method::HEAD, &answer).unwrap(), Framing::Length(0));
        let answer = response("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(framing(&Method::GET, &answer).unwrap(), Framing::Length(0));
    }

    #[test]
    fn connections_that_stay_open() {
        assert!(stays_open(&response("HTTP/1.1 200 OK\r\n\r\n")));
        assert!(stays_open(&response("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n")));
        for closing in [
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(!stays_open(&response(closing)), "{closing}");
        }
    }

    #[test]
    fn a_request_is_written() {
        let request = Request::get("/a?b").header("host", "h").header("range", "bytes=0-").body(());
        let expected = b"GET /a?b HTTP/1.1\r\nhost: h\r\nrange: bytes=0-\r\n\r\n";
        assert_eq!(written(&request.unwrap()), expected);
    }

    proptest! {
        #[test]
        fn no_head_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), tail in ".{0,40}") {
            let mut all = b"HTTP/1.1 200 OK\r\n".to_vec();
            all.extend(&bytes);
            for head in [bytes, all, format!("HTTP/1.1 200 {tail}\r\n\r\n").into_bytes()] {
                if let Ok(Some(response)) = read(&mut BytesMut::from(&head[..])) {
                    let _ = framing(&Method::GET, &response);
                    stays_open(&response);
                }
            }
        }
    }
}
