//! A bench power meter (Yokogawa WT210 class) that speaks SCPI over TCP or a serial line.

mod line;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pelton_algos::time::Timestamp;
use pelton_algos::units::Joules;

use self::line::Line;
use super::sum::Trapezium;
use crate::meter::{
    MeterError, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};

/// The WT210 gives up to ten readings a second (papers/001 section III).
const INTERVAL: Duration = Duration::from_millis(100);

/// An instrument that needs longer for an answer is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks for the values that the instrument is set to show.
const QUERY: &str = ":MEAS:VAL?\n";

/// So many characters of a wrong answer are shown.
const SHOWN: usize = 60;

/// A power meter in the supply line of the device, asked on a thread of its own, so that its time is that of its answers. Set it up so that the first value it tells is power in watts.
///
/// Clones share the connection. It ends when the last of them is dropped.
#[derive(Clone)]
pub struct Scpi {
    address: String,
    shared: Arc<Mutex<Log>>,
    began: Option<Began>,
    last: Reading,
}

/// What the instrument told so far.
#[derive(Debug, Default)]
struct Log {
    sum: Trapezium,
    /// The longest time between two values.
    gap: Duration,
    lost: Option<String>,
}

impl Log {
    /// What is of no use is left out: the next answer bridges it, and the time of the last stays behind.
    fn note(&mut self, at: Timestamp, watts: f64) {
        let before = self.sum.at().unwrap_or_default();
        if self.sum.add(at, watts).is_ok() {
            self.gap = self.gap.max(at.saturating_since(before));
        }
    }

    /// For how long it may tell nothing new before that says that it has stopped.
    fn patience(&self, resolution: &Resolution) -> Duration {
        resolution.longest_silence().max(self.gap * USUAL_GAPS).min(PATIENCE)
    }
}

/// An instrument that takes longer than it should for its answers is given so many times as long.
const USUAL_GAPS: u32 = 2;

/// Where this meter's run began in the log.
#[derive(Debug, Clone, Copy)]
struct Began {
    at: Timestamp,
    log_at: Timestamp,
    energy: Joules,
}

impl fmt::Debug for Scpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scpi").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Scpi {
    /// Connects to the instrument at `address`, which is `HOST:PORT` or the path of a serial device, and
    /// takes a first reading. A device keeps the speed that it has, 9600 baud on a fresh Linux as on
    /// a fresh WT210; `stty -F DEVICE SPEED` sets another.
    ///
    /// # Errors
    /// Nobody answers there, or the answer is no number.
    pub fn connect(address: &str) -> Result<Self, MeterError> {
        let name = format!("scpi {address}");
        let unreadable = |reason: String| MeterError::unreadable(&name, reason);
        let mut line = Line::open(address).map_err(unreadable)?;
        let first = line.ask().map_err(unreadable)?;
        let mut log = Log::default();
        let watts = parse(&first).ok_or("no number");
        watts
            .and_then(|watts| log.sum.add(Timestamp::START, watts))
            .map_err(|why| unreadable(format!("it answered {:?}, {why}", shortened(&first))))?;
        let shared = Arc::new(Mutex::new(log));
        let log = Arc::downgrade(&shared);
        let follower = thread::Builder::new().name("pelton-scpi".to_owned());
        follower
            .spawn(move || follow(line, &log))
            .map_err(|error| unreadable(format!("no thread for it: {error}")))?;
        let last = Reading { at: Timestamp::START, total: Joules::ZERO, parts: None };
        Ok(Self { address: address.to_owned(), shared, began: None, last })
    }

    fn name(&self) -> String {
        format!("scpi {}", self.address)
    }
}

/// The first value of an answer.
fn parse(answer: &str) -> Option<f64> {
    let first = answer.trim().split([',', ';']).next()?;
    first.trim().parse().ok()
}

/// An answer as it is shown.
fn shortened(answer: &str) -> &str {
    let answer = answer.trim();
    answer.char_indices().nth(SHOWN).map_or(answer, |(end, _)| &answer[..end])
}

/// Asks on until nobody wants to know, or the instrument is gone.
fn follow(mut line: Line, log: &Weak<Mutex<Log>>) {
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        let answer = line.ask();
        let Some(log) = log.upgrade() else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(answer) => {
                if let Some(watts) = parse(&answer) {
                    log.note(Timestamp::new(began.elapsed()), watts);
                }
            }
            Err(reason) => {
                log.lost = Some(reason);
                return;
            }
        }
        drop(log);
        thread::sleep(INTERVAL.saturating_sub(asked.elapsed()));
    }
}

impl PowerMeter for Scpi {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Measured, name: self.name() }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn resolution(&self) -> Resolution {
        // 0.1 % of a watt over an interval: the WT210's basic accuracy.
        Resolution { interval: INTERVAL, step: Joules::new(1e-4) }
    }

    /// The energy until the instrument's last answer, which is up to an interval ago.
    fn read(&mut self, now: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let log = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = &log.lost {
            return Err(MeterError::unreadable(&self.name(), reason.clone()));
        }
        let energy = log.sum.total();
        let log_at = log.sum.at().unwrap_or_default();
        let began = *self.began.get_or_insert(Began { at: now, log_at, energy });
        let at = began.at + (log_at - began.log_at);
        let total = energy.saturating_sub(began.energy);
        self.last = Reading { at: at.max(self.last.at), total, parts: None };
        Ok(self.last)
    }

    /// Since the last answer the power is taken to be what that told.
    fn finish(&mut self, now: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
        let reading = self.read(now, traffic)?;
        let since = now.saturating_since(reading.at);
        let log = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(power) = log.sum.power().filter(|_| since <= log.patience(&self.resolution())) {
            self.last = Reading {
                at: now.max(reading.at),
                total: reading.total + power * since,
                ..reading
            };
        }
        Ok(self.last)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// An instrument that answers with `answers`, one each query, then hangs up; it tells when.
    fn instrument(answers: &'static [&'static str]) -> (String, mpsc::Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            serve(stream, answers);
            done.send(()).unwrap();
        });
        (address, is_done)
    }

    fn serve(stream: impl Read + Write, answers: &[&str]) {
        let mut stream = BufReader::new(stream);
        for answer in answers {
            let mut query = String::new();
            stream.read_line(&mut query).unwrap();
            assert_eq!(query, QUERY);
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
        let mut query = String::new();
        stream.read_line(&mut query).unwrap();
    }

    /// A serial line with an instrument at its other end, which stays there and falls silent.
    fn serial_instrument(answers: &'static [&'static str]) -> (String, mpsc::Receiver<OwnedFd>) {
        let line = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&line).unwrap();
        unlockpt(&line).unwrap();
        let path = ptsname(&line, Vec::new()).unwrap().into_string().unwrap();
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            serve(std::fs::File::from(line.try_clone().unwrap()), answers);
            let _ = done.send(line);
        });
        (path, is_done)
    }

    #[test]
    fn a_serial_line_is_asked_as_tcp_is() {
        let (path, done) = serial_instrument(&["2.0E+00\r\n", "2.0E+00\r\n", "2.0E+00\r\n"]);
        let mut meter = Scpi::connect(&path).unwrap();
        assert_eq!(meter.source().name, format!("scpi {path}"));
        meter.read(Timestamp::START, &Traffic::default()).unwrap();
        let _line = done.recv_timeout(Duration::from_secs(10)).unwrap();
        let log = meter.shared.lock().unwrap();
        let (energy, at) = (log.sum.total().get(), log.sum.at().unwrap().since_start());
        assert!((energy - 2.0 * at.as_secs_f64()).abs() < 0.2 && energy > 0.0, "{energy} J");
    }

    #[test]
    fn a_path_that_is_no_serial_line_is_said() {
        let error = Scpi::connect("/dev/null").unwrap_err().to_string();
        assert!(error.contains("scpi /dev/null"), "{error}");
        assert!(Scpi::connect("/dev/no-such-line").is_err());
    }

    #[test]
    fn answers_are_integrated_and_an_instrument_that_vanishes_is_said() {
        let (address, done) =
            instrument(&["2.0E+00\n", "2.0E+00\n", "9.91E+37\n", "2.0E+00,0.5\n"]);
        let mut meter = Scpi::connect(&address).unwrap();
        let shared = Arc::clone(&meter.shared);
        done.recv_timeout(Duration::from_secs(10)).unwrap();
        // The sample that is not a number is bridged: 2 W from the first sample to the third.
        let (energy, at) = {
            let log = shared.lock().unwrap();
            (log.sum.total().get(), log.sum.at().unwrap().since_start().as_secs_f64())
        };
        assert!(energy > 0.0 && (energy - 2.0 * at).abs() < 0.2, "{energy} J in {at} s");
        let error = loop {
            if let Err(error) = meter.read(Timestamp::START, &Traffic::default()) {
                break error.to_string();
            }
            thread::yield_now();
        };
        assert!(error.contains("closed the connection"), "{error}");
    }

    #[test]
    fn an_instrument_that_says_no_number_is_refused() {
        let (address, _done) = instrument(&["ERROR -113\n"]);
        let error = Scpi::connect(&address).unwrap_err().to_string();
        assert!(error.contains("no number"), "{error}");
    }

    #[test]
    fn what_was_drawn_since_the_last_answer_counts_at_the_end() {
        let (path, done) = serial_instrument(&["2.0\n"]);
        let mut meter = Scpi::connect(&path).unwrap();
        // It is asked again and stays silent.
        let _line = done.recv_timeout(Duration::from_secs(10)).unwrap();
        meter.read(Timestamp::START, &Traffic::default()).unwrap();
        let mut finish = |millis| {
            let end = Timestamp::from_millis(millis);
            let reading = meter.finish(end, &Traffic::default()).unwrap();
            (reading.at == end).then_some(reading.total.get())
        };
        let joules = finish(800).unwrap();
        assert!((joules - 1.6).abs() < 1e-6, "{joules}");
        assert_eq!(finish(1_700), None, "it has stopped, and what it draws is not known");
    }

    #[test]
    fn an_instrument_without_a_reading_is_refused() {
        for (answer, why) in
            [("9.91E+37\n", "no reading"), ("NAN\n", "no number"), ("-3.0\n", "leads")]
        {
            let (address, _done) = instrument(Box::leak(Box::new([answer])));
            let error = Scpi::connect(&address).unwrap_err().to_string();
            assert!(error.contains(why), "{answer}: {error}");
        }
    }

    #[test]
    fn an_instrument_that_never_ends_a_line_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(&[b'1'; 4096]).is_ok() {}
        });
        let error = Scpi::connect(&address).unwrap_err().to_string();
        assert!(error.contains("no end of a line"), "{error}");
    }

    #[test]
    fn nobody_there_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        assert!(Scpi::connect(&address).unwrap_err().to_string().contains(&address));
    }

    #[test]
    fn the_first_value_of_an_answer_counts() {
        assert_eq!(parse(" 12.5E-01, 3, 4\r\n"), Some(1.25));
        assert_eq!(parse(""), None);
    }
}
