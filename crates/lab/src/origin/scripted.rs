//! A server that says exactly the bytes it is told to: for the lies that no HTTP library tells.
//!
//! ```
//! use pelton_lab::origin::scripted::{Reply, Scripted};
//!
//! // Promises 100 bytes, gives 3 and closes.
//! let origin = Scripted::start(|_| {
//!     Reply::status("200 OK").field("Content-Length", 100).body("abc").close()
//! })?;
//! assert!(origin.url("/file").starts_with("http://127.0.0.1:"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use percent_encoding::utf8_percent_encode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{listing, loopback::Loopback};

/// A request head longer than this ends its connection.
const MAX_HEAD: usize = 64 * 1024;

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// How many requests came before it, over all connections.
    pub number: usize,
    /// The request line and the fields, without the empty line at their end.
    pub head: String,
}

impl RawRequest {
    /// The request target as it was sent.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a field; upper and lower case are equal in its name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }
}

/// What is answered to one request: bytes and pauses, and what becomes of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    head: Vec<u8>,
    steps: Vec<Step>,
    end: End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Send(Vec<u8>),
    Pause(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    KeepAlive,
    Close,
    Reset,
    Hang,
}

impl Reply {
    /// Exactly `bytes`, and nothing else.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: Vec::new(), steps: vec![Step::Send(bytes.into())], end: End::KeepAlive }
    }

    /// A response with this code and reason, say `206 Partial Content`. No field is added.
    pub fn status(status: &str) -> Self {
        Self {
            head: format!("HTTP/1.1 {status}\r\n").into(),
            steps: Vec::new(),
            end: End::KeepAlive,
        }
    }

    /// Adds a field to the head.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Display) -> Self {
        self.head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        self
    }

    /// Then sends `bytes`.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    /// Then waits.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Closes the connection at the end.
    #[must_use]
    pub fn close(self) -> Self {
        Self { end: End::Close, ..self }
    }

    /// Resets the connection at the end.
    #[must_use]
    pub fn reset(self) -> Self {
        Self { end: End::Reset, ..self }
    }

    /// Keeps the connection open at the end and says nothing ever again.
    #[must_use]
    pub fn hang(self) -> Self {
        Self { end: End::Hang, ..self }
    }
}

/// A running scripted server, on its own thread. Dropping it ends it.
pub struct Scripted {
    server: Loopback,
    requests: Arc<Mutex<Vec<RawRequest>>>,
}

impl Scripted {
    /// Starts a server that answers every request as `script` says. HTTP/1.1 without TLS, and
    /// requests without bodies.
    ///
    /// # Errors
    /// No port or thread could be had.
    pub fn start(
        script: impl Fn(&RawRequest) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Script { script, requests: Arc::clone(&requests) });
        let server = Loopback::start(|listener| accept(listener, shared))?;
        Ok(Self { server, requests })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of `path`, which begins with `/` and is percent-encoded here.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{}", self.address(), utf8_percent_encode(path, listing::PATH))
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<RawRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Script<F> {
    script: F,
    requests: Arc<Mutex<Vec<RawRequest>>>,
}

async fn accept<F>(listener: TcpListener, script: Arc<Script<F>>) -> Infallible
where
    F: Fn(&RawRequest) -> Reply + Send + Sync + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let script = Arc::clone(&script);
        // A client that goes away in the middle is no failure.
        tokio::spawn(async move { script.serve(stream).await });
    }
}

impl<F: Fn(&RawRequest) -> Reply> Script<F> {
    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut received = BytesMut::new();
        while let Some(head) = read_head(&mut stream, &mut received).await? {
            let reply = self.reply(head);
            stream.write_all(&reply.head).await?;
            for step in &reply.steps {
                match step {
                    Step::Send(bytes) => stream.write_all(bytes).await?,
                    Step::Pause(time) => tokio::time::sleep(*time).await,
                }
            }
            match reply.end {
                End::KeepAlive => (),
                End::Close => return stream.shutdown().await,
                End::Reset => return stream.set_zero_linger(),
                End::Hang => std::future::pending().await,
            }
        }
        Ok(())
    }

    /// Logs the request and asks the script.
    fn reply(&self, head: String) -> Reply {
        let request = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            let request = RawRequest { number: requests.len(), head };
            requests.push(request.clone());
            request
        };
        let mut reply = (self.script)(&request);
        if !reply.head.is_empty() {
            reply.head.extend_from_slice(b"\r\n");
        }
        reply
    }
}

/// The next request's head; nothing when the client has closed.
async fn read_head(stream: &mut TcpStream, received: &mut BytesMut) -> io::Result<Option<String>> {
    const END: &[u8] = b"\r\n\r\n";
    loop {
        if let Some(at) = received.windows(END.len()).position(|window| window == END) {
            let head = received.split_to(at + END.len());
            return Ok(Some(String::from_utf8_lossy(&head[..at]).into_owned()));
        }
        if received.len() > MAX_HEAD || stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}
