//! The three schedulers on the named cases of `pelton_lab::sim::cases`.
//!
//! `cargo run -p pelton-lab --example energy_cases`

use std::error::Error;

use pelton_lab::sim::cases::CASES;

fn main() -> Result<(), Box<dyn Error>> {
    for case in CASES {
        println!("{}: {}", case.name, case.why);
        let outcomes = case.run()?;
        println!("  policy  seconds  joules  rate/joules  connections  segments lost");
        for (name, ending) in
            [("lowe", outcomes.lowe), ("hat", outcomes.hat), ("eht", outcomes.eht)]
        {
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
    Ok(())
}
