//! The three schedulers on the named cases of `pelton_lab::sim::cases`, and EHT with and without its
//! search where that pays.
//!
//! `cargo run -p pelton-lab --example energy_cases [SVG]`; SVG is a file to draw that search into.

use std::error::Error;
use std::time::Duration;

use pelton_lab::sim::cases::{CASES, SEARCH_PAYS};
use pelton_lab::sim::{Ending, comparison};

/// Of the search's case: its windows, and a while of what follows.
const DRAWN: Duration = Duration::from_secs(40);

fn main() -> Result<(), Box<dyn Error>> {
    for case in CASES {
        println!("{}: {}", case.name, case.why);
        let outcomes = case.run()?;
        show(&[("lowe", &outcomes.lowe), ("hat", &outcomes.hat), ("eht", &outcomes.eht)]);
    }
    println!("{}: {}", SEARCH_PAYS.name, SEARCH_PAYS.why);
    let [searched, unsearched] = SEARCH_PAYS.run_search()?;
    show(&[("search", &searched), ("none", &unsearched)]);
    for (at, decision) in &searched.decisions {
        let reason = decision.reason.trim_start_matches("throughput per joule: ");
        println!("  {:>8.3} s  {reason}", at.since_start().as_secs_f64());
        if reason.contains("searched") {
            break;
        }
    }
    if let Some(file) = std::env::args_os().nth(1) {
        let runs = [("with the search", &searched), ("by model alone", &unsearched)];
        let picture = comparison::svg("EHT with and without its search", &runs, DRAWN);
        std::fs::write(file, picture)?;
    }
    Ok(())
}

fn show(endings: &[(&str, &Ending)]) {
    println!("  policy  seconds  joules  rate/joules  connections  segments lost");
    for (name, ending) in endings {
        println!(
            "  {name:<6} {:>8.2} {:>7.3} {:>12.3e} {:>12} {:>9} {:>4}",
            ending.seconds,
            ending.energy.get(),
            ending.throughput_per_joule(),
            ending.connections,
            ending.segments,
            ending.lost_segments,
        );
    }
}
