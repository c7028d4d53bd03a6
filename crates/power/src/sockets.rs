//! When this machine's TCP connections last moved something: Linux tells it of all of them at once, to
//! everybody (`sock_diag`(7)).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// How long ago any TCP connection of this machine to another one has moved something. `None` where
/// there is none, or where the system does not tell.
pub fn tcp_quiet() -> Option<Duration> {
    let families = [AddressFamily::INET, AddressFamily::INET6];
    families.into_iter().filter_map(|family| quiet(family).ok().flatten()).min()
}

fn quiet(family: AddressFamily) -> io::Result<Option<Duration>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    rustix::net::send(&socket, &request(family), SendFlags::empty())?;
    let mut least = None;
    // An answer fills at most a page or 8 KiB, but for kernels that were told otherwise: 32 KiB.
    let mut answer = vec![0; 32 << 10];
    loop {
        // The kernel answers as it is read: there is nothing to wait for.
        let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
        let said = read(&answer[..length]);
        least = [least, said.quiet].into_iter().flatten().min();
        if said.is_last {
            return Ok(least);
        }
    }
}

/// A request for all connections of `family` with their `tcp_info`: a `nlmsghdr` and an
/// `inet_diag_req_v2` (linux/netlink.h, `linux/inet_diag.h`), in the machine's byte order.
fn request(family: AddressFamily) -> Vec<u8> {
    const LENGTH: u32 = 72;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUEST_AND_DUMP: u16 = 0x301;
    const TCP: u8 = 6;
    const WITH_INFO: u8 = 1 << (INET_DIAG_INFO - 1);
    // ESTABLISHED, FIN_WAIT1 and 2, CLOSE_WAIT, LAST_ACK, CLOSING (net/tcp_states.h).
    const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
    let mut request = Vec::with_capacity(LENGTH as usize);
    request.extend(LENGTH.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_AND_DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([family.as_raw() as u8, TCP, WITH_INFO, 0]);
    request.extend(STATES.to_ne_bytes());
    request.resize(LENGTH as usize, 0);
    request
}

const INET_DIAG_INFO: u16 = 2;

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    quiet: Option<Duration>,
    is_last: bool,
}

/// Reads an answer: `nlmsghdr`s, each with an `inet_diag_msg` and its attributes. What is no such thing
/// ends it.
fn read(answer: &[u8]) -> Said {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    let (mut quiet, mut rest) = (None, answer);
    while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
        let Some(message) = rest.get(16..length as usize) else { break };
        if kind == ERROR || kind == DONE {
            return Said { quiet, is_last: true };
        }
        quiet = [quiet, of_connection(message)].into_iter().flatten().min();
        rest = rest.get(aligned(length as usize)..).unwrap_or_default();
    }
    Said { quiet, is_last: !rest.is_empty() || answer.is_empty() }
}

/// The least of `tcp_info`'s times since data were sent, data were received and an acknowledgement was.
fn of_connection(message: &[u8]) -> Option<Duration> {
    const TIMES: [usize; 3] = [44, 52, 56];
    if is_loopback(message.first_chunk::<40>()?) {
        return None;
    }
    let mut attributes = message.get(72..)?;
    loop {
        let (length, kind) = (u16_at(attributes, 0)?, u16_at(attributes, 2)?);
        let value = attributes.get(4..usize::from(length))?;
        if kind == INET_DIAG_INFO {
            let millis = TIMES.into_iter().filter_map(|at| u32_at(value, at)).min()?;
            return Some(Duration::from_millis(u64::from(millis)));
        }
        attributes = attributes.get(aligned(usize::from(length))..)?;
    }
}

/// Whether the other end of the connection of an `inet_diag_msg` is on this machine.
fn is_loopback(message: &[u8; 40]) -> bool {
    let Some(address) = message.last_chunk::<16>() else { return false };
    if u16::from(message[0]) == AddressFamily::INET.as_raw() {
        return address.first_chunk::<4>().is_some_and(|four| Ipv4Addr::from(*four).is_loopback());
    }
    Ipv6Addr::from(*address).to_canonical().is_loopback()
}

/// Messages and attributes begin at multiples of four bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A connection to 192.0.2.`host` or, for 0, to 127.0.0.1, as the kernel tells of it.
    fn connection(host: u8, sent: u32, received: u32, acknowledged: u32) -> Vec<u8> {
        let mut info = vec![0; 104];
        for (at, millis) in [(44, sent), (52, received), (56, acknowledged)] {
            info[at..at + 4].copy_from_slice(&millis.to_ne_bytes());
        }
        let mut message = vec![0; 72];
        message[0] = 2;
        message[24..28].copy_from_slice(&if host == 0 {
            [127, 0, 0, 1]
        } else {
            [192, 0, 2, host]
        });
        // An attribute of five bytes before the one that is looked for.
        message.extend([5_u16.to_ne_bytes(), 8_u16.to_ne_bytes()].concat());
        message.extend([1, 0, 0, 0]);
        message.extend([108_u16.to_ne_bytes(), INET_DIAG_INFO.to_ne_bytes()].concat());
        message.extend(info);
        framed(20, &message)
    }

    fn framed(kind: u16, message: &[u8]) -> Vec<u8> {
        let length = 16 + message.len() as u32;
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], message].concat()
    }

    #[test]
    fn the_last_to_move_something_counts_and_loopback_does_not() {
        let mut answer = connection(1, 900, 700, 800);
        answer.extend(connection(2, 5_000, 4_000, 300));
        answer.extend(connection(0, 1, 1, 1));
        let quiet = Some(Duration::from_millis(300));
        assert_eq!(read(&answer), Said { quiet, is_last: false });
        answer.extend(framed(3, &[0; 4]));
        assert_eq!(read(&answer), Said { quiet, is_last: true });
        assert_eq!(read(&framed(3, &[0; 4])), Said { quiet: None, is_last: true });
    }

    #[test]
    fn a_request_asks_for_every_connection_of_a_family() {
        let request = request(AddressFamily::INET6);
        assert_eq!((request.len(), u32_at(&request, 0)), (72, Some(72)));
        assert_eq!(request[16..20], [10, 6, 2, 0]);
    }

    #[test]
    fn this_machine_answers_or_refuses() {
        // What it says depends on the machine; it ends, and a connection to oneself is none.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = tcp_quiet();
        let _own = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        if before.is_none() {
            assert_eq!(tcp_quiet(), None);
        }
    }

    proptest! {
        #[test]
        fn nonsense_ends_and_says_nothing_terrible(answer in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&answer);
        }
    }
}
