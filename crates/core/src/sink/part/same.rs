//! A file that is there already, of which the server tells neither size nor date: whether it is the same shows when all
//! bytes have come.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::PartFile;
use crate::sink::io_failure;
use crate::{Error, ErrorKind, Result};

impl PartFile {
    /// Whether what is there stays, and what comes is only compared with it.
    pub(super) const fn compares(&self) -> bool {
        self.replaces && !self.options.overwrite
    }

    /// What has come goes, and what is there stays. It is an error if they differ.
    pub(super) fn keep_if_same(&mut self) -> Result<()> {
        self.spill()?;
        self.opened_whole()?;
        let is_same = have_same_bytes(&self.part, &self.target)
            .map_err(|error| io_failure(&self.part, "can't be compared", error));
        self.remove();
        if is_same? {
            return Ok(());
        }
        let message = format!(
            "{}: exists with other bytes than the server's; use `overwrite` to replace it",
            self.target.display()
        );
        Err(Error::new(ErrorKind::Exists, message))
    }
}

fn have_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let both = left.len().min(right.len());
        if left[..both] != right[..both] {
            return Ok(false);
        }
        if both == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(both);
        other.consume(both);
    }
}
