//! Files of a run as they are opened, verified and finished.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pelton_algos::time::Timestamp;
use tokio::time::Instant;

use super::Run;
use crate::engine::{Event, Existing, FileId, Opened, Resumable};
use crate::fetch::SharedOutput;
use crate::sink::{Damage, Output};
use crate::{Error, ErrorKind, Result};

/// What can't be opened to finish a file is tried again for so long, so often.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

impl Run {
    pub(super) fn open(&mut self, now: Timestamp, file: FileId) {
        self.driver.recorder.file_started(now, file, &self.driver.engine);
        let (opened, output) = self.driver.sink.open(self.driver.engine.spec(file));
        if let Opened::Part(part) = &opened {
            let bytes = part.done.iter().map(|range| range.end.saturating_sub(range.start)).sum();
            self.driver.recorder.resumed(file, bytes);
        }
        let is_verifiable = self.driver.engine.spec(file).is_verifiable();
        match opened {
            Opened::Existing(existing) if is_verifiable => self.verify(file, existing, output),
            opened => {
                self.outputs.insert(file, Rc::new(RefCell::new(Some(output))));
                self.driver.mailbox.put(Event::Opened { file, opened });
            }
        }
    }

    /// Looks on a thread of its own whether what is there has the digest that was promised.
    fn verify(&mut self, file: FileId, existing: Existing, output: Box<dyn Output>) {
        let shared: SharedOutput = Rc::default();
        self.outputs.insert(file, Rc::clone(&shared));
        let mailbox = Rc::clone(&self.driver.mailbox);
        tokio::task::spawn_local(async move {
            let verified = tokio::task::spawn_blocking(move || (output.verify_existing(), output));
            let opened = match verified.await {
                Ok((Ok(is_same), output)) => {
                    *shared.borrow_mut() = Some(output);
                    let size = existing.size;
                    if is_same { Opened::Verified { size } } else { Opened::Existing(existing) }
                }
                Ok((Err(error), _)) => Opened::Failed(error.into()),
                Err(error) => {
                    let failed = Error::new(ErrorKind::Internal, "a digest was not made");
                    Opened::Failed(failed.with_source(error).into())
                }
            };
            mailbox.put(Event::Opened { file, opened });
        });
    }

    pub(super) fn finish(&mut self, file: FileId, modified: Option<SystemTime>) {
        let mailbox = Rc::clone(&self.driver.mailbox);
        let shared = self.outputs.get(&file).map(Rc::clone).unwrap_or_default();
        let Some(output) = shared.borrow_mut().take() else {
            let error = Error::new(ErrorKind::Internal, "a file was finished twice");
            mailbox.put(Event::Finished { file, result: Err(error.into()) });
            return;
        };
        let part = self.driver.engine.resumable(file);
        let tell = move |checked: Checked| {
            mailbox.put(match checked {
                Checked::Finished(result) => {
                    Event::Finished { file, result: result.map_err(Into::into) }
                }
                Checked::Later(_, error) => Event::Finished { file, result: Err(error.into()) },
                Checked::Damaged(output, Damage { ranges, failure }) => {
                    *shared.borrow_mut() = Some(output);
                    Event::Damaged { file, ranges, failure: failure.into() }
                }
            });
        };
        if output.finish_takes_long() {
            tokio::task::spawn_local(async move {
                tell(finish_when_possible(output, modified, part).await);
            });
            return;
        }
        match check_and_finish(output, modified, part.as_ref()) {
            Checked::Later(output, _) => drop(tokio::task::spawn_local(async move {
                tell(finish_when_possible(output, modified, part).await);
            })),
            checked => tell(checked),
        }
    }

    pub(super) fn take_output(&mut self, file: FileId) -> Option<Box<dyn crate::sink::Output>> {
        let output = self.outputs.remove(&file)?;
        output.borrow_mut().take()
    }
}

/// What became of a file that is to be finished.
enum Checked {
    Finished(Result<()>),
    Damaged(Box<dyn Output>, Damage),
    /// Too much else is open.
    Later(Box<dyn Output>, Error),
}

/// Checks and finishes on a thread of its own. Where too much else is open it is tried again: other files, and other runs of
/// this process, end meanwhile.
async fn finish_when_possible(
    mut output: Box<dyn Output>,
    modified: Option<SystemTime>,
    part: Option<Resumable>,
) -> Checked {
    let part = Arc::new(part);
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let of_part = Arc::clone(&part);
        let check = move || check_and_finish(output, modified, (*of_part).as_ref());
        let checked = tokio::task::spawn_blocking(check).await.unwrap_or_else(|panic| {
            let error = Error::new(ErrorKind::Internal, "verifying a file failed");
            Checked::Finished(Err(error.with_source(panic)))
        });
        output = match checked {
            Checked::Later(output, error) if Instant::now() >= give_up_at => {
                output.abandon((*part).as_ref());
                return Checked::Finished(Err(error));
            }
            Checked::Later(output, _) => output,
            checked => return checked,
        };
        tokio::time::sleep(PAUSE).await;
    }
}

fn check_and_finish(
    mut output: Box<dyn Output>,
    modified: Option<SystemTime>,
    part: Option<&Resumable>,
) -> Checked {
    match output.verify() {
        Ok(None) => Checked::Finished(output.finish(modified, part)),
        Ok(Some(damage)) => Checked::Damaged(output, damage),
        Err(error) if error.kind() == ErrorKind::Descriptors => Checked::Later(output, error),
        Err(error) => {
            output.abandon(part);
            Checked::Finished(Err(error))
        }
    }
}
