//! The power of a radio over time, in the way of the papers' figures.

use std::fmt::Write as _;
use std::time::Duration;

use pelton_power::radio::{RadioMachine, Segment, State};

use super::axis::{Axis, short};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;

/// Active stretches are drawn as their mean over this part of the picture.
const COLUMNS: u32 = 480;

/// Draws what `radio` has kept as SVG: mean power in each small stretch of time, coloured by the
/// state that took most of it. Modelled, and labelled so. Bytes that pass before the radio has been
/// promoted, as in a recording from another one, show as a high promotion.
pub fn power_over_time(radio: &RadioMachine) -> String {
    let segments = radio.segments();
    let end = segments.last().map_or(Duration::ZERO, |segment| segment.until.since_start());
    let seconds = end.as_secs_f64().max(1e-3);
    let columns = columns(segments, seconds);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">{}: {:.2} J in {seconds:.1} s, modelled</text>\n",
        radio.profile().name,
        radio.energy().get(),
    );
    let power = Axis::linear("W", columns.iter().map(|(watts, _)| *watts));
    draw_grid(&mut svg, &power, seconds);
    draw_columns(&mut svg, &columns, &power);
    draw_legend(&mut svg, radio);
    svg.push_str("</svg>\n");
    svg
}

/// Where a share of the time lies.
fn across(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// Where a share of the axis of power lies.
fn up(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

/// Ticks of both axes with their numbers. Writing to a String can't fail, here and below.
fn draw_grid(svg: &mut String, power: &Axis, seconds: f64) {
    for watts in power.ticks() {
        let y = up(power.share(watts));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} W</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(watts),
        );
    }
    // Without the room that it has for marks, this axis ends with the tail.
    let ticks = Axis::linear("s", [seconds]).ticks().into_iter();
    for at in ticks.filter(|at| *at <= seconds) {
        let (x, y) = (across(at / seconds), up(0.0));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}v5\" stroke=\"#888\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} s</text>",
            y + 18.0,
            short(at),
        );
    }
}

/// One shape for each stretch of columns in the same state.
fn draw_columns(svg: &mut String, columns: &[(f64, State)], power: &Axis) {
    let mut index = 0;
    for stretch in columns.chunk_by(|(_, a), (_, b)| a == b) {
        let x = |index: usize| across(index as f64 / f64::from(COLUMNS));
        let _ = write!(
            svg,
            "<path fill=\"{}\" d=\"M{:.1} {:.1}",
            colour(stretch[0].1),
            x(index),
            up(0.0)
        );
        for (watts, _) in stretch {
            index += 1;
            let _ = write!(svg, "V{:.1}H{:.1}", up(power.share(*watts)), x(index));
        }
        let _ = writeln!(svg, "V{:.1}Z\"/>", up(0.0));
    }
}

fn draw_legend(svg: &mut String, radio: &RadioMachine) {
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

/// Mean power in each column, and the state that took most of its time.
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
            let overlap = (until.min(begin + width) - from.max(begin)).max(0.0);
            let share = if until > from { overlap / (until - from) } else { 1.0 };
            column.0 += segment.energy.get() * share;
            if overlap > column.2 {
                column.1 = segment.state;
                column.2 = overlap;
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
