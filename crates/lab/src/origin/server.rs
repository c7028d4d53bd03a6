//! The accept loop.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::body::Pacer;
use super::respond::respond;
use super::state::{OpenConnection, State};

pub(super) struct Server {
    pub(super) state: Arc<State>,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) http2: bool,
    pub(super) max_connections: Option<u64>,
}

impl Server {
    /// Accepts connections until the runtime ends.
    pub(super) async fn run(self, listener: TcpListener) -> Infallible {
        let server = Arc::new(self);
        loop {
            // A client that is gone before it was accepted is no reason to stop.
            let Ok((stream, _)) = listener.accept().await else {
                continue;
            };
            let Some(open) = server.state.open(server.max_connections) else {
                let _ = stream.set_zero_linger();
                continue;
            };
            let _ = stream.set_nodelay(true);
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                match &server.tls {
                    None => server.serve(stream, open).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            server.serve(stream, open).await;
                        }
                    }
                }
            });
        }
    }

    async fn serve<S>(&self, stream: S, _open: OpenConnection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let pacer = Arc::new(Pacer::default());
        let service = service_fn(|request| {
            let (state, pacer) = (Arc::clone(&self.state), Arc::clone(&pacer));
            async move { Ok::<_, Infallible>(respond(state, pacer, request).await) }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        let builder = if self.http2 { builder } else { builder.http1_only() };
        // A connection that ends badly is the client's to notice.
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    }
}
