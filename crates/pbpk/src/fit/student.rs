//! Student's distribution.

use crate::units::normal;

/// Returns the value below which Student's t lies with probability p, by its expansion in the normal one: good to 1e-3
/// from 4 degrees of freedom on. Source: M. Abramowitz, I. A. Stegun, "Handbook of mathematical functions" (1964),
/// 26.7.5.
pub(super) fn quantile(p: f64, degrees: usize) -> f64 {
    let z = normal::quantile(p);
    let n = degrees.max(1) as f64;
    let powers = [z, z.powi(3), z.powi(5), z.powi(7), z.powi(9)];
    let [a, b, c, d, e] = powers;
    z + (b + a) / (4.0 * n)
        + (5.0 * c + 16.0 * b + 3.0 * a) / (96.0 * n.powi(2))
        + (3.0 * d + 19.0 * c + 17.0 * b - 15.0 * a) / (384.0 * n.powi(3))
        + (79.0 * e + 776.0 * d + 1482.0 * c - 1920.0 * b - 945.0 * a) / (92_160.0 * n.powi(4))
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [(4, 2.776), (10, 2.228), (30, 2.042), (1000, 1.962)] {
            let found = quantile(0.975, degrees);
            assert!((found - expected).abs() < 2e-3, "{degrees}: {found}");
        }
    }
}
