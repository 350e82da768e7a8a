//! The Theil-Sen slope: how something grows over time, robust against outliers.

use super::{Interval, median, student};

/// From how many points on there is a slope.
const POINTS_MIN: usize = 10;

/// Returns the median of the slopes between all pairs of points `(x, y)`, with Sen's interval from their ranks (Sen
/// 1968; Gilbert 1987, §16.5). Nothing for fewer than ten points, or where all have one `x`. Quadratic: for some
/// hundred points.
pub(crate) fn theil_sen(points: &[(f64, f64)], confidence: f64) -> Option<Interval> {
    let n = points.len();
    let mut slopes: Vec<f64> = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for (at, (x0, y0)) in points.iter().enumerate() {
        let later = points.get(at + 1..).unwrap_or_default();
        let distinct = later.iter().filter(|(x, _)| x != x0);
        slopes.extend(distinct.map(|(x, y)| (y - y0) / (x - x0)));
    }
    if n < POINTS_MIN || slopes.is_empty() {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let (count, pairs) = (n as f64, slopes.len() as f64);
    // The spread of Kendall's statistic, without ties.
    let spread = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let half = student::normal_quantile(confidence) * spread;
    let end = |rank: f64| slopes.get((rank.max(1.0) as usize).min(slopes.len()) - 1);
    Some(Interval {
        point: median(&slopes),
        ci_low: end(((pairs - half) / 2.0).floor()).copied(),
        ci_high: end(((pairs + half) / 2.0).ceil() + 1.0).copied(),
        n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRandom;

    #[test]
    fn a_line_has_its_slope_and_one_odd_value_moves_it_by_nothing() {
        let mut points: Vec<(f64, f64)> = (0..20)
            .map(|x| (x.into(), 3.0 + 2.0 * f64::from(x)))
            .collect();
        points[7].1 = 1e9;
        let slope = theil_sen(&points, 0.95).unwrap();
        assert_eq!((slope.point, slope.n), (2.0, 20));
        assert_eq!((slope.ci_low, slope.ci_high), (Some(2.0), Some(2.0)));
        assert_eq!(theil_sen(&points[..9], 0.95), None);
        assert_eq!(theil_sen(&[(1.0, 2.0); 30], 0.95), None);
    }

    #[test]
    fn the_interval_holds_the_slope_as_often_as_it_says() {
        let mut random = SeededRandom::new(1);
        let covered = (0..400).filter(|_| {
            let points: Vec<(f64, f64)> = (0..40)
                .map(|x| (f64::from(x), 0.5 * f64::from(x) + random.normal()))
                .collect();
            let slope = theil_sen(&points, 0.95).unwrap();
            slope.ci_low.unwrap() <= 0.5 && 0.5 <= slope.ci_high.unwrap()
        });
        let share = covered.count() as f64 / 400.0;
        assert!((0.92..=0.985).contains(&share), "{share}");
    }
}
