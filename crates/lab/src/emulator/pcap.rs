//! The packets' headers in a file that tcpdump and Wireshark read (pcap, nanosecond magic, raw IP).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use pelton_algos::time::Timestamp;

use super::EmulatorError;

/// Bytes kept of a packet: IPv4 and TCP with all their options.
const SNAP: usize = 120;

/// Raw packets that begin with their IP header.
const LINKTYPE_RAW: u32 = 101;

pub(super) struct PacketLog {
    file: BufWriter<File>,
    path: PathBuf,
    /// Time of day at the link's first packet.
    start: Option<SystemTime>,
}

impl PacketLog {
    pub(super) fn create(path: PathBuf) -> Result<Self, EmulatorError> {
        let create = || {
            let mut file = BufWriter::new(File::create(&path)?);
            for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, SNAP as u32, LINKTYPE_RAW] {
                file.write_all(&word.to_le_bytes())?;
            }
            Ok(file)
        };
        let file = create().map_err(EmulatorError::io(format!("write {}", path.display())))?;
        Ok(Self { file, path, start: None })
    }

    /// The packets come in the order of their times, or nearly so.
    pub(super) fn write(&mut self, at: Timestamp, packet: &[u8]) -> Result<(), EmulatorError> {
        let start = *self.start.get_or_insert_with(SystemTime::now);
        let time =
            (start + at.since_start()).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let kept = packet.len().min(SNAP);
        let record = [time.as_secs() as u32, time.subsec_nanos(), kept as u32, packet.len() as u32];
        let mut write = || {
            for word in record {
                self.file.write_all(&word.to_le_bytes())?;
            }
            self.file.write_all(&packet[..kept])
        };
        write().map_err(|error| self.error(error))
    }

    pub(super) fn finish(mut self) -> Result<(), EmulatorError> {
        self.file.flush().map_err(|error| self.error(error))
    }

    fn error(&self, error: io::Error) -> EmulatorError {
        EmulatorError::io(format!("write {}", self.path.display()))(error)
    }
}
