//! The client against a small server on this machine.

mod ahead;
mod buffers;
mod credentials;
mod elsewhere;
mod exchange;
mod further;
mod http2;
mod pipelining;
mod proxies;
mod server;
mod tls;
mod tls_stream;

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::*;

/// Runs a test on one thread. A test that waits for ever fails.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(20), test).await };
    tokio::task::LocalSet::new().block_on(&runtime, limited).expect("the test hangs");
}

/// A client and what it told.
struct Client {
    http: Http,
    events: Rc<RefCell<Vec<ConnectionEvent>>>,
}

impl Client {
    fn new(config: HttpConfig) -> Self {
        Self::with(config, TcpConnector::default())
    }

    fn with(config: HttpConfig, connector: TcpConnector) -> Self {
        let events = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&events);
        let observer = Rc::new(move |event| sink.borrow_mut().push(event));
        Self { http: Http::new(config, Arc::new(connector), observer).unwrap(), events }
    }

    async fn get(&self, url: &str) -> crate::Result<GetResponse> {
        self.http.get(&GetRequest::new(Url::parse(url).unwrap())).await
    }

    async fn text(&self, url: &str) -> String {
        read(&mut self.get(url).await.unwrap()).await.unwrap()
    }
}

async fn read(response: &mut GetResponse) -> crate::Result<String> {
    let mut body = Vec::new();
    while response.piece(|bytes| body.extend_from_slice(bytes)).await?.is_some() {}
    Ok(String::from_utf8(body).unwrap())
}

fn origin(url: &str) -> Origin {
    Origin::of(&Url::parse(url).unwrap()).unwrap()
}
