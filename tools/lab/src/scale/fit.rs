//! A scaling law fitted to rates at several numbers of workers: the Universal Scalability Law of N. J. Gunther (2007),
//!
//! `X(n) = λ n / (1 + σ (n−1) + κ n (n−1))`
//!
//! λ is the rate of one worker, σ the share that is done one after the other, κ what it costs that all have to agree.
//! `n / X` is linear in `1/λ`, `σ/λ` and `κ/λ`, so that least squares need no iteration. Errors of a rate are taken as
//! relative ones: each point weighs by its squared rate over `n`.

use crate::stats::student;

/// One measured point: workers, and good calls per second.
pub(super) type Point = (f64, f64);

/// Confidence of the intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

/// A fitted law.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScalingLaw {
    /// λ, σ, κ. One that would be negative is 0.
    pub values: [f64; 3],
    /// Their intervals; `None` if there are no more points than numbers fitted.
    pub intervals: [Option<[f64; 2]>; 3],
}

impl ScalingLaw {
    /// Returns the rate at so many workers.
    pub fn rate(&self, workers: f64) -> f64 {
        let [lambda, sigma, kappa] = self.values;
        lambda * workers / (1.0 + sigma * (workers - 1.0) + kappa * workers * (workers - 1.0))
    }

    /// Returns the number of workers beyond which the rate falls; `None` if it does not.
    pub fn peak(&self) -> Option<f64> {
        let [_, sigma, kappa] = self.values;
        (kappa > 0.0).then(|| ((1.0 - sigma).max(0.0) / kappa).sqrt())
    }
}

/// Fits the law; σ or κ is left out if the points would make it negative. Returns `None` if the points do not determine
/// it.
pub(super) fn fit(points: &[Point]) -> Option<ScalingLaw> {
    for terms in [&[0, 1, 2][..], &[0, 1], &[0, 2], &[0]] {
        if let Some(law) = fit_law(points, terms)
            && law.values.iter().all(|value| *value >= 0.0)
        {
            return Some(law);
        }
    }
    None
}

/// Returns the basis of `n / X`, by its number.
fn basis(term: usize, n: f64) -> f64 {
    match term {
        0 => 1.0,
        1 => n - 1.0,
        _ => n * (n - 1.0),
    }
}

fn fit_law(points: &[Point], terms: &[usize]) -> Option<ScalingLaw> {
    let size = terms.len();
    if points.len() < size {
        return None;
    }
    let mut normal = vec![vec![0.0; size]; size];
    let mut right = vec![0.0; size];
    for (n, rate) in points {
        let (y, weight) = (n / rate, (rate / n).powi(2));
        for (row, of_row) in terms.iter().enumerate() {
            let term = basis(*of_row, *n);
            *right.get_mut(row)? += weight * term * y;
            for (column, of_column) in terms.iter().enumerate() {
                *normal.get_mut(row)?.get_mut(column)? += weight * term * basis(*of_column, *n);
            }
        }
    }
    let inverse = inverse(normal)?;
    let found: Vec<f64> = inverse.iter().map(|row| dot(row, &right)).collect();
    let first = *found.first()?;
    if first <= 0.0 {
        return None;
    }
    let (mut values, mut intervals) = ([1.0 / first, 0.0, 0.0], [None; 3]);
    for (term, value) in terms.iter().zip(&found).skip(1) {
        *values.get_mut(*term)? = value / first;
    }
    let free = points.len() - size;
    if free > 0 {
        let residual = |(n, rate): &Point| {
            let told: f64 = terms
                .iter()
                .zip(&found)
                .map(|(term, value)| value * basis(*term, *n))
                .sum();
            ((n / rate - told) * rate / n).powi(2)
        };
        let variance = points.iter().map(residual).sum::<f64>() / free as f64;
        let t = student::two_sided(CONFIDENCE, free as f64);
        for (at, term) in terms.iter().enumerate() {
            // By the first derivatives: 1/a, and b/a.
            let mut gradient = vec![0.0; size];
            let value = *values.get(*term)?;
            if *term == 0 {
                *gradient.get_mut(0)? = -value * value;
            } else {
                *gradient.get_mut(0)? = -value / first;
                *gradient.get_mut(at)? = 1.0 / first;
            }
            let spread: f64 = inverse
                .iter()
                .zip(&gradient)
                .map(|(row, g)| g * dot(row, &gradient))
                .sum();
            let half = t * (variance * spread.max(0.0)).sqrt();
            *intervals.get_mut(*term)? = Some([(value - half).max(0.0), value + half]);
        }
    }
    Some(ScalingLaw { values, intervals })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gauss and Jordan with pivots; nothing for a matrix that has no inverse.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..size).map(|column| if column == at { 1.0 } else { 0.0 }));
    }
    let scale = matrix
        .iter()
        .flatten()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    for column in 0..size {
        let size_at = |row: &usize| {
            matrix
                .get(*row)
                .and_then(|row| row.get(column))
                .map_or(0.0, |v| v.abs())
        };
        let pivot = (column..size).max_by(|a, b| size_at(a).total_cmp(&size_at(b)))?;
        if size_at(&pivot) <= scale * 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        let own = matrix.get(column)?.clone();
        let divisor = *own.get(column)?;
        let own: Vec<f64> = own.iter().map(|value| value / divisor).collect();
        for (row, values) in matrix.iter_mut().enumerate() {
            let factor = *values.get(column)?;
            if row == column {
                values.clone_from(&own);
            } else {
                for (value, own) in values.iter_mut().zip(&own) {
                    *value -= factor * own;
                }
            }
        }
    }
    matrix
        .into_iter()
        .map(|row| row.get(size..).map(<[f64]>::to_vec))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRandom;

    fn points(law: &ScalingLaw, noise: f64, random: &mut SeededRandom) -> Vec<Point> {
        let mut noisy = |n: f64| (n, law.rate(n) * (1.0 + noise * (random.unit() - 0.5)));
        [1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 16.0]
            .map(&mut noisy)
            .to_vec()
    }

    fn law(values: [f64; 3]) -> ScalingLaw {
        ScalingLaw {
            values,
            intervals: [None; 3],
        }
    }

    #[test]
    fn exact_points_give_the_law_back() {
        for values in [
            [100.0, 0.05, 0.002],
            [7.0, 0.3, 0.0],
            [40.0, 0.0, 0.01],
            [9.0, 0.0, 0.0],
        ] {
            let truth = law(values);
            let found = fit(&points(&truth, 0.0, &mut SeededRandom::new(1))).unwrap();
            for (found, truth) in found.values.iter().zip(values) {
                assert!(
                    (found - truth).abs() < 1e-6 * (1.0 + truth),
                    "{found} {truth}"
                );
            }
        }
        let peak = law([1.0, 0.19, 0.01]).peak().unwrap();
        assert!((peak - 9.0).abs() < 1e-9);
        assert_eq!(law([1.0, 0.5, 0.0]).peak(), None);
    }

    #[test]
    fn the_intervals_hold_the_truth_about_as_often_as_they_say() {
        let truth = law([100.0, 0.05, 0.004]);
        let mut random = SeededRandom::new(7);
        let (mut held, mut tried) = (0, 0);
        for _ in 0..400 {
            let Some(found) = fit(&points(&truth, 0.05, &mut random)) else {
                continue;
            };
            for (interval, truth) in found.intervals.iter().zip(truth.values) {
                if let Some([low, high]) = interval {
                    tried += 1;
                    held += usize::from((*low..=*high).contains(&truth));
                }
            }
        }
        let share = held as f64 / tried as f64;
        assert!(
            tried > 1_000 && (0.90..=0.99).contains(&share),
            "{held} of {tried}"
        );
    }

    #[test]
    fn too_few_points_tell_no_law_and_no_interval() {
        assert!(fit(&[]).is_none());
        let one = fit(&[(4.0, 8.0)]).unwrap();
        assert_eq!((one.values, one.intervals), ([2.0, 0.0, 0.0], [None; 3]));
    }
}
