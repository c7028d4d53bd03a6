//! A server on its own thread, for as long as its owner holds it.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A running server. Dropping it closes its connections and ends its thread.
pub(super) struct Loopback {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    /// Runs `serve` on a free port of 127.0.0.1. Works inside and outside of a runtime.
    pub(super) fn start<F>(
        serve: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = Infallible>,
    {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _guard = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread =
            std::thread::Builder::new().name("lab-origin".to_owned()).spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        never = serve(listener) => match never {},
                        _ = stopped => (),
                    }
                });
            })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has already been printed by its thread.
            let _ = thread.join();
        }
    }
}
