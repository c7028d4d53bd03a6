//! Labels beside a chart that do not cover each other.

/// From the middle of one label to that of the next, in pixels.
pub(super) const LINE: f64 = 15.0;

/// Where labels stand that would like to be at `wanted`: in the same order, at least [`LINE`] apart,
/// from `top` to `bottom` where they all have room.
pub(super) fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places: Vec<f64> = order.iter().map(|&index| wanted[index]).collect();
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + LINE;
    }
    let mut most = bottom.max(top + LINE * (places.len().max(1) - 1) as f64);
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LINE;
    }
    let mut spread = vec![0.0; wanted.len()];
    for (place, index) in places.into_iter().zip(order) {
        spread[index] = place;
    }
    spread
}

/// About how wide `text` is, in pixels: letters of a sans-serif font of 12 px, the widest of which
/// are rare.
pub(super) fn width(text: &str) -> f64 {
    7.0 * text.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn labels_never_meet_and_keep_their_order(
            wanted in prop::collection::vec(-50.0..500.0, 0..40),
        ) {
            let places = spread(&wanted, 20.0, 300.0);
            for (a, wanted_a) in places.iter().zip(&wanted) {
                prop_assert!(*a >= 20.0 - 1e-9);
                for (b, wanted_b) in places.iter().zip(&wanted) {
                    if wanted_a < wanted_b {
                        prop_assert!(*b - *a >= LINE - 1e-9);
                    }
                }
            }
            if wanted.len() <= 19 {
                prop_assert!(places.iter().all(|place| *place <= 300.0 + 1e-9));
            }
        }
    }

    #[test]
    fn labels_with_room_stay_where_they_want_to_be() {
        assert_eq!(spread(&[100.0, 50.0], 0.0, 200.0), [100.0, 50.0]);
        assert_eq!(spread(&[100.0, 100.0], 0.0, 200.0), [100.0, 115.0]);
    }
}
