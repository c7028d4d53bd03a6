//! A small origin server.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, Request, Response, Version};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(super) type Body = UnsyncBoxBody<Bytes, std::io::Error>;
type Handler = dyn Fn(Request<Incoming>) -> LocalBoxFuture<'static, Response<Body>>;

/// What the server saw of one request.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    /// Which of the server's connections it came over, counted from 1.
    pub(super) connection: usize,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Over which of the server's connections a request came: one of its extensions.
#[derive(Clone, Copy)]
pub(super) struct Over(pub(super) usize);

/// A server that counts its connections and keeps what it saw.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) accepted: Rc<Cell<usize>>,
    pub(super) seen: Rc<RefCell<Vec<Seen>>>,
    /// How many requests are answered over each connection of HTTP/2, by their path, before it goes away, and why.
    pub(super) answers: Rc<Cell<Option<(usize, h2::Reason)>>>,
}

impl Server {
    /// Answers each request with what `answer` makes of its path.
    pub(super) async fn plain(answer: impl Fn(&str) -> Response<Body> + 'static) -> Self {
        Self::start(None, move |request| {
            let response = answer(request.uri().path());
            Box::pin(async move { response })
        })
        .await
    }

    pub(super) async fn start(
        tls: Option<Arc<rustls::ServerConfig>>,
        handler: impl Fn(Request<Incoming>) -> LocalBoxFuture<'static, Response<Body>> + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            accepted: Rc::default(),
            seen: Rc::default(),
            answers: Rc::default(),
        };
        let (accepted, seen) = (Rc::clone(&server.accepted), Rc::clone(&server.seen));
        let answers = Rc::clone(&server.answers);
        let handler: Rc<Handler> = Rc::new(handler);
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.set(accepted.get() + 1);
                let (number, seen) = (accepted.get(), Rc::clone(&seen));
                let (handler, tls, answers) = (Rc::clone(&handler), tls.clone(), answers.get());
                tokio::task::spawn_local(async move {
                    match tls {
                        None => serve(stream, number, seen, handler, answers).await,
                        Some(config) => {
                            if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                                serve(stream, number, seen, handler, answers).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn last(&self) -> Seen {
        self.seen.borrow().last().unwrap().clone()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    connection: usize,
    seen: Rc<RefCell<Vec<Seen>>>,
    handler: Rc<Handler>,
    answers: Option<(usize, h2::Reason)>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Over(connection));
        seen.borrow_mut().push(Seen {
            path: request.uri().to_string(),
            version: request.version(),
            headers: request.headers().clone(),
            connection,
        });
        let answer = handler(request);
        async move {
            let answer = answer.await;
            match answer.extensions().get::<h2::Reason>() {
                Some(reason) => Err(h2::Error::from(*reason)),
                None => Ok(answer),
            }
        }
    });
    let mut peeked = tokio::io::BufReader::new(stream);
    let Ok(head) = tokio::io::AsyncBufReadExt::fill_buf(&mut peeked).await else { return };
    // The preface of HTTP/2 (RFC 9113, section 3.4).
    if head.starts_with(b"PRI") {
        if let Some(answers) = answers {
            return go_away_after(answers, peeked).await;
        }
        let server = hyper::server::conn::http2::Builder::new(LocalExecutor);
        let _ = server.serve_connection(TokioIo::new(peeked), service).await;
    } else {
        let server = hyper::server::conn::http1::Builder::new();
        let _ = server.serve_connection(TokioIo::new(peeked), service).await;
    }
}

async fn go_away_after(
    (answers, reason): (usize, h2::Reason),
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) {
    let Ok(mut connection) = h2::server::handshake(&mut stream).await else { return };
    for _ in 0..answers {
        let Some(Ok((request, mut respond))) = connection.accept().await else { return };
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        let path = request.uri().path().as_bytes().to_vec();
        stream.send_data(path.into(), true).unwrap();
    }
    // Sends what is left to be sent.
    let _ = futures_util::FutureExt::now_or_never(connection.accept());
    drop(connection);
    // The last one that was answered, in a GOAWAY frame (RFC 9113, section 6.8).
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend((2 * answers as u32).saturating_sub(1).to_be_bytes());
    frame.extend(u32::from(reason).to_be_bytes());
    if stream.write_all(&frame).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    // What is closed with requests in it is reset, and that may be seen before the frame.
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

pub(super) fn text(body: &str) -> Response<Body> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    Response::new(body.map_err(|never| match never {}).boxed_unsync())
}

pub(super) fn redirect(location: &str) -> Response<Body> {
    let mut response = text("moved");
    *response.status_mut() = http::StatusCode::FOUND;
    response.headers_mut().insert("location", location.parse().unwrap());
    response
}

#[derive(Clone)]
struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
