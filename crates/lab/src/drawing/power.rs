//! The power of a radio over time, in the way of the papers' figures.

use std::fmt::Write as _;
use std::time::Duration;

use pelton_power::radio::{RadioMachine, Segment, State};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;

/// Active stretches are drawn as their mean over this part of the picture.
const COLUMNS: u32 = 480;

/// Draws what `radio` has kept as SVG: mean power in each small stretch of time, coloured by the
/// state that took most of it. Modelled, and labelled so.
pub fn power_over_time(radio: &RadioMachine) -> String {
    let segments = radio.segments();
    let end = segments.last().map_or(Duration::ZERO, |segment| segment.until.since_start());
    let seconds = end.as_secs_f64().max(1e-3);
    let columns = columns(segments, seconds);
    let most = columns.iter().map(|(watts, _)| *watts).fold(0.1, f64::max) * 1.1;
    let x = |share: f64| LEFT + share * (WIDTH - LEFT - 10.0);
    let y = |watts: f64| HEIGHT - BOTTOM - watts / most * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">{}: {:.2} J in {seconds:.1} s, modelled</text>\n",
        radio.profile().name,
        radio.energy().get(),
    );
    let width = (WIDTH - LEFT - 10.0) / f64::from(COLUMNS);
    for (index, (watts, state)) in columns.iter().enumerate() {
        let (left, top) = (x(index as f64 / f64::from(COLUMNS)), y(*watts));
        // Writing to a String can't fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{}\"/>",
            width + 0.3,
            y(0.0) - top,
            colour(*state),
        );
    }
    for tick in 0..=4_u32 {
        let share = f64::from(tick) / 4.0;
        let (watts, at) = (most * share, seconds * share);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{watts:.2} W</text>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{at:.1} s</text>",
            LEFT - 4.0,
            y(watts) + 4.0,
            x(share).min(WIDTH - 24.0),
            HEIGHT - BOTTOM + 16.0,
        );
    }
    let mut at = LEFT;
    for used in radio.uses() {
        let name = radio.profile().state_name(used.state);
        let _ = writeln!(
            svg,
            "<rect x=\"{at:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\" fill=\"{}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{name} {:.2} J</text>",
            HEIGHT - 16.0,
            colour(used.state),
            at + 14.0,
            HEIGHT - 7.0,
            used.energy.get(),
        );
        at += 40.0 + 7.5 * (name.len() as f64 + 7.0);
    }
    svg.push_str("</svg>\n");
    svg
}

fn colour(state: State) -> &'static str {
    match state {
        State::Idle => "#c8c8c8",
        State::Promotion => "#e69f00",
        State::Shared => "#56b4e9",
        State::Active => "#0072b2",
        State::Tail(0) => "#d55e00",
        State::Tail(1) => "#cc79a7",
        State::Tail(_) => "#f0a98a",
    }
}

/// Mean power in each column, and the state in which most of its energy was drawn.
fn columns(segments: &[Segment], seconds: f64) -> Vec<(f64, State)> {
    let width = seconds / f64::from(COLUMNS);
    let mut columns = vec![(0.0, State::Idle, 0.0); COLUMNS as usize];
    let last = columns.len() - 1;
    for segment in segments {
        let from = segment.from.since_start().as_secs_f64();
        let until = segment.until.since_start().as_secs_f64();
        let first = ((from / width) as usize).min(last);
        let end = ((until / width) as usize).clamp(first, last);
        for (index, column) in columns.iter_mut().enumerate().take(end + 1).skip(first) {
            let begin = index as f64 * width;
            let overlap = until.min(begin + width) - from.max(begin);
            let share = if until > from { overlap.max(0.0) / (until - from) } else { 1.0 };
            let joules = segment.energy.get() * share;
            column.0 += joules;
            if joules > column.2 {
                column.1 = segment.state;
                column.2 = joules;
            }
        }
    }
    columns.into_iter().map(|(joules, state, _)| (joules / width, state)).collect()
}

#[cfg(test)]
mod tests {
    use pelton_algos::time::Timestamp;
    use pelton_algos::units::Bytes;
    use pelton_power::radio::lte;

    use super::*;

    #[test]
    fn no_joule_is_lost_in_columns() {
        let mut radio = RadioMachine::new(lte(), Timestamp::START).drawn();
        radio.on_traffic(Timestamp::from_millis(3_000), Bytes(9_000), Bytes(2_000_000));
        radio.on_traffic(Timestamp::from_millis(5_000), Bytes::ZERO, Bytes::ZERO);
        radio.on_traffic(Timestamp::from_millis(5_000), Bytes(100), Bytes::ZERO);
        radio.finish(Timestamp::from_millis(5_000));
        let seconds = 15.12;
        let drawn: f64 = columns(radio.segments(), seconds).iter().map(|(watts, _)| watts).sum();
        let drawn = drawn * seconds / f64::from(COLUMNS);
        assert!((drawn - radio.energy().get()).abs() < 1e-6, "{drawn} of {}", radio.energy());
        let svg = power_over_time(&radio);
        assert!(svg.contains("long DRX") && svg.contains("modelled") && svg.ends_with("</svg>\n"));
    }
}
