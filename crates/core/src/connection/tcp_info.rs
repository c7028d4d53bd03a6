//! The kernel's view of a TCP connection (`TCP_INFO`, tcp(7)).
#![expect(unsafe_code, reason = "no kept crate reads TCP_INFO; one getsockopt, its length checked")]

use std::mem::{self, MaybeUninit, offset_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::connector::Segments;

/// The head of Linux's `struct tcp_info` (include/uapi/linux/tcp.h), up to what is read here. Its
/// fields are only ever appended to.
#[repr(C)]
struct TcpInfo {
    /// State, counters and options: eight bytes.
    _flags: [u8; 8],
    /// `tcpi_rto` to `tcpi_rcv_ssthresh`.
    _before_rtt: [u32; 15],
    /// `tcpi_rtt`: smoothed, in microseconds.
    rtt: u32,
    /// `tcpi_rttvar` to `tcpi_reordering`.
    _after_rtt: [u32; 5],
    /// `tcpi_rcv_rtt`: smoothed, in microseconds.
    received_rtt: u32,
    /// `tcpi_rcv_space` and `tcpi_total_retrans`.
    _after_received_rtt: [u32; 2],
    /// `tcpi_pacing_rate` to `tcpi_bytes_acked`.
    _rates: [u64; 3],
    /// `tcpi_bytes_received`: in order; since Linux 4.1.
    bytes_received: u64,
    /// `tcpi_segs_out`: since Linux 4.2.
    segments_out: u32,
    /// `tcpi_segs_in`: since Linux 4.2.
    segments_in: u32,
    /// `tcpi_notsent_bytes`.
    _not_sent: u32,
    /// `tcpi_min_rtt`: in microseconds; since Linux 4.6.
    min_rtt: u32,
    /// `tcpi_data_segs_in` and `tcpi_data_segs_out`.
    _data_segments: [u32; 2],
    /// `tcpi_delivery_rate` to `tcpi_sndbuf_limited`.
    _limits: [u64; 4],
    /// `tcpi_delivered` and `tcpi_delivered_ce`.
    _delivered: [u32; 2],
    /// `tcpi_bytes_sent` and `tcpi_bytes_retrans`.
    _bytes: [u64; 2],
    /// `tcpi_dsack_dups` and `tcpi_reord_seen`.
    _disorder_sent: [u32; 2],
    /// `tcpi_rcv_ooopack`: since Linux 5.4.
    out_of_order: u32,
    /// `tcpi_snd_wnd`.
    _send_window: u32,
}

/// What `tcpi_min_rtt` holds before the first sample.
const UNKNOWN: u32 = u32::MAX;

/// The least round-trip time of the TCP connection `socket`, or its smoothed one where the kernel
/// does not keep the least. `None` when the kernel knows neither.
pub(super) fn min_rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    let (info, length) = read(socket)?;
    let known = |micros: u32| micros != 0 && micros != UNKNOWN;
    let micros = if length.holds(offset_of!(TcpInfo, min_rtt)) && known(info.min_rtt) {
        info.min_rtt
    } else if length.holds(offset_of!(TcpInfo, rtt)) && known(info.rtt) {
        info.rtt
    } else {
        return None;
    };
    Some(Duration::from_micros(micros.into()))
}

/// The round-trip time that what `socket` received lately shows, queues included, smoothed. `None` when the
/// kernel does not know it.
pub(super) fn rtt_of_received(socket: BorrowedFd<'_>) -> Option<Duration> {
    let (info, length) = read(socket)?;
    let is_known = length.holds(offset_of!(TcpInfo, received_rtt)) && info.received_rtt != 0;
    is_known.then(|| Duration::from_micros(info.received_rtt.into()))
}

/// The round-trip time of what `socket` sent, smoothed over the last acknowledgements. `None` when the kernel does not
/// know it.
pub(super) fn rtt_of_sent(socket: BorrowedFd<'_>) -> Option<Duration> {
    let (info, length) = read(socket)?;
    let is_known = length.holds(offset_of!(TcpInfo, rtt)) && info.rtt != 0;
    is_known.then(|| Duration::from_micros(info.rtt.into()))
}

/// The segments of the TCP connection `socket`. `None` when the kernel does not count them.
pub(super) fn segments(socket: BorrowedFd<'_>) -> Option<Segments> {
    let (info, length) = read(socket)?;
    let counts = length.holds(offset_of!(TcpInfo, segments_in));
    counts.then_some(Segments {
        sent: info.segments_out,
        received: info.segments_in,
        received_bytes: info.bytes_received,
    })
}

/// Segments of the TCP connection `socket` that came before one that was sent earlier. `None` when the kernel does not
/// count them.
pub(super) fn out_of_order(socket: BorrowedFd<'_>) -> Option<u32> {
    let (info, length) = read(socket)?;
    length.holds(offset_of!(TcpInfo, out_of_order)).then_some(info.out_of_order)
}

/// How much of a [`TcpInfo`] the kernel has filled.
struct Length(usize);

impl Length {
    /// Whether the field of four bytes at `offset` is among it.
    const fn holds(&self, offset: usize) -> bool {
        self.0 >= offset + mem::size_of::<u32>()
    }
}

fn read(socket: BorrowedFd<'_>) -> Option<(TcpInfo, Length)> {
    let mut info = MaybeUninit::<TcpInfo>::zeroed();
    let mut length = mem::size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: `info` is writable for `length` bytes, and the kernel writes no more than that.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return None;
    }
    // SAFETY: it was zeroed, and every bit pattern is a valid value of its integers.
    Some((unsafe { info.assume_init() }, Length(length as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    #[test]
    fn layout_is_the_kernels() {
        assert_eq!(offset_of!(TcpInfo, rtt), 68);
        assert_eq!(offset_of!(TcpInfo, received_rtt), 92);
        assert_eq!(offset_of!(TcpInfo, _rates), 104);
        assert_eq!(offset_of!(TcpInfo, bytes_received), 128);
        assert_eq!(offset_of!(TcpInfo, segments_in), 140);
        assert_eq!(offset_of!(TcpInfo, min_rtt), 148);
        assert_eq!(offset_of!(TcpInfo, out_of_order), 224);
    }

    #[test]
    fn segments_are_counted() {
        use std::io::{Read, Write};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        // SYN, SYN-ACK, ACK.
        let opened = segments(stream.as_fd()).unwrap();
        assert!(opened.sent >= 2 && opened.received >= 1, "{opened:?}");
        stream.write_all(b"request").unwrap();
        peer.read_exact(&mut [0; 7]).unwrap();
        peer.write_all(b"answer").unwrap();
        stream.read_exact(&mut [0; 6]).unwrap();
        let moved = segments(stream.as_fd()).unwrap();
        assert!(moved.sent > opened.sent && moved.received > opened.received, "{moved:?}");
    }

    #[test]
    fn a_local_connection_has_a_short_rtt() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let rtt = min_rtt(stream.as_fd()).unwrap();
        assert!(rtt > Duration::ZERO && rtt < Duration::from_secs(1), "{rtt:?}");
    }

    #[test]
    fn what_is_not_tcp_has_none() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(min_rtt(socket.as_fd()), None);
        assert_eq!(out_of_order(socket.as_fd()), None);
    }
}
