//! Error weights and the weighted root-mean-square norm.

use super::kernel;

/// `sqrt(mean((v·w)²))`; zero for empty vectors.
pub(super) fn wrms(v: &[f64], w: &[f64]) -> f64 {
    root_of_mean(kernel::sum_of_squares(v, w), v.len())
}

/// Returns the norm of `count` values with this sum of squares.
pub(super) fn root_of_mean(squares: f64, count: usize) -> f64 {
    if count == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "dimensions are far below 2^52")]
    let n = count as f64;
    (squares / n).sqrt()
}

/// Writes `1 / (rtol·|y| + atol)` and gives the norm of `y` with these weights; `Err` names the first state for which
/// that is not finite.
pub(super) fn weights(y: &[f64], rtol: f64, atol: &[f64], w: &mut [f64]) -> Result<f64, usize> {
    let (is_finite, squares) = if let [a] = atol {
        kernel::weights(y, rtol, *a, w)
    } else {
        for ((w, y), a) in w.iter_mut().zip(y).zip(atol) {
            *w = 1.0 / (rtol * y.abs() + a);
        }
        (kernel::all_finite(w), kernel::sum_of_squares(y, w))
    };
    // The whole vector is looked at without a branch; only a fault is worth a search.
    if !is_finite && let Some(state) = w.iter().position(|w| !w.is_finite()) {
        return Err(state);
    }
    Ok(root_of_mean(squares, y.len()))
}

#[cfg(test)]
mod tests {
    use super::super::kernel::all_finite;
    use super::*;

    #[test]
    fn norm_of_seven_values() {
        let v: Vec<f64> = (1..=7).map(f64::from).collect();
        assert_eq!(wrms(&v, &[1.0; 7]), 20.0_f64.sqrt());
        assert_eq!(wrms(&[], &[]), 0.0);
    }

    #[test]
    fn what_is_not_finite_is_found_at_every_place() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in 0..19 {
                let mut v = [-1.5; 19];
                v[at] = bad;
                assert!(!all_finite(&v), "{bad} at {at}");
            }
        }
        assert!(all_finite(&[f64::MAX; 19]));
        assert!(all_finite(&[]));
    }

    #[test]
    fn weight_without_tolerance_is_named() {
        let mut w = [0.0; 3];
        assert_eq!(weights(&[1.0, 0.0, 2.0], 1e-3, &[0.0], &mut w), Err(1));
        assert_eq!(
            weights(&[1.0, f64::NAN, 2.0], 1e-3, &[1e-9], &mut w),
            Err(1)
        );
        assert_eq!(
            weights(&[1.0, 0.0, 2.0], 0.0, &[0.5, 0.25, 1.0], &mut w),
            Ok((8.0_f64 / 3.0).sqrt())
        );
        assert_eq!(w, [2.0, 4.0, 1.0]);
    }
}
