//! Work that is the same in every run: `cargo xtask instructions` counts what it costs.
//!
//! With a name it does that work and prints a number that follows from it; without one it prints the
//! names. The package is small, so that counting does not wait for a build of everything.

mod engine;
mod http;
mod lists;
mod ranges;

use std::process::ExitCode;

/// Does some work, and gives a number that shows that it was done.
type Work = fn() -> u64;

/// What is counted, by names that stay. Each takes some ten to some hundred million instructions: beside
/// them the start of a process is nothing, and valgrind is done with them in a second.
const WORKLOADS: [(&str, Work); 6] = [
    ("plan of 100000 files", engine::plan),
    ("events of 4000 files", engine::transfer),
    ("ranges of 64 streams", ranges::split_and_steal),
    ("4000 requests over HTTP/1.1", http::requests),
    ("a listing of 10000 files", lists::listing),
    ("a list of 10000 URLs", lists::urls),
];

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in WORKLOADS {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some((_, work)) = WORKLOADS.iter().find(|(known, _)| *known == name) else {
        eprintln!("there is no work called {name:?}");
        return ExitCode::from(2);
    };
    println!("{}", work());
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_each_work_is_done() {
        let done: Vec<u64> = WORKLOADS.iter().map(|(_, work)| work()).collect();
        assert_eq!(done, [100_000, 4_000, 1 << 28, 4_000 * http::BODY, 10_000, 10_000]);
    }
}
