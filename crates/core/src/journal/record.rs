//! The records of a journal, and which of them can be trusted. Pure.
//!
//! A record is a line: the CRC-32C of its text, a space, the text (JSON), a line end. The last one may
//! be torn; nothing behind a broken one is read. The first names the version that the part belongs
//! to. Ranges come behind the boot they were written in: the kernel keeps what was written until
//! it ends, however the process ends. What an earlier kernel wrote may be lost with the power, in
//! any order, and counts only as far as a later record says that the data was synced.

use std::ops::Range;

use crc_fast::{CrcAlgorithm, checksum};
use pelton_algos::ranges::FileRanges;

use crate::engine::{Resumable, Validator};

/// The version of the format.
const FORMAT: u32 = 2;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// What the part is part of.
    Part { format: u32, url: String, size: u64, validator: Validator },
    /// Who kept the bytes of the ranges that follow.
    Boot { id: String },
    /// A range is there: its first byte and the one behind its last.
    Done { start: u64, end: u64 },
    /// The bytes of the first so many ranges are on the disk.
    Synced { ranges: u64 },
}

impl Record {
    pub(super) fn part(url: &str, part: &Resumable) -> Self {
        let validator = part.validator.clone();
        Self::Part { format: FORMAT, url: url.to_owned(), size: part.size, validator }
    }

    /// The line, its end included.
    pub(super) fn line(&self) -> String {
        sealed(self)
    }
}

/// `record` as a line, its end included.
pub(crate) fn sealed<T: serde::Serialize>(record: &T) -> String {
    let text = serde_json::to_string(record).unwrap_or_default();
    format!("{:08x} {text}\n", crc32c(&text))
}

/// The record of a line that is whole.
pub(crate) fn checked<T: serde::de::DeserializeOwned>(line: &str) -> Option<T> {
    let (crc, text) = line.strip_suffix('\n')?.split_once(' ')?;
    let is_whole = u64::from_str_radix(crc, 16) == Ok(crc32c(text));
    serde_json::from_str(text).ok().filter(|_| is_whole)
}

fn crc32c(text: &str) -> u64 {
    checksum(CrcAlgorithm::Crc32Iscsi, text.as_bytes())
}

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journaled {
    pub(super) url: String,
    /// Without the ranges that can't be trusted.
    pub(super) part: Resumable,
    /// How many bytes of the journal are whole.
    pub(super) length: u64,
    /// How many ranges those hold.
    pub(super) ranges: u64,
}

/// Whether `journal` begins as one does, as far as it goes. The first record may be torn, and what was not
/// yet on the disk when the power failed reads as zeros.
pub(super) fn is_begun(journal: &[u8]) -> bool {
    const CRC_DIGITS: usize = 8;
    const TEXT: &[u8] = br#" {"part":"#;
    let (crc, rest) = journal.split_at(journal.len().min(CRC_DIGITS));
    let is_or_lost = |(byte, expected): (&u8, &u8)| byte == expected || *byte == 0;
    crc.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == 0)
        && rest.iter().zip(TEXT).all(is_or_lost)
}

/// Reads a journal. `boot` is the kernel's present boot, where it is known.
pub(super) fn read(journal: &[u8], boot: Option<&str>) -> Option<Journaled> {
    let mut length = 0;
    let mut records = journal.split_inclusive(|byte| *byte == b'\n').map_while(|line| {
        let record: Record = checked(std::str::from_utf8(line).ok()?)?;
        length += line.len() as u64;
        Some(record)
    });
    let Some(Record::Part { format: FORMAT, url, size, validator }) = records.next() else {
        return None;
    };
    let (mut ranges, mut synced) = (Vec::new(), 0);
    let mut kept_by = None;
    for record in records {
        match record {
            Record::Boot { id } => {
                if kept_by.as_ref() != Some(&id) {
                    forget_unsynced(&mut ranges, synced);
                }
                kept_by = Some(id);
            }
            Record::Done { start, end } if start < end && end <= size => {
                ranges.push(Some(start..end));
            }
            Record::Part { .. } | Record::Done { .. } => return None,
            Record::Synced { ranges } => synced = ranges,
        }
    }
    if boot.is_none() || kept_by.as_deref() != boot {
        forget_unsynced(&mut ranges, synced);
    }
    let mut done = FileRanges::new(Some(size));
    ranges.iter().flatten().for_each(|range| done.mark_done(range.clone()));
    let part = Resumable { size, validator, done: done.done().collect() };
    Some(Journaled { url, part, length, ranges: ranges.len() as u64 })
}

/// Another kernel has taken over. What a later one syncs does not bring back what was lost.
fn forget_unsynced(ranges: &mut [Option<Range<u64>>], synced: u64) {
    let synced = usize::try_from(synced).unwrap_or(usize::MAX).min(ranges.len());
    ranges[synced..].fill(None);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 200;

    fn part() -> Resumable {
        let validator = Validator { etag: Some("\"v1\"".into()), ..Validator::default() };
        Resumable { size: SIZE, validator, done: Vec::new() }
    }

    fn journal(records: &[Record]) -> Vec<u8> {
        let first = Record::part("http://h/a", &part());
        std::iter::once(&first).chain(records).map(Record::line).collect::<String>().into_bytes()
    }

    /// The ranges that `journal` is trusted for.
    fn spans(journal: &[u8], boot: Option<&str>) -> Vec<(u64, u64)> {
        let done = read(journal, boot).unwrap().part.done;
        done.into_iter().map(|range| (range.start, range.end)).collect()
    }

    fn boot(id: &str) -> Record {
        Record::Boot { id: id.into() }
    }

    fn done(start: u64, end: u64) -> Record {
        Record::Done { start, end }
    }

    #[test]
    fn ranges_of_this_boot_are_trusted() {
        let journal = journal(&[boot("b"), done(0, 10), done(10, 20), done(50, 60)]);
        let read = read(&journal, Some("b")).unwrap();
        assert_eq!(read.part.done, [0..20, 50..60]);
        assert_eq!((read.length, read.ranges), (journal.len() as u64, 3));
        assert_eq!((read.url.as_str(), read.part.validator), ("http://h/a", part().validator));
    }

    #[test]
    fn ranges_of_another_boot_are_trusted_as_far_as_they_were_synced() {
        let records =
            [boot("a"), done(0, 10), done(20, 30), Record::Synced { ranges: 1 }, done(40, 50)];
        for now in [Some("b"), None] {
            assert_eq!(spans(&journal(&records), now), [(0, 10)]);
        }
        let later = [&records[..], &[boot("b"), done(60, 70)]].concat();
        assert_eq!(read(&journal(&later), Some("b")).unwrap().part.done, [0..10, 60..70]);
    }

    #[test]
    fn what_is_torn_or_broken_ends_the_journal() {
        let whole = journal(&[boot("b"), done(0, 10), done(10, 20)]);
        let kept = journal(&[boot("b"), done(0, 10)]).len();
        for cut in kept..whole.len() {
            let read = read(&whole[..cut], Some("b")).unwrap();
            assert_eq!(read.length, kept as u64);
            assert_eq!(spans(&whole[..cut], Some("b")), [(0, 10)], "{cut}");
        }
        let mut broken = whole.clone();
        broken[kept - 4] ^= 1;
        assert_eq!(read(&broken, Some("b")).unwrap().part.done, []);
    }

    #[test]
    fn a_journal_is_known_by_its_beginning_however_torn_it_is() {
        let mut whole = journal(&[boot("b"), done(0, 10)]);
        for cut in 0..whole.len() {
            assert!(is_begun(&whole[..cut]), "{cut}");
        }
        whole[4..20].fill(0);
        assert!(is_begun(&whole), "lost with the power");
        for other in ["torn", "{\"format\":1,", "0123 56", "00000000 {\"name\":1}"] {
            assert!(!is_begun(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_is_no_journal_is_none() {
        for wrong in [&b""[..], b"{\"format\":1}", b"00000000 {}\n"] {
            assert_eq!(read(wrong, None), None);
        }
        assert_eq!(read(&journal(&[boot("b"), done(10, SIZE + 1)]), Some("b")), None);
        assert_eq!(read(&journal(&[boot("b"), done(10, 10)]), Some("b")), None);
    }

    /// What a run does to a part and its journal.
    #[derive(Debug, Clone)]
    enum Operation {
        /// Bytes are written and then journaled.
        Write { start: u64, length: u64 },
        /// A sync begins: it covers what is there now.
        BeginSync,
        /// It is over, and the journal says so.
        EndSync,
        /// The process is killed and started again.
        Kill,
        /// The power fails. Of what was not synced, each byte may be lost or not, and the journal
        /// any part of its end.
        PowerLoss { lost: u64, cut: usize },
    }

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let one = prop_oneof![
            6 => (0..SIZE - 1, 1..40_u64).prop_map(|(start, length)| Operation::Write { start, length }),
            2 => Just(Operation::BeginSync),
            2 => Just(Operation::EndSync),
            1 => Just(Operation::Kill),
            1 => (any::<u64>(), 0..400_usize)
                .prop_map(|(lost, cut)| Operation::PowerLoss { lost, cut }),
        ];
        proptest::collection::vec(one, 1..40)
    }

    /// A disk and the memory of the kernel in front of it.
    struct Machine {
        boot: u32,
        journal: Vec<u8>,
        /// The journal as far as it is certainly on the disk.
        journal_synced: usize,
        ranges: u64,
        cached: [bool; SIZE as usize],
        on_disk: [bool; SIZE as usize],
        sync: Option<(u64, [bool; SIZE as usize])>,
    }

    impl Machine {
        fn append(&mut self, record: &Record) {
            self.journal.extend(record.line().bytes());
        }

        /// What a rerun believes, as the program does it: the rest of the journal is cut off.
        fn restart(&mut self) {
            self.sync = None;
            let boot_id = self.boot.to_string();
            let read = read(&self.journal, Some(&boot_id)).expect("the first record was synced");
            for range in &read.part.done {
                for byte in range.clone() {
                    assert!(self.cached[byte as usize], "byte {byte} is trusted and lost");
                }
            }
            self.journal.truncate(read.length as usize);
            self.ranges = read.ranges;
            self.append(&boot(&boot_id));
        }

        fn apply(&mut self, operation: &Operation) {
            match operation {
                Operation::Write { start, length } => {
                    let end = (start + length).min(SIZE);
                    self.cached[*start as usize..end as usize].fill(true);
                    self.append(&done(*start, end));
                    self.ranges += 1;
                }
                Operation::BeginSync => self.sync = Some((self.ranges, self.cached)),
                Operation::EndSync => {
                    let Some((ranges, synced)) = self.sync.take() else { return };
                    for (disk, synced) in self.on_disk.iter_mut().zip(synced) {
                        *disk |= synced;
                    }
                    self.append(&Record::Synced { ranges });
                }
                Operation::Kill => self.restart(),
                Operation::PowerLoss { lost, cut } => {
                    for (byte, cached) in self.cached.iter_mut().enumerate() {
                        *cached &= self.on_disk[byte] || lost >> (byte % 64) & 1 == 0;
                    }
                    self.on_disk = self.cached;
                    let kept = self.journal.len().saturating_sub(*cut).max(self.journal_synced);
                    self.journal.truncate(kept);
                    self.boot += 1;
                    self.restart();
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// However a run ends, nothing is trusted that is not there.
        #[test]
        fn only_what_is_there_is_trusted(operations in operations()) {
            let mut journal = journal(&[]);
            let journal_synced = journal.len();
            journal.extend(boot("0").line().bytes());
            let nothing = [false; SIZE as usize];
            let mut machine = Machine {
                boot: 0, journal, journal_synced, ranges: 0, cached: nothing, on_disk: nothing, sync: None,
            };
            for operation in &operations {
                machine.apply(operation);
            }
            machine.restart();
        }

        #[test]
        fn no_journal_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, None);
            let _ = read(&[journal(&[boot("b")]), bytes].concat(), Some("b"));
        }
    }
}
