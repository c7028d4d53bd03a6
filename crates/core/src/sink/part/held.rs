//! A short file in memory until it is whole: it gets its name at once, and costs neither a part nor a state.

use std::time::SystemTime;

use super::PartFile;
use crate::Result;
use crate::digest::Hasher;
use crate::sink::files::link_new;

/// Bytes of a file that stays in memory. A run that is killed loses no more of each.
const MOST_HELD: u64 = 32 * 1024;

impl PartFile {
    /// Nobody else has begun the file: its bytes may stay in memory, if they are few.
    pub(in crate::sink) fn is_alone(&mut self) {
        self.may_hold = !self.options.fsync;
    }

    /// The file has `size` bytes in all.
    pub(super) fn hold_if_short(&mut self, size: u64) {
        if self.may_hold && self.file.is_none() && self.held.is_none() && size <= MOST_HELD {
            self.held = Some(Vec::with_capacity(size as usize));
        }
    }

    /// Appends `data`, unless it is to go elsewhere than behind what is there.
    pub(super) fn hold(&mut self, offset: u64, data: &[u8]) -> bool {
        let Some(held) = &mut self.held else { return false };
        let follows = held.len() as u64 == offset;
        let fits = held.len() + data.len() <= MOST_HELD as usize;
        if follows && fits {
            held.extend_from_slice(data);
        }
        follows && fits
    }

    /// What was held goes to the part, as what follows will.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.may_hold = false;
        match self.held.take() {
            Some(held) if !held.is_empty() => self.write_to_part(0, &held),
            _ => Ok(()),
        }
    }

    /// Whether what is held is the whole file and has the digest that was promised.
    pub(super) fn holds_what_was_promised(&self) -> bool {
        let (Some(held), None) = (&self.held, &self.pieces) else { return false };
        self.promised().is_none_or(|promised| {
            let mut hasher = Hasher::new(promised.algorithm);
            hasher.update(held);
            hasher.finish() == promised.value
        })
    }

    /// Gives what is held its name. If that can't be, it goes to the part, which tells why.
    pub(super) fn name_what_is_held(&mut self, modified: Option<SystemTime>) -> Result<bool> {
        let Some(held) = &self.held else { return Ok(false) };
        let is_named = link_new(&self.target, held, modified).is_ok();
        if !is_named {
            self.spill()?;
        }
        Ok(is_named)
    }
}
