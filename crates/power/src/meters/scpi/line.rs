//! The line to an instrument: TCP, or a serial device.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Instant;

use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use super::{PATIENCE, QUERY};

/// A longer answer is none: some twenty values at most are asked for.
const LONGEST_ANSWER: usize = 64 * 1024;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that gives up after [`PATIENCE`].
pub(super) struct Line {
    stream: BufReader<Box<dyn Stream>>,
}

impl Line {
    /// `HOST:PORT`, or the path of a serial device.
    pub(super) fn open(address: &str) -> Result<Self, String> {
        let stream: io::Result<Box<dyn Stream>> = if address.starts_with('/') {
            serial(address).map(|file| Box::new(file) as _)
        } else {
            tcp(address).map(|stream| Box::new(stream) as _)
        };
        let stream = stream.map_err(|error| error.to_string())?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(super) fn ask(&mut self) -> Result<String, String> {
        let sent = self.stream.get_mut().write_all(QUERY.as_bytes());
        if let Err(error) = sent {
            let is_closed = is_closed(error.kind());
            return Err(if is_closed {
                CLOSED.into()
            } else {
                format!("it takes no query: {error}")
            });
        }
        let asked = Instant::now();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            if asked.elapsed() >= PATIENCE {
                return Err(format!("it has sent no whole line within {} s", PATIENCE.as_secs()));
            }
            let came = match self.stream.fill_buf() {
                Ok([]) => return Err("it is silent, or has closed the connection".to_owned()),
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_timeout(error.kind()) => {
                    return Err(format!("no answer within {} s", PATIENCE.as_secs()));
                }
                Err(error) if is_closed(error.kind()) => return Err(CLOSED.to_owned()),
                Err(error) => return Err(format!("it gives no answer: {error}")),
            };
            let length =
                came.iter().position(|byte| *byte == b'\n').map_or(came.len(), |at| at + 1);
            answer.extend_from_slice(&came[..length]);
            self.stream.consume(length);
            if answer.len() > LONGEST_ANSWER {
                return Err(format!("it has sent {} bytes and no end of a line", answer.len()));
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

const CLOSED: &str = "it has closed the connection";

/// What a socket says whose peer was gone before it was asked.
fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// How a socket says that nothing came in time (`SO_RCVTIMEO`).
fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn tcp(address: &str) -> io::Result<TcpStream> {
    let mut addresses = address.to_socket_addrs()?;
    let first = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
    let stream = TcpStream::connect_timeout(&first, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A terminal that passes bytes as they are, at the speed that it has been set to.
fn serial(path: &str) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path)?;
    let mut settings = tcgetattr(&file)?;
    settings.make_raw();
    // A read waits for a byte so many tenths of a second.
    settings.special_codes[SpecialCodeIndex::VMIN] = 0;
    settings.special_codes[SpecialCodeIndex::VTIME] = (PATIENCE.as_millis() / 100) as u8;
    tcsetattr(&file, OptionalActions::Flush, &settings)?;
    Ok(file)
}
