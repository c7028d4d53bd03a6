//! `pelton-lab energy`: what recorded packets cost.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pelton_lab::capture::Capture;
use pelton_lab::{capture, drawing};
use pelton_power::Radio;
use pelton_power::device::Device;
use pelton_power::radio::{RadioMachine, RadioProfile};
use pelton_power::sleep::{Card, Outcome, SleepPolicy, Spent, evaluate};
use pelton_power::trace::{Direction, Packet, radio_over, round_trip};

/// Sleep policies wake for each beacon of a trace, also where nothing passes; and what a radio draws for longer is most
/// often that of a wrong clock.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// One in so many packets without its TCP header leaves sleep policies as they are.
const FEW: usize = 10;

/// A card that takes so many times as long as was recorded is told of.
const NOTICED: f64 = 1.01;

/// Joules of a trace: under every sleep policy of papers/003, or of another radio by its states
#[derive(Debug, clap::Args)]
pub(crate) struct EnergyArgs {
    /// A pcap or pcapng file, such as the lab's own packet logs
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// The radio: `wavelan` compares sleep policies, every other one tells its states; also FILE.toml
    /// or FILE.xml
    #[arg(long, value_name = "PROFILE", default_value = "wavelan")]
    profile: String,
    /// Draw the radio's power over time; of `wavelan` that of the card that is always awake
    #[arg(long, value_name = "FILE.svg")]
    trace: Option<PathBuf>,
    /// An address of the client, as many times as it has some; else those of who opened the first
    /// connection, or sent the first packet, over IPv4 and over IPv6
    #[arg(long, value_name = "ADDRESS")]
    client: Vec<IpAddr>,
}

pub(crate) fn run(args: &EnergyArgs) -> Result<ExitCode> {
    if let Some(path) = args.trace.as_ref().filter(|path| !is_svg(path)) {
        bail!("{}: the picture is an SVG: name a file that ends in .svg", path.display());
    }
    let named = || args.file.display().to_string();
    let is_wavelan = args.profile == Radio::Wavelan.name();
    let file = File::open(&args.file).with_context(named)?;
    let capture = capture::read(file, &args.client).with_context(named)?;
    if is_wavelan {
        refuse_headerless(&capture).with_context(named)?;
    }
    for note in notes(&capture) {
        note!("{}: {note}", named());
    }
    refuse_long(&capture).with_context(named)?;
    let packets = capture.packets;
    let profile = profile(&args.profile)?;
    out!("{}", describe(&args.file, &packets));
    let radio = radio_over(profile, &packets);
    if is_wavelan {
        out!("{}", policies(&packets));
    } else {
        out!("{}", states(&radio));
    }
    if let Some(path) = &args.trace {
        fs::write(path, drawing::power_over_time(&radio))
            .with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails where too few of the TCP headers were kept: sleep policies go by connections and round trips.
fn refuse_headerless(capture: &Capture) -> Result<()> {
    let (cut, all) = (capture.headerless, capture.packets.len());
    let is_opening_lost = cut > 0 && round_trip(&capture.packets).is_none();
    if is_opening_lost || cut > all / FEW {
        bail!(
            "the TCP headers of {cut} of {} are cut, and sleep policies go by them: record it again with more of each \
             packet (tcpdump -s 128), or name another --profile",
            packets_in_words(all)
        );
    }
    Ok(())
}

/// Fails where the packets lie more than a day apart, and tells where most of that passes without one.
fn refuse_long(capture: &Capture) -> Result<()> {
    let times = || capture.packets.iter().map(|packet| packet.at.since_start());
    let lasted = times().next_back().unwrap_or_default();
    if lasted <= LONGEST {
        return Ok(());
    }
    let gaps = std::iter::once(Duration::ZERO).chain(times()).zip(times());
    let longest = gaps.max_by_key(|(before, after)| after.saturating_sub(*before));
    let (before, after) = longest.unwrap_or_default();
    let since_1970 = |at: Duration| (capture.began + at).as_secs_f64();
    bail!(
        "it lasts {} s, and a day at most is gone through: nothing passes for {} s between its packets of {:.6} and \
         {:.6} s since 1970; leave out those whose clock was wrong, or cut it (editcap -A and -B)",
        lasted.as_secs(),
        after.saturating_sub(before).as_secs(),
        since_1970(before),
        since_1970(after),
    )
}

/// What whoever reads the joules has to know of `capture`.
fn notes(capture: &Capture) -> Vec<String> {
    let Capture { clients, guessed, others, within, headerless, is_cut, .. } = capture;
    let mut notes = Vec::new();
    if *is_cut {
        notes.push("it ends in the middle of a packet; those before it count".to_owned());
    }
    if let [one, other] = clients[..] {
        notes.push(format!("the client has the addresses {one} and {other}"));
    }
    for client in guessed {
        let family = if client.is_ipv4() { "IPv4" } else { "IPv6" };
        notes.push(format!(
            "no connection is opened over {family}: {client}, which sends first, is taken for the client (--client)"
        ));
    }
    if *others > 0 {
        let clients: Vec<String> = clients.iter().map(IpAddr::to_string).collect();
        let clients = clients.join(" and ");
        notes.push(format!(
            "{} of others than {clients} left out (--client, once for each address)",
            packets_in_words(*others)
        ));
    }
    if *headerless > 0 {
        notes.push(format!(
            "the TCP headers of {headerless} of {} are cut: whose connections those are is not known (tcpdump -s 128 \
             keeps them)",
            packets_in_words(capture.packets.len())
        ));
    }
    if *within > 0 {
        notes.push(format!(
            "both ends of {} have the client's address, as on a loopback interface: who opened a connection is taken \
             for the client, else who has the higher port",
            packets_in_words(*within)
        ));
    }
    notes
}

fn packets_in_words(count: usize) -> String {
    format!("{count} {}", if count == 1 { "packet" } else { "packets" })
}

fn is_svg(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
}

fn profile(name: &str) -> Result<RadioProfile> {
    if name.contains('.') {
        return Ok(Device::load(name)?.radio);
    }
    let radio: Radio = name.parse()?;
    radio.profile().context("none is no radio: name one")
}

fn describe(file: &Path, packets: &[Packet]) -> String {
    let end = packets.last().map_or(0.0, |packet| packet.at.since_start().as_secs_f64());
    let bytes = |direction| -> u64 {
        let those = packets.iter().filter(|packet| packet.direction == direction);
        those.map(|packet| packet.bytes.0).sum()
    };
    let (received, sent) = (bytes(Direction::Received), bytes(Direction::Sent));
    let name = file.display();
    let packets = packets_in_words(packets.len());
    format!("{name}: {packets} in {end:.2} s, {received} bytes received, {sent} sent\n")
}

/// The card and its numbers.
pub(super) fn in_words(card: &Card) -> String {
    let Card { idle, receive, transmit, sleep, wake, rate, .. } = card;
    format!(
        "wavelan (papers/003 section IV-A): {idle} idle, {receive} receiving, {transmit} sending, {sleep} \
         asleep, {} ms to wake, {rate}",
        wake.as_millis()
    )
}

fn policies(packets: &[Packet]) -> String {
    let card = Card::wavelan();
    let rtt = round_trip(packets);
    let told = rtt.map_or_else(
        || "unknown, for no answer to the opening of a connection is there: taken as 0".to_owned(),
        |rtt| format!("{:.1} ms", rtt.as_secs_f64() * 1e3),
    );
    let rtt = rtt.unwrap_or_default();
    let mut text = format!("{}; round trip {told}; joules are modelled\n", in_words(&card));
    let awake = evaluate(packets, &card, SleepPolicy::AlwaysAwake, rtt);
    text.extend(stretched(packets, &card, awake.duration));
    text.push_str(
        "policy             seconds   joules   mean W  vs awake |    idle receive    send   sleep    wake | missed\n",
    );
    let awake = awake.energy().get();
    for policy in SleepPolicy::ALL {
        let outcome = evaluate(packets, &card, policy, rtt);
        let (seconds, joules) = (outcome.duration.as_secs_f64(), outcome.energy().get());
        let Outcome { idle, receive, transmit, sleep, wake, missed, .. } = outcome;
        let parts = [idle, receive, transmit, sleep, wake].map(|spent: Spent| spent.energy.get());
        let [idle, receive, send, sleep, wake] = parts;
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{:<18} {seconds:>7.2} {joules:>8.3} {:>8.3} {:>8.1}% | {idle:>7.3} {receive:>7.3} {send:>7.3} \
             {sleep:>7.3} {wake:>7.3} | {missed:>6}",
            policy.name(),
            joules / seconds.max(1e-9),
            (joules / awake.max(1e-9) - 1.0) * 100.0,
        );
    }
    text
}

/// What is said where packets come faster than the card passes them: `took` seconds count, and not the recorded ones.
fn stretched(packets: &[Packet], card: &Card, took: Duration) -> Option<String> {
    let (first, last) = (packets.first()?, packets.last()?);
    let recorded = last.at - first.at + last.bytes / card.rate;
    (took > recorded.mul_f64(NOTICED)).then(|| {
        format!(
            "its packets come faster than the card's {}: one after the other they take {:.2} s, and were recorded in {:.2}\n",
            card.rate,
            took.as_secs_f64(),
            recorded.as_secs_f64(),
        )
    })
}

fn states(radio: &RadioMachine) -> String {
    let profile = radio.profile();
    let mut text = format!("{} ({}); joules are modelled\n", profile.name, profile.origin);
    for used in radio.uses() {
        let _ = writeln!(
            text,
            "{:<22} {:>9.3} s {:>9.3} J",
            profile.state_name(used.state),
            used.duration.as_secs_f64(),
            used.energy.get(),
        );
    }
    let note = if radio.extrapolates() { ", beyond the rate that it was fitted to" } else { "" };
    let _ = writeln!(text, "{:<34} {:>9.3} J{note}", "in all", radio.energy().get());
    text
}
