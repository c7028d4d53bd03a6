//! The thread between the two TUN devices.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use tun_rs::SyncDevice;

use super::EmulatorError;
use super::device::MTU;
use super::packet::opening_port;
use super::pcap::PacketLog;
use crate::model::{Cause, Direction, LinkModel, Verdict};

/// Packets read from one device before the other has its turn.
const BATCH: usize = 32;

/// How long the pump may take to see that it shall stop.
const STOP_LATENCY: Duration = Duration::from_millis(20);

/// What has passed one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DirectionStats {
    /// Packets that entered it.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets of them that it lost on the way.
    pub lost: u64,
    /// Packets of them for which the queue had no room.
    pub overflowed: u64,
}

/// What has passed the link.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Stats {
    /// From the server to the client.
    pub down: DirectionStats,
    /// From the client to the server.
    pub up: DirectionStats,
    /// TCP connections that the client opened.
    pub connections: u64,
    /// By how much the emulator was at most late with a packet, in seconds.
    pub latest_s: f64,
    /// The share of packets with which it was more than a millisecond late.
    pub late_share: f64,
}

pub(super) struct Pump {
    shared: Arc<Shared>,
    /// Some until it has been stopped.
    thread: Option<JoinHandle<Result<(), EmulatorError>>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    stats: Mutex<Stats>,
}

impl Pump {
    pub(super) fn start(
        model: LinkModel,
        server: SyncDevice,
        client: SyncDevice,
        log: Option<PacketLog>,
    ) -> Result<Self, EmulatorError> {
        let shared = Arc::new(Shared::default());
        let mut worker = Worker {
            shared: Arc::clone(&shared),
            start: None,
            down: Lane::new(model.down),
            up: Lane::new(model.up),
            spare: Vec::new(),
            ports: HashSet::new(),
            delivered: 0,
            late: 0,
            latest: Duration::ZERO,
            log,
        };
        let (ready, started) = channel();
        let thread = thread::Builder::new()
            .name("pump".to_owned())
            .spawn(move || {
                be_punctual();
                // Whoever starts the pump waits for it.
                let _ = ready.send(());
                worker.run(&server, &client)
            })
            .map_err(EmulatorError::io("start a thread"))?;
        // An error means that the thread has ended, which `stop` reports.
        let _ = started.recv();
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn stats(&self) -> Stats {
        *self.shared.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&mut self) -> Result<Stats, EmulatorError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            outcome.unwrap_or_else(|_| {
                Err(EmulatorError::io("carry packets")(io::Error::other("the pump has panicked")))
            })?;
        }
        Ok(self.stats())
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // Who cares for the outcome has called `stop`.
        let _ = self.stop();
    }
}

struct Worker {
    shared: Arc<Shared>,
    /// When the first packet came.
    start: Option<Instant>,
    down: Lane,
    up: Lane,
    /// Buffers that no packet uses.
    spare: Vec<Box<[u8]>>,
    /// The client's ports that have opened a connection.
    ports: HashSet<u16>,
    delivered: u64,
    late: u64,
    latest: Duration,
    log: Option<PacketLog>,
}

/// One direction and the packets on it.
struct Lane {
    model: Direction,
    under_way: VecDeque<Packet>,
    stats: DirectionStats,
}

struct Packet {
    due: Timestamp,
    buffer: Box<[u8]>,
    length: usize,
}

impl Lane {
    fn new(model: Direction) -> Self {
        Self { model, under_way: VecDeque::new(), stats: DirectionStats::default() }
    }

    fn offer(&mut self, now: Timestamp, bytes: usize) -> Verdict {
        let verdict = self.model.offer(now, Bytes(bytes as u64));
        self.stats.packets += 1;
        self.stats.bytes += bytes as u64;
        match verdict {
            Verdict::Dropped(Cause::Lost) => self.stats.lost += 1,
            Verdict::Dropped(Cause::QueueFull) => self.stats.overflowed += 1,
            Verdict::Delivered { .. } => {}
        }
        verdict
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

impl Worker {
    fn run(&mut self, server: &SyncDevice, client: &SyncDevice) -> Result<(), EmulatorError> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let more = self.take(Way::Down, server)? | self.take(Way::Up, client)?;
            self.deliver(Way::Down, client);
            self.deliver(Way::Up, server);
            self.publish();
            if !more {
                self.wait(server, client)?;
            }
        }
        self.log.take().map_or(Ok(()), PacketLog::finish)
    }

    /// Takes what `device` has to send into the model; says whether there may be more.
    fn take(&mut self, way: Way, device: &SyncDevice) -> Result<bool, EmulatorError> {
        for _ in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; usize::from(MTU)].into());
            let length = match device.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.spare.push(buffer);
                    return Ok(false);
                }
                Err(error) => return Err(EmulatorError::io("read from a TUN device")(error)),
            };
            let now = self.now();
            let packet = &buffer[..length];
            if way == Way::Up {
                self.ports.extend(opening_port(packet));
                if let Some(log) = &mut self.log {
                    log.write(now, packet);
                }
            }
            let lane = self.lane(way);
            match lane.offer(now, length) {
                Verdict::Delivered { at } => {
                    lane.under_way.push_back(Packet { due: at, buffer, length });
                }
                Verdict::Dropped(_) => self.spare.push(buffer),
            }
        }
        Ok(true)
    }

    /// Hands over what is due.
    fn deliver(&mut self, way: Way, device: &SyncDevice) {
        while let Some(due) = self.lane(way).under_way.front().map(|packet| packet.due) {
            let now = self.now();
            if due > now {
                break;
            }
            let Some(Packet { buffer, length, .. }) = self.lane(way).under_way.pop_front() else {
                break;
            };
            let packet = &buffer[..length];
            if let (Way::Down, Some(log)) = (way, &mut self.log) {
                log.write(now, packet);
            }
            // Where the kernel has no memory for a packet it is lost, as on any network.
            let _ = device.send(packet);
            self.delivered += 1;
            self.late += u64::from(now - due > Duration::from_millis(1));
            self.latest = self.latest.max(now - due);
            self.spare.push(buffer);
        }
    }

    /// Sleeps until a packet comes or is due.
    fn wait(&self, server: &SyncDevice, client: &SyncDevice) -> Result<(), EmulatorError> {
        let next = [&self.down, &self.up].into_iter().filter_map(|lane| lane.under_way.front());
        let time = match (next.map(|packet| packet.due).min(), self.start) {
            (Some(due), Some(start)) => {
                due.since_start().saturating_sub(start.elapsed()).min(STOP_LATENCY)
            }
            _ => STOP_LATENCY,
        };
        let mut devices = [server, client].map(|device| PollFd::new(device, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut devices, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(EmulatorError::io("wait for packets")(error.into())),
        }
    }

    fn publish(&self) {
        let stats = Stats {
            down: self.down.stats,
            up: self.up.stats,
            connections: self.ports.len() as u64,
            latest_s: self.latest.as_secs_f64(),
            late_share: self.late as f64 / self.delivered.max(1) as f64,
        };
        *self.shared.stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    fn now(&mut self) -> Timestamp {
        Timestamp::new(self.start.get_or_insert_with(Instant::now).elapsed())
    }

    fn lane(&mut self, way: Way) -> &mut Lane {
        match way {
            Way::Down => &mut self.down,
            Way::Up => &mut self.up,
        }
    }
}

/// Timers of this thread end when they should and not up to 50 us later, and it runs as soon as it
/// can, before every ordinary program: it sleeps unless there are packets. Where this is not allowed
/// only the punctuality of packets suffers, which is in the results.
fn be_punctual() {
    let _ = nix::sys::prctl::set_timerslack(1);
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let real_time = ["--fifo", "--pid", "10", &thread];
    let _ = Command::new("chrt").args(real_time).stderr(Stdio::null()).status();
}
