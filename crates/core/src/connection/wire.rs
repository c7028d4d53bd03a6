//! Counts what goes over a stream, reads its round-trip time and segments now and then, and rests between
//! reads where that saves acknowledgements.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pelton_algos::losses::LossWatch;
use pelton_algos::rests::Rests;
use pelton_algos::round_trips::{Known, News, RoundTripWatch};
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connector::{Io, Segments};
use super::http1::{Duplex, Pipe};
use super::origin::Origin;
use super::telemetry::{ConnectionEvent, Telemetry};

/// Reads between two looks at the transport: a system call in 64.
const READS_PER_LOOK: u32 = 64;

/// A stream that counts.
pub(super) struct Wire {
    io: Box<dyn Io>,
    origin: Origin,
    telemetry: Rc<Telemetry>,
    reads: u32,
    round_trips: RoundTripWatch,
    /// What comes are answers, and no handshake.
    is_open: Rc<Cell<bool>>,
    /// Segments at the last look.
    segments: Option<Segments>,
    /// Bytes that were read.
    read: u64,
    /// Bytes received and sent since then.
    uncounted: [u64; 2],
    /// Bytes that are still to come of what was asked for.
    to_come: Rc<Cell<u64>>,
    began: Instant,
    rests: Rests,
    losses: LossWatch,
    /// Nothing is read before it is over.
    rest: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(super) fn new(
        io: Box<dyn Io>,
        rtt: Option<Duration>,
        origin: Origin,
        telemetry: Rc<Telemetry>,
    ) -> Self {
        let (is_open, to_come, rests) = Default::default();
        Self {
            io,
            origin,
            telemetry,
            reads: 0,
            round_trips: RoundTripWatch::new(rtt),
            is_open,
            segments: None,
            read: 0,
            uncounted: [0; 2],
            to_come,
            began: Instant::now(),
            rests,
            losses: LossWatch::default(),
            rest: None,
        }
    }

    /// Set it as soon as requests may be sent.
    pub(super) fn is_open(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_open)
    }

    /// Keep it up to date with how many bytes are still to come of what was asked for.
    pub(super) fn to_come(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.to_come)
    }

    fn received(&mut self, bytes: usize) {
        self.telemetry.received(bytes as u64);
        self.read += bytes as u64;
        let now = Timestamp::new(self.began.elapsed());
        if let Some(rtt) = self.round_trips.least() {
            self.telemetry.came(bytes, rtt, self.is_open.get());
            self.rests.on_bytes(now, bytes as u64, rtt);
            if self.losses.on_bytes(now, Bytes(bytes as u64), rtt) {
                self.look_for_losses();
            }
        }
        self.look_at_round_trips(now);
        self.uncounted[0] += bytes as u64;
        self.reads += 1;
        if self.reads == READS_PER_LOOK {
            self.reads = 0;
            self.count_segments();
        }
    }

    /// Ready when what comes may be read.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(rest) = &mut self.rest {
            ready!(rest.as_mut().poll(cx));
            self.rest = None;
        }
        Poll::Ready(())
    }

    /// All that has come was read: what comes next is left for a while, if that is of use.
    fn drained(&mut self, cx: &mut Context<'_>) {
        let Some(rtt) = self.round_trips.least() else { return };
        let (now, to_come) = (Timestamp::new(self.began.elapsed()), Bytes(self.to_come.get()));
        let rest = self.rests.rest(now, to_come, rtt, || self.io.rtt_of_received());
        if let Some(rest) = rest {
            self.rest = Some(Box::pin(sleep(rest)));
            // The stream would wake the reader with the next segment, and need not wake it later.
            let _ = self.poll_rest(cx);
        }
    }

    fn sent(&mut self, bytes: usize) {
        self.telemetry.sent(bytes);
        self.uncounted[1] += bytes as u64;
    }

    fn count_segments(&mut self) {
        if let Some(now) = self.io.segments() {
            self.note_segments(now);
        }
    }

    fn note_segments(&mut self, now: Segments) {
        let before = self.segments.replace(now);
        self.telemetry.counted(before, now, std::mem::take(&mut self.uncounted));
    }

    fn look_for_losses(&mut self) {
        let Some(out_of_order) = self.io.out_of_order() else { return };
        if self.losses.on_count(out_of_order) {
            self.telemetry.tell(ConnectionEvent::Loss { origin: self.origin.clone() });
        }
    }

    /// Tells how long round trips are of late.
    fn look_at_round_trips(&mut self, now: Timestamp) {
        if !self.round_trips.is_due(now) {
            return;
        }
        let known = Known {
            least: self.io.min_rtt(),
            sent: self.io.rtt_of_sent(),
            received: self.io.rtt_of_received(),
        };
        for news in self.round_trips.on_look(now, known) {
            let origin = self.origin.clone();
            self.telemetry.tell(match news {
                News::AtMost(rtt) => ConnectionEvent::Rtt { origin, rtt },
                News::AtLeast(rtt) => ConnectionEvent::RoundTrip { origin, rtt },
            });
        }
    }
}

impl Duplex for Wire {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        most: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        self.io.socket()?;
        if self.poll_rest(cx).is_pending() {
            return Some(Poll::Pending);
        }
        let socket = self.io.socket()?;
        let filled = loop {
            match socket.poll_read_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => {
                    self.drained(cx);
                    return Some(Poll::Pending);
                }
            }
            match pipe.fill(socket, most) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                filled => break filled,
            }
        };
        if let Ok(length) = &filled {
            self.received(*length);
        }
        Some(Poll::Ready(filled))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let Some(now) = self.io.segments() else { return };
        // What came and was not wanted any more took as much of the network, and of the radio, as what was read.
        let unread = now.received_bytes.saturating_sub(self.read);
        self.telemetry.received(unread);
        self.uncounted[0] += unread;
        self.note_segments(now);
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx));
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.io).poll_read(cx, buffer) else {
            self.drained(cx);
            return Poll::Pending;
        };
        read?;
        let read = buffer.filled().len() - before;
        self.received(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.sent(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices))?;
        self.sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{Interval, interval, timeout};
    use url::Url;

    use super::*;

    const SEGMENT: usize = 1448;

    /// A stream that brings a segment each millisecond, over a path of 60 ms whose queue lasts for 20 ms.
    struct Queued {
        next: Interval,
        reads: Rc<Cell<u32>>,
    }

    impl Io for Queued {
        fn rtt_of_received(&self) -> Option<Duration> {
            Some(Duration::from_millis(80))
        }
    }

    impl AsyncRead for Queued {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = buffer.filled().len();
            while buffer.remaining() >= SEGMENT && self.next.poll_tick(cx).is_ready() {
                buffer.put_slice(&[0; SEGMENT]);
            }
            if buffer.filled().len() == before {
                return Poll::Pending;
            }
            self.reads.set(self.reads.get() + 1);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Queued {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Bytes that come in a second, and the reads that it takes, while so many are still to come.
    async fn second(to_come: u64) -> (usize, u32) {
        let reads = Rc::<Cell<u32>>::default();
        let io = Queued { next: interval(Duration::from_millis(1)), reads: Rc::clone(&reads) };
        let origin = Origin::of(&Url::parse("http://a.test/").unwrap()).unwrap();
        let telemetry = Rc::new(Telemetry::new(Rc::new(|_| {})));
        let rtt = Some(Duration::from_millis(60));
        let mut wire = Wire::new(Box::new(io), rtt, origin, telemetry);
        wire.to_come().set(to_come);
        let (mut came, mut memory) = (0, vec![0; 256 * 1024]);
        let read = async {
            loop {
                let mut buffer = ReadBuf::new(&mut memory);
                poll_fn(|cx| Pin::new(&mut wire).poll_read(cx, &mut buffer)).await.unwrap();
                came += buffer.filled().len();
            }
        };
        let _: Result<(), _> = timeout(Duration::from_secs(1), read).await;
        (came, reads.get())
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_over_a_path_with_a_queue_is_read_rarely() {
        let (all, reads) = second(10_000_000).await;
        assert!(all >= 970 * SEGMENT, "all but the last rest: {all}");
        // 120 ms tell whether the stream grows, then each read is 20 ms behind the last one.
        assert!((150..=200).contains(&reads), "{reads}");
        let (_, reads) = second(0).await;
        assert!(reads >= 1_000, "{reads}");
    }
}
