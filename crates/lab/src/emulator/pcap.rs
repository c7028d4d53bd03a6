//! The packets' headers in a file that tcpdump and Wireshark read (pcap, nanosecond magic, raw IP).

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use pelton_algos::time::Timestamp;

use super::EmulatorError;

/// Bytes kept of a packet: IPv4 and TCP with all their options.
const SNAP: usize = 120;

/// Raw packets that begin with their IP header.
const LINKTYPE_RAW: u32 = 101;

/// Bytes that are written at once.
const BLOCK: usize = 64 * 1024;

/// A thread of its own writes the file: a disk may be slow, and packets are not to wait for it.
pub(super) struct PacketLog {
    path: PathBuf,
    block: Vec<u8>,
    /// Some until the log is finished.
    blocks: Option<Sender<Vec<u8>>>,
    writer: JoinHandle<io::Result<()>>,
    /// Time of day at the link's first packet.
    start: Option<SystemTime>,
}

impl PacketLog {
    pub(super) fn create(path: PathBuf) -> Result<Self, EmulatorError> {
        let doing = format!("write {}", path.display());
        let mut file = File::create(&path).map_err(EmulatorError::io(&doing))?;
        let (blocks, queue) = channel::<Vec<u8>>();
        let writer = thread::Builder::new()
            .name("packet-log".to_owned())
            .spawn(move || queue.into_iter().try_for_each(|block| file.write_all(&block)))
            .map_err(EmulatorError::io(doing))?;
        let mut block = Vec::with_capacity(BLOCK);
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, SNAP as u32, LINKTYPE_RAW] {
            block.extend(word.to_le_bytes());
        }
        Ok(Self { path, block, blocks: Some(blocks), writer, start: None })
    }

    /// The packets come in the order of their times, or nearly so.
    pub(super) fn write(&mut self, at: Timestamp, packet: &[u8]) {
        let start = *self.start.get_or_insert_with(SystemTime::now);
        let time =
            (start + at.since_start()).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let kept = packet.len().min(SNAP);
        for word in [time.as_secs() as u32, time.subsec_nanos(), kept as u32, packet.len() as u32] {
            self.block.extend(word.to_le_bytes());
        }
        self.block.extend(&packet[..kept]);
        if self.block.len() >= BLOCK {
            self.hand_over();
        }
    }

    /// Writes the rest; now errors come to light.
    pub(super) fn finish(mut self) -> Result<(), EmulatorError> {
        self.hand_over();
        self.blocks = None;
        let written = self.writer.join().unwrap_or_else(|_| Err(io::Error::other("panicked")));
        written.map_err(EmulatorError::io(format!("write {}", self.path.display())))
    }

    fn hand_over(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
        if let Some(blocks) = &self.blocks {
            // A writer that has ended has an error for `finish`.
            let _ = blocks.send(block);
        }
    }
}
