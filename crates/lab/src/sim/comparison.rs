//! The beginnings of runs as a picture.

use std::time::Duration;

use super::Ending;
use crate::drawing::{self, Axis, Curve, Panel};

/// A point stands for so long, at least.
const STRETCH: Duration = Duration::from_millis(500);

/// The beginnings of runs below each other: channels, goodput, power, and what EHT looks for. `until` it
/// is drawn; joules are modelled.
pub fn svg(title: &str, runs: &[(&str, &Ending)], until: Duration) -> String {
    let curve = |colour: usize, name: &str, points: Vec<(f64, f64)>| Curve {
        name: name.to_owned(),
        points,
        colour,
        is_stepped: true,
    };
    let channels = |ending: &Ending| -> Vec<(f64, f64)> {
        let decisions = ending.decisions.iter().filter(|(at, _)| at.since_start() <= until);
        let mut points: Vec<_> = decisions
            .map(|(at, decision)| {
                (at.since_start().as_secs_f64(), f64::from(decision.max_channels))
            })
            .collect();
        points.extend(points.last().map(|(_, channels)| (until.as_secs_f64(), *channels)));
        points
    };
    let panel = |unit: &str, points: &dyn Fn(&Ending) -> Vec<(f64, f64)>| {
        let curves: Vec<Curve> = runs
            .iter()
            .enumerate()
            .map(|(colour, (name, ending))| curve(colour, name, points(ending)))
            .collect();
        let values = curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value);
        Panel { axis: Axis::linear(unit, values), curves }
    };
    let over = |value: fn(&Stretch) -> f64| {
        move |ending: &Ending| -> Vec<(f64, f64)> {
            stretches(ending, until).iter().map(|stretch| (stretch.from, value(stretch))).collect()
        }
    };
    let panels = [
        panel("channels, as EHT decides", &channels),
        panel("goodput, Mbit/s", &over(|stretch| stretch.bits / stretch.seconds / 1e6)),
        panel("power, W (modelled)", &over(|stretch| stretch.joules / stretch.seconds)),
        panel(
            "rate²/power, Mbit²/s²/W",
            &over(|stretch| {
                let rate = stretch.bits / stretch.seconds / 1e6;
                rate * rate / (stretch.joules / stretch.seconds).max(1e-9)
            }),
        ),
    ];
    let seconds = Axis::linear("s", [until.as_secs_f64() / 1.05]);
    drawing::on_paper(&drawing::curves(title, &seconds, &panels))
}

/// What moved in a stretch of time, and what was drawn.
struct Stretch {
    from: f64,
    seconds: f64,
    bits: f64,
    joules: f64,
}

fn stretches(ending: &Ending, until: Duration) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let (mut at, mut delivered, mut energy) = (Duration::ZERO, 0, 0.0);
    for sample in &ending.samples {
        let now = sample.at.since_start();
        if now > until + STRETCH {
            break;
        }
        if now < at + STRETCH {
            continue;
        }
        stretches.push(Stretch {
            from: at.as_secs_f64(),
            seconds: now.saturating_sub(at).as_secs_f64(),
            bits: (sample.delivered.0 - delivered) as f64 * 8.0,
            joules: sample.energy.get() - energy,
        });
        (at, delivered, energy) = (now, sample.delivered.0, sample.energy.get());
    }
    stretches
}
