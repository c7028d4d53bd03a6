//! The command `pelton`.
mod args;
mod config;
mod exit;
mod values;

fn main() {
    let r = config::parse(std::env::args_os().collect(), config::Surroundings::of_process);
    match r { Ok(c) => println!("{c:?}"), Err(config::Refusal::Clap(e)) => e.exit(), Err(config::Refusal::Setting(e)) => {exit::fail(&e);} }
}
