//! What papers/001 says of its figures, and what is found here.

use std::fmt;

use super::points::{PLACES, Place, Point, SETS, find};
use super::sweep::{CONCURRENCY, PARALLELISM, way};

/// The sets of Fig 4: the mix of all kinds, and small files alone.
pub const COMPARED_SETS: [&str; 2] = ["mixed", "small"];

/// A sentence of the paper beside our numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The paper's words, shortened.
    pub paper: &'static str,
    /// Ours, place by place.
    pub ours: Vec<(String, String)>,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "paper: {}", self.paper)?;
        for (place, found) in &self.ours {
            writeln!(f, " here: {place}: {found}")?;
        }
        Ok(())
    }
}

/// What `find` has to say in each place; silent where points are missing.
fn everywhere(paper: &'static str, find: impl Fn(&Place) -> Option<String>) -> Claim {
    let ours = PLACES.iter().filter_map(|place| Some((place.name.to_owned(), find(place)?)));
    Claim { paper, ours: ours.collect() }
}

/// What `find` has to say of each kind of files in each place.
fn of_each_set(paper: &'static str, find: impl Fn(&Place, &str) -> Option<String>) -> Claim {
    everywhere(paper, |place| {
        let parts = SETS.iter().filter_map(|(kind, set)| {
            let found = find(place, set)?;
            Some(format!("{kind} {found}"))
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    })
}

/// From one point to another: how many times the throughput, and the change of energy.
fn change(from: &Point, to: &Point) -> String {
    format!("{:.2} x throughput, {} energy", to.mbps() / from.mbps(), percent(from, to))
}

fn percent(from: &Point, to: &Point) -> String {
    format!("{:+.0} %", 100.0 * (to.joules.median / from.joules.median - 1.0))
}

/// Fig 2.
pub fn sweeps_single(points: &[Point]) -> Vec<Claim> {
    let at = |place: &Place, set: &str, cc, p| find(points, place.link, set, &way(cc, p));
    vec![
        of_each_set(
            "concurrency from 1 to 32 boosts the throughput of all file types and reduces energy (Fig 2a)",
            |place, set| Some(change(at(place, set, 1, 1)?, at(place, set, 32, 1)?)),
        ),
        of_each_set(
            "parallelism improves the throughput of video and reduces its energy up to a level; other types differ (Fig 2b)",
            |place, set| {
                let one = at(place, set, 1, 1)?;
                let all = PARALLELISM.iter().filter_map(|&p| Some((p, at(place, set, 1, p)?)));
                let (p, best) =
                    all.min_by(|a, b| a.1.joules.median.total_cmp(&b.1.joules.median))?;
                let eight = at(place, set, 1, 8)?;
                Some(format!(
                    "p 8: {}; least energy at p {p} ({})",
                    change(one, eight),
                    percent(one, best)
                ))
            },
        ),
    ]
}

/// Fig 3.
pub fn sweeps_combined(points: &[Point]) -> Vec<Claim> {
    let at = |place: &Place, set: &str, cc, p| find(points, place.link, set, &way(cc, p));
    let of = |place: &Place, set: &str| -> Vec<&Point> {
        points
            .iter()
            .filter(|point| (point.link.as_str(), point.set.as_str()) == (place.link, set))
            .collect()
    };
    vec![
        of_each_set("combined parameters save up to 81 % of the energy", |place, set| {
            let one = at(place, set, 1, 1)?;
            let points = of(place, set);
            let best =
                points.into_iter().min_by(|a, b| a.joules.median.total_cmp(&b.joules.median))?;
            Some(format!("{} with {}", percent(one, best), best.way))
        }),
        of_each_set("they bring up to 8.5 x the throughput", |place, set| {
            let one = at(place, set, 1, 1)?;
            let points = of(place, set);
            let best = points.into_iter().max_by(|a, b| a.mbps().total_cmp(&b.mbps()))?;
            Some(format!("{:.1} x with {}", best.mbps() / one.mbps(), best.way))
        }),
        of_each_set(
            "energy per 100 MB of HTML and images grows with parallelism at the same concurrency",
            |place, set| {
                let grows = |cc: &&u32| {
                    let pair = at(place, set, **cc, 1).zip(at(place, set, **cc, 8));
                    pair.is_some_and(|(one, eight)| eight.per_100_mb() > one.per_100_mb())
                };
                let count = CONCURRENCY.iter().filter(grows).count();
                Some(format!("more at p 8 than at p 1 in {count} of {} levels", CONCURRENCY.len()))
            },
        ),
        of_each_set("concurrency shows its effect at each level of parallelism", |place, set| {
            let factor =
                |p: &u32| Some(at(place, set, 32, *p)?.mbps() / at(place, set, 1, *p)?.mbps());
            let factors: Vec<String> =
                PARALLELISM.iter().filter_map(factor).map(|f| format!("{f:.1}")).collect();
            (!factors.is_empty())
                .then(|| format!("cc 32 over cc 1 at p 1, 2, 4, 8: {} x", factors.join(", ")))
        }),
    ]
}

/// Fig 4.
pub fn comparison(points: &[Point]) -> Vec<Claim> {
    let at = |place: &Place, client: &str| find(points, place.link, "mixed", client);
    // Of the first client over the second, with the mix and with small files alone.
    let ratio = |place: &Place, value: fn(&Point) -> f64, over: &str, under: &str| {
        let of = |set: &str| {
            let value = |client| Some(value(find(points, place.link, set, client)?));
            Some(format!("{set} {:.2} x", value(over)? / value(under)?))
        };
        let parts: Vec<String> = COMPARED_SETS.iter().filter_map(|&set| of(set)).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let joules = |point: &Point| point.joules.median;
    let efficiency = |point: &Point| point.efficiency.median;
    vec![
        everywhere(
            "all three algorithms have more throughput than the others; HAT the most (Fig 4a)",
            |place| {
                let http2 = at(place, "curl-parallel-h2")?.mbps();
                let over =
                    |client: &str| Some(format!("{:.2} x", at(place, client)?.mbps() / http2));
                Some(format!(
                    "over HTTP/2: LowE {}, HAT {}, EHT {}",
                    over("pelton-lowe")?,
                    over("pelton-hat")?,
                    over("pelton-eht")?
                ))
            },
        ),
        everywhere("wget takes 2.7 x the energy of LowE (Fig 4b)", |place| {
            ratio(place, joules, "wget", "pelton-lowe")
        }),
        everywhere("cURL takes 2 x the energy of LowE (Fig 4b)", |place| {
            ratio(place, joules, "curl", "pelton-lowe")
        }),
        everywhere("HTTP/2 has nearly 4 x the throughput/energy of HTTP/1.1 (Fig 4c)", |place| {
            ratio(place, efficiency, "curl-parallel-h2", "curl-six")
        }),
        everywhere("EHT has over 5.2 x the throughput/energy of HTTP/2 (Fig 4c)", |place| {
            ratio(place, efficiency, "pelton-eht", "curl-parallel-h2")
        }),
        everywhere(
            "with small files alone the energy of wget and cURL increases drastically",
            |place| {
                let rise = |client: &str| {
                    let small = find(points, place.link, "small", client)?.per_100_mb();
                    Some(format!("{:.1} x", small / at(place, client)?.per_100_mb()))
                };
                Some(format!(
                    "J per 100 MB, small over mixed: wget {}, cURL {}, LowE {}",
                    rise("wget")?,
                    rise("curl")?,
                    rise("pelton-lowe")?
                ))
            },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use pelton_algos::units::Bytes;

    use super::*;

    fn point(link: &str, set: &str, way: &str, seconds: f64, joules: f64) -> Point {
        Point::new([link, set, way], Bytes(1_000_000), &[(seconds, joules)])
    }

    #[test]
    fn ratios_are_the_right_way_round() {
        let mut points = Vec::new();
        for (client, seconds, joules) in [
            ("pelton-lowe", 2.0, 10.0),
            ("pelton-hat", 1.0, 12.0),
            ("pelton-eht", 1.0, 11.0),
            ("curl-parallel-h2", 4.0, 11.0),
            ("curl-six", 8.0, 22.0),
            ("curl", 9.0, 20.0),
            ("wget", 9.0, 27.0),
        ] {
            points.push(point("wifi-far", "mixed", client, seconds, joules));
        }
        let found: Vec<_> = comparison(&points).into_iter().map(|claim| claim.ours).collect();
        let wifi = |index: usize| found[index][0].1.as_str();
        assert_eq!(wifi(0), "over HTTP/2: LowE 2.00 x, HAT 4.00 x, EHT 4.00 x");
        assert_eq!(
            [wifi(1), wifi(2), wifi(3), wifi(4)],
            ["mixed 2.70 x", "mixed 2.00 x", "mixed 4.00 x", "mixed 4.00 x"]
        );
        // Nothing was measured over LTE, nor with small files.
        assert!(found[0].len() == 1 && found[5].is_empty());
    }

    #[test]
    fn savings_are_against_one_connection() {
        let points = [
            point("lte-far", "small", "fixed:1,1,1", 8.5, 100.0),
            point("lte-far", "small", "fixed:1,8,1", 8.0, 110.0),
            point("lte-far", "small", "fixed:1,2,16", 1.0, 19.0),
        ];
        let claims = sweeps_combined(&points);
        assert_eq!(claims[0].ours, [("LTE".to_owned(), "HTML -81 % with fixed:1,2,16".to_owned())]);
        assert_eq!(claims[1].ours[0].1, "HTML 8.5 x with fixed:1,2,16");
        let single = sweeps_single(&points);
        assert!(single[0].ours.is_empty());
        assert_eq!(
            single[1].ours[0].1,
            "HTML p 8: 1.06 x throughput, +10 % energy; least energy at p 1 (+0 %)"
        );
    }
}
