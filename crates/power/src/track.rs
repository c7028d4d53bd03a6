//! Connection tracking after papers/003 section III: when will the next packet come?
//!
//! A connection is divided into stages: the packets that one round trip brings. From the times of
//! the acknowledgements that leave in a stage, and from the round-trip time and its variance, follows
//! when the next stage begins and ends. Between stages the card may sleep. Pure; fed with packets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use crate::trace::{Direction, Packet, Tcp};

/// "If the window size is within a threshold (currently 90 %) of the bandwidth-delay product for
/// three consecutive bursts, we revert to standard TCP" (section III-E).
const SATURATED_SHARE: f64 = 0.9;
const SATURATED_STAGES: u32 = 3;

/// A stage has not ended before nothing came for this long; the paper sets it "dynamically based on
/// the maximum observed interval between successive acknowledgements", of which this is the least. Assumed:
/// what waking costs ("2 ms in idle time", section IV-A).
const LEAST_SILENCE: Duration = Duration::from_millis(2);

/// Intervals beyond this separate stages and do not tell how packets follow within one. Assumed: less
/// than the shortest round trip of the paper's downloads, 21 ms (Fig 12).
const MOST_SILENCE: Duration = Duration::from_millis(20);

/// What a connection is doing (Fig 1 and 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Packets come, or may come at any time.
    Active,
    /// The last stage is over and the next is predicted.
    Idle,
    /// Nothing more will come.
    Finished,
    /// The link is full: there is no time between stages.
    Saturated,
}

/// A connection's row in the table of Fig 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// What it is doing.
    pub status: Status,
    /// The server, by number.
    pub site: u32,
    /// The present stage, counted from 1 with the first data.
    pub stage: u32,
    /// Packets received in it.
    pub packets: u32,
    /// When the next stage should begin and end.
    pub next: Option<(Timestamp, Timestamp)>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Its variance.
    pub variance: Duration,
    bytes: Bytes,
    full_stages: u32,
    silence: Duration,
    stage_end: Timestamp,
    first_ack: Option<Timestamp>,
    last_ack: Option<Timestamp>,
    last_packet: Timestamp,
    syn_at: Option<Timestamp>,
    request_at: Option<Timestamp>,
    sent_stamps: HashMap<u32, Timestamp>,
}

/// Round-trip times of a site that was visited: "SYN/SYN-ACK time, GET/GET-ACK time, and the last
/// known SRTT" (section III-E).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CachedTimes {
    /// From SYN to SYN-ACK.
    pub syn: Option<Duration>,
    /// From a request to the first packet of its answer.
    pub get: Option<Duration>,
    /// Smoothed round-trip time, and its variance.
    pub srtt: Option<(Duration, Duration)>,
}

/// All connections of a client.
#[derive(Debug, Clone)]
pub struct Tracker {
    bandwidth: BitRate,
    connections: BTreeMap<u32, Connection>,
    /// Those that are not finished. Each packet goes through these alone: a long trace has many of the others.
    alive: BTreeSet<u32>,
    cache: HashMap<u32, CachedTimes>,
}

impl Tracker {
    /// Nothing is tracked yet. `bandwidth` is that of the wireless link.
    pub fn new(bandwidth: BitRate) -> Self {
        Self {
            bandwidth,
            connections: BTreeMap::new(),
            alive: BTreeSet::new(),
            cache: HashMap::new(),
        }
    }

    /// A packet was seen.
    pub fn on_packet(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp else { return };
        self.on_time(packet.at);
        let cached = self.cache.entry(tcp.site).or_default();
        let connection = self
            .connections
            .entry(tcp.flow)
            .or_insert_with(|| Connection::new(tcp.site, packet.at, cached));
        match packet.direction {
            Direction::Sent => connection.on_sent(packet.at, tcp, cached),
            Direction::Received => connection.on_received(packet, tcp, cached),
        }
        if connection.status == Status::Finished {
            self.alive.remove(&tcp.flow);
        } else {
            self.alive.insert(tcp.flow);
        }
    }

    /// Time has passed: stages end and predicted ones begin.
    pub fn on_time(&mut self, now: Timestamp) {
        for flow in &self.alive {
            if let Some(connection) = self.connections.get_mut(flow) {
                connection.on_time(now, self.bandwidth);
            }
        }
    }

    /// A new page is asked for: what is known of sites is out of date.
    pub fn on_new_page(&mut self) {
        self.cache.clear();
    }

    /// Until when the card may sleep: "only when all connections are idle or finished", and then
    /// "until the nearest predicted next stage starting time". `None` while it must be awake;
    /// with every connection finished it may sleep until the client sends again.
    pub fn may_sleep_until(&self) -> Option<Timestamp> {
        let mut nearest = Timestamp::new(Duration::MAX);
        for connection in self.alive() {
            match (connection.status, connection.next) {
                (Status::Idle, Some((start, _))) => nearest = nearest.min(start),
                _ => return None,
            }
        }
        Some(nearest)
    }

    /// The next moment at which a status may change by itself.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.alive().filter_map(Connection::next_timeout).min()
    }

    fn alive(&self) -> impl Iterator<Item = &Connection> {
        self.alive.iter().filter_map(|flow| self.connections.get(flow))
    }

    /// The connections by number.
    pub fn connections(&self) -> &BTreeMap<u32, Connection> {
        &self.connections
    }

    /// What is remembered of a site.
    pub fn cached(&self, site: u32) -> Option<&CachedTimes> {
        self.cache.get(&site)
    }
}

impl Connection {
    fn new(site: u32, now: Timestamp, cached: &CachedTimes) -> Self {
        let (srtt, variance) = cached.srtt.unzip();
        Self {
            status: Status::Active,
            site,
            stage: 0,
            packets: 0,
            next: None,
            srtt,
            variance: variance.unwrap_or_default(),
            bytes: Bytes::ZERO,
            full_stages: 0,
            silence: LEAST_SILENCE,
            stage_end: now,
            first_ack: None,
            last_ack: None,
            last_packet: now,
            syn_at: None,
            request_at: None,
            sent_stamps: HashMap::new(),
        }
    }

    fn on_sent(&mut self, now: Timestamp, tcp: Tcp, cached: &CachedTimes) {
        self.last_packet = now;
        if let Some((value, _)) = tcp.timestamps {
            self.sent_stamps.entry(value).or_insert(now);
        }
        if tcp.end {
            self.status = Status::Finished;
            return;
        }
        if tcp.syn {
            self.syn_at = Some(now);
            self.await_until(now, cached.syn);
        } else if tcp.payload > 0 {
            self.request_at = Some(now);
            self.await_until(now, cached.get);
        } else {
            if let Some(last) = self.last_ack {
                let interval = now.saturating_since(last);
                if interval <= MOST_SILENCE {
                    self.silence = self.silence.max(interval);
                }
            }
            self.first_ack.get_or_insert(now);
            self.last_ack = Some(now);
        }
    }

    /// An answer is due after `time`, if that is known from an earlier visit; else at any moment.
    fn await_until(&mut self, now: Timestamp, time: Option<Duration>) {
        self.first_ack = None;
        self.last_ack = None;
        match time {
            Some(time) => {
                let start = now + time.saturating_sub(self.variance);
                self.next = Some((start, now + time + self.variance));
                self.status = Status::Idle;
            }
            None => self.status = Status::Active,
        }
    }

    fn on_received(&mut self, packet: &Packet, tcp: Tcp, cached: &mut CachedTimes) {
        let now = packet.at;
        self.last_packet = now;
        if tcp.end {
            self.status = Status::Finished;
            return;
        }
        if let Some(rtt) = self.sample(now, tcp) {
            self.take_rtt(rtt);
            cached.srtt = self.srtt.map(|srtt| (srtt, self.variance));
        }
        if let Some(syn_at) = self.syn_at.take().filter(|_| tcp.syn) {
            cached.syn = Some(now - syn_at);
        }
        if tcp.payload == 0 {
            return;
        }
        if let Some(request_at) = self.request_at.take() {
            cached.get = Some(now - request_at);
            self.begin_stage(now);
        } else if self.next.is_some() {
            self.begin_stage(now);
        }
        self.packets += 1;
        self.bytes += packet.bytes;
        if self.status != Status::Saturated {
            self.status = Status::Active;
        }
    }

    fn begin_stage(&mut self, now: Timestamp) {
        self.stage += 1;
        self.packets = 0;
        self.bytes = Bytes::ZERO;
        self.stage_end = self.next.take().map_or(now, |(_, end)| end);
        self.first_ack = None;
        self.last_ack = None;
    }

    /// The round trip that `tcp` shows: from the handshake, or from the echo of a timestamp.
    fn sample(&self, now: Timestamp, tcp: Tcp) -> Option<Duration> {
        if tcp.syn {
            return self.syn_at.map(|at| now - at);
        }
        let (_, echo) = tcp.timestamps?;
        self.sent_stamps.get(&echo).map(|at| now - *at)
    }

    /// Smoothed as TCP does (RFC 6298 section 2): 1/8 of each new value, 1/4 of each deviation.
    fn take_rtt(&mut self, rtt: Duration) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.variance = rtt / 2;
            }
            Some(srtt) => {
                self.variance = self.variance * 3 / 4 + srtt.abs_diff(rtt) / 4;
                self.srtt = Some(srtt * 7 / 8 + rtt / 8);
            }
        }
        self.sent_stamps
            .retain(|_, at| at.since_start() + rtt * 4 >= self.last_packet.since_start());
    }

    fn on_time(&mut self, now: Timestamp, bandwidth: BitRate) {
        match (self.status, self.next) {
            (Status::Idle, Some((start, _))) if now >= start => {
                // The packets of the stage are awaited; the first of them begins it.
                self.status = Status::Active;
            }
            (Status::Active, _) if self.stage_is_over(now) => self.end_stage(now, bandwidth),
            _ => {}
        }
    }

    /// "(1) the predicted ending time of the current stage has passed, and (2) no packet has arrived
    /// for [the threshold] since the last outgoing acknowledgement was sent" (section III-C).
    fn stage_is_over(&self, now: Timestamp) -> bool {
        let silent = now.saturating_since(self.last_packet) >= self.silence;
        self.packets > 0
            && self.next.is_none()
            && self.first_ack.is_some()
            && now >= self.stage_end
            && silent
    }

    /// "start = first + SRTT - VAR and end = last + SRTT + VAR", of the first and last
    /// acknowledgement sent in the stage (section III-C).
    fn end_stage(&mut self, now: Timestamp, bandwidth: BitRate) {
        let (Some(srtt), Some(first), Some(last)) = (self.srtt, self.first_ack, self.last_ack)
        else {
            return;
        };
        let is_full = self.bytes.as_f64() >= (bandwidth * srtt).as_f64() * SATURATED_SHARE;
        self.full_stages = if is_full { self.full_stages + 1 } else { 0 };
        if self.full_stages >= SATURATED_STAGES {
            self.status = Status::Saturated;
            return;
        }
        let start = first + srtt.saturating_sub(self.variance);
        self.next = Some((start, last + srtt + self.variance));
        // "If the next window starts before the current one ends, there is no dead time" (C5).
        if start > now {
            self.status = Status::Idle;
        } else {
            self.begin_stage(now);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        match (self.status, self.next) {
            (Status::Idle, Some((start, _))) => Some(start),
            (Status::Active, None) if self.packets > 0 && self.first_ack.is_some() => {
                Some(self.stage_end.max(self.last_packet + self.silence))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
