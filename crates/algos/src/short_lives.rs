//! Connections over HTTP/2 that their server ends after few answers.

/// A connection that gives no more answers is not worth its handshakes where others may be had that are not shared: of nginx
/// that ends each after ten (`keepalive_requests`) 1000 short files came in two thirds of the time over HTTP/1.1, and at twenty
/// in as much.
const FEW_ANSWERS: u32 = 10;

/// So many times in a row one was opened after another had ended: those that are open at a time may all end for once.
const GENERATIONS: u32 = 3;

/// Finds out whether connections of an origin live for too few answers to be shared.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShortLives {
    generations: u32,
    /// The newest connection there was when one of the last generation ended.
    newest: u64,
}

impl ShortLives {
    /// The connection number `id` ends after so many `answers`, and requests that it did not answer have to be made again;
    /// `newest` is the highest number there is, and `is_silent` says that none has given any answer. Returns whether so few are
    /// what all of them give.
    pub fn on_end(&mut self, id: u64, newest: u64, answers: u32, is_silent: bool) -> bool {
        if answers > FEW_ANSWERS {
            self.generations = 0;
        }
        let is_next = self.generations == 0 || id > self.newest;
        // One that has answered nothing beside others may have been one too many.
        let is_short = answers <= FEW_ANSWERS && (answers > 0 || is_silent);
        if is_short && is_next {
            self.generations += 1;
            self.newest = newest;
        }
        self.generations >= GENERATIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_generations_of_few_answers_tell() {
        let mut lives = ShortLives::default();
        for id in 1..=8 {
            assert!(!lives.on_end(id, 8, 1, false), "these were open together");
        }
        assert!(!lives.on_end(9, 12, 10, false) && !lives.on_end(12, 12, 1, false));
        assert!(!lives.on_end(13, 14, 0, false), "for another reason");
        assert!(lives.on_end(15, 15, 2, false));
    }

    #[test]
    fn connections_that_give_none_tell_where_nothing_was_answered() {
        let mut lives = ShortLives::default();
        assert!(!(1..9).any(|id| lives.on_end(id, id, 0, false)));
        assert!(!lives.on_end(9, 9, 0, true) && !lives.on_end(10, 10, 0, true));
        assert!(lives.on_end(11, 11, 0, true));
    }

    #[test]
    fn one_that_gives_many_tells_otherwise() {
        let mut lives = ShortLives::default();
        assert!(!lives.on_end(1, 1, 1, false) && !lives.on_end(2, 2, 1, false));
        assert!(
            !lives.on_end(3, 3, 11, false)
                && !lives.on_end(4, 4, 1, false)
                && !lives.on_end(5, 5, 1, false)
        );
        assert!(lives.on_end(6, 6, 1, false));
    }
}
