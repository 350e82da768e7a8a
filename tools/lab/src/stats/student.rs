//! Quantiles of Student's t distribution, by the regularised incomplete beta function (its continued
//! fraction, evaluated by Lentz's method) and bisection.

/// Degrees of freedom from which Student's t is as good as normal.
const NORMAL: f64 = 1e6;

/// Returns the t with P(|T| ≤ t) = `confidence` for `freedom` ≥ 1 degrees of freedom.
pub(crate) fn two_sided(confidence: f64, freedom: f64) -> f64 {
    let tail = 1.0 - confidence;
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while outside(high, freedom) > tail && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if outside(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Returns the z with P(|Z| ≤ z) = `confidence`.
pub(super) fn normal_quantile(confidence: f64) -> f64 {
    two_sided(confidence, NORMAL)
}

/// P(Z > z) of a standard normal number, as Student's t of so many degrees of freedom that it is one.
pub(super) fn normal_tail(z: f64) -> f64 {
    outside(z, NORMAL) / 2.0
}

/// P(|T| > t).
fn outside(t: f64, freedom: f64) -> f64 {
    beta_regular(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Returns the regularised incomplete beta function I_x(a, b).
fn beta_regular(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side of the mean; the other side is its mirror.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / keep(1.0 + term * d);
            c = keep(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// ln Γ(x) for x > 0: Stirling's series after moving the argument beyond 10.
fn ln_gamma(x: f64) -> f64 {
    let (mut z, mut shift) = (x, 0.0);
    while z < 10.0 {
        shift += z.ln();
        z += 1.0;
    }
    let inverse = 1.0 / (z * z);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1_260.0 - inverse / 1_680.0))) / z;
    (z - 0.5) * z.ln() - z + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn against_the_printed_table() {
        for (confidence, freedom, expect) in [
            (0.95, 1.0, 12.7062),
            (0.95, 2.0, 4.3027),
            (0.95, 4.0, 2.7764),
            (0.95, 9.0, 2.2622),
            (0.95, 19.0, 2.0930),
            (0.95, 29.0, 2.0452),
            (0.95, 120.0, 1.9799),
            (0.99, 9.0, 3.2498),
            (0.90, 9.0, 1.8331),
            (0.99, 2.0, 9.9248),
            (0.95, 1e6, 1.9600),
        ] {
            let got = two_sided(confidence, freedom);
            assert!((got - expect).abs() < 1e-4, "{confidence} {freedom}: {got}");
        }
    }

    #[test]
    fn gamma_of_whole_and_half_numbers() {
        for (x, expect) in [
            (1.0, 1.0_f64),
            (5.0, 24.0),
            (0.5, std::f64::consts::PI.sqrt()),
            (10.5, 1_133_278.388_948_785),
        ] {
            assert!((ln_gamma(x) - expect.ln()).abs() < 1e-11, "{x}");
        }
    }
}
