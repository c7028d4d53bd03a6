//! Requests over HTTP/1.1 and their answers, over a connection in memory: heads are written and parsed.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pelton_core::Result;
use pelton_core::connection::{Connected, Connector, GetRequest, Http, HttpConfig, Io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::engine::url;

const REQUESTS: u64 = 4_000;
/// Bytes of each body.
pub(crate) const BODY: u64 = 16;

/// As nginx answers.
const ANSWER: &str = "HTTP/1.1 206 Partial Content\r\nServer: nginx/1.22.1\r\n\
    Date: Sun, 22 Nov 2026 10:15:00 GMT\r\nContent-Type: application/octet-stream\r\n\
    Content-Length: 16\r\nLast-Modified: Sat, 21 Nov 2026 08:15:00 GMT\r\nConnection: keep-alive\r\n\
    ETag: \"6740ab54-10\"\r\nContent-Range: bytes 0-15/1024\r\n\r\n0123456789abcdef";

/// Sends requests one after the other: the bytes of all bodies.
pub(crate) fn requests() -> u64 {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return 0;
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, bodies()).unwrap_or(0)
}

async fn bodies() -> Result<u64> {
    let http = Http::new(HttpConfig::default(), Arc::new(Memory), Rc::new(|_| ()))?;
    let mut bytes = 0;
    for number in 0..REQUESTS {
        let range = Some((0, Some(BODY - 1)));
        let request =
            GetRequest { range, ..GetRequest::new(url(&format!("/data/{number:06}.bin"))) };
        let mut answer = http.get(&request).await?;
        while let Some(piece) = answer.piece(<[u8]>::len).await? {
            bytes += piece as u64;
        }
    }
    Ok(bytes)
}

/// Leads to a server in memory.
struct Memory;

impl Connector for Memory {
    fn connect<'a>(
        &'a self,
        _host: &'a str,
        _port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        Box::pin(async { Ok(Connected { io: Box::<Server>::default(), rtt: None }) })
    }
}

/// Gives the same answer to each request, which comes in one write.
#[derive(Default)]
struct Server {
    unread: Vec<u8>,
    reader: Option<Waker>,
}

impl Io for Server {}

impl AsyncRead for Server {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..length]);
        self.unread.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        request: &[u8],
    ) -> Poll<io::Result<usize>> {
        if request.ends_with(b"\r\n\r\n") {
            self.unread.extend_from_slice(ANSWER.as_bytes());
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
        Poll::Ready(Ok(request.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
