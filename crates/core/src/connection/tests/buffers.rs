//! Receive buffers under a limit on the rate.

use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Mutex;

use pelton_algos::units::BitRate;
use socket2::SockRef;

use super::server::{Server, text};
use super::*;

const MBIT: u32 = 1_000;

/// Connects over TCP, and says that the path is so long.
struct Far {
    rtt: Duration,
    opened: Arc<Mutex<Vec<Opened>>>,
}

struct Opened {
    buffer: Option<u32>,
    socket: OwnedFd,
}

impl Far {
    async fn open(&self, host: &str, port: u16, buffer: Option<u32>) -> crate::Result<Connected> {
        let tcp = TcpConnector::default();
        let connected = match buffer {
            Some(buffer) => tcp.connect_narrow(host, port, buffer).await?,
            None => tcp.connect(host, port).await?,
        };
        let socket = connected.io.socket().unwrap().as_fd().try_clone_to_owned().unwrap();
        self.opened.lock().unwrap().push(Opened { buffer, socket });
        Ok(Connected { rtt: Some(self.rtt), ..connected })
    }
}

impl Connector for Far {
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = crate::Result<Connected>> + 'a>> {
        Box::pin(self.open(host, port, None))
    }

    fn connect_narrow<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        buffer: u32,
    ) -> Pin<Box<dyn Future<Output = crate::Result<Connected>> + 'a>> {
        Box::pin(self.open(host, port, Some(buffer)))
    }
}

/// A client over a path of `rtt`, and what it opens.
fn client(rtt: Duration) -> (Http, Arc<Mutex<Vec<Opened>>>) {
    let opened: Arc<Mutex<Vec<Opened>>> = Arc::default();
    let connector = Far { rtt, opened: Arc::clone(&opened) };
    let http = Http::new(HttpConfig::default(), Arc::new(connector), Rc::new(|_| {})).unwrap();
    (http, opened)
}

async fn server() -> Server {
    Server::plain(|_| text("some bytes")).await
}

async fn get(http: &Http, server: &Server) -> GetResponse {
    http.get(&GetRequest::new(Url::parse(&server.url("/")).unwrap())).await.unwrap()
}

#[test]
fn a_low_limit_opens_connections_with_small_buffers_where_the_path_bears_it() {
    let kib = |kib: u32| Some(kib * 1024);
    for (kbps, millis, expected) in [
        (None, 10, [None, None]),
        (Some(MBIT), 10, [kib(16), kib(16)]),
        (Some(2 * MBIT), 10, [kib(32), kib(32)]),
        (Some(100 * MBIT), 10, [None, None]),
    ] {
        run(async {
            let (http, opened) = client(Duration::from_millis(millis));
            let server = server().await;
            http.set_rates(kbps.map(BitRate::from_kbps), None);
            // Both are under way at once.
            let _responses = [get(&http, &server).await, get(&http, &server).await];
            let opened = opened.lock().unwrap();
            let buffers: Vec<_> = opened.iter().map(|one| one.buffer).collect();
            assert_eq!(buffers, expected, "{kbps:?} kbit/s");
            for Opened { buffer, socket } in opened.iter() {
                let size = SockRef::from(socket).recv_buffer_size().unwrap();
                // Linux grants twice as much.
                assert!(buffer.is_none_or(|buffer| size <= 2 * buffer as usize), "{size}");
            }
        });
    }
}

#[test]
fn a_long_path_has_the_kernels_buffer() {
    run(async {
        let (http, opened) = client(Duration::from_millis(600));
        let server = server().await;
        http.set_rates(Some(BitRate::from_kbps(MBIT)), None);
        let _responses = [get(&http, &server).await, get(&http, &server).await];
        let buffers: Vec<_> = opened.lock().unwrap().iter().map(|one| one.buffer).collect();
        assert_eq!(buffers, [Some(16 * 1024), None, None], "the first one shows the path");
    });
}

#[test]
fn a_limit_takes_nothing_from_the_buffer_of_an_open_connection() {
    run(async {
        let (http, opened) = client(Duration::from_millis(10));
        let server = server().await;
        let mut response = get(&http, &server).await;
        let size = || SockRef::from(&opened.lock().unwrap()[0].socket).recv_buffer_size().unwrap();
        let before = size();
        http.set_rates(Some(BitRate::from_kbps(MBIT)), None);
        // The connection looks at its transport now and then.
        for _ in 0..200 {
            read(&mut response).await.unwrap();
            response = get(&http, &server).await;
        }
        assert_eq!(server.accepted.get(), 1);
        assert!(size() >= before, "what was promised has room: {} of {before}", size());
    });
}
