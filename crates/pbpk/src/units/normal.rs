//! The standard normal distribution.

/// Returns the quantile of the standard normal distribution, to about 1e-15 relative.
///
/// Rational approximations in three ranges: M. J. Wichura, "The percentage points of the normal distribution",
/// Applied Statistics 37 (1988) 477-484. Outside 0 to 1 it is not a number; at the ends it is infinite.
#[must_use]
pub fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&CENTRE, r) / polynomial(&CENTRE_BELOW, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail.is_nan() || tail < 0.0 {
        return f64::NAN;
    }
    if tail == 0.0 {
        return if q < 0.0 {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    let r = (-tail.ln()).sqrt();
    let value = if r <= 5.0 {
        polynomial(&MIDDLE, r - 1.6) / polynomial(&MIDDLE_BELOW, r - 1.6)
    } else {
        polynomial(&FAR, r - 5.0) / polynomial(&FAR_BELOW, r - 5.0)
    };
    if q < 0.0 { -value } else { value }
}

/// Returns the part of the standard normal distribution below z, strictly between 0 and 1, to about 1e-14 relative.
///
/// Near 0 the series of G. Marsaglia, "Evaluating the normal distribution", J. Stat. Softw. 11 (2004) 4; further out
/// Laplace's continued fraction of the tail (Abramowitz and Stegun, 26.2.14).
#[must_use]
pub fn part_below(z: f64) -> f64 {
    let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    let part = if z.abs() < SERIES_MAX {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term.abs() > f64::EPSILON * 1e-3 * sum.abs() {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        0.5 + density * sum
    } else {
        let x = z.abs();
        let tail = density / tail_fraction(x);
        if z < 0.0 { tail } else { 1.0 - tail }
    };
    part.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0)
}

/// Returns the natural logarithm of the part of the standard normal distribution below z, also where that part is too
/// small for a number.
#[must_use]
pub fn ln_part_below(z: f64) -> f64 {
    if z > -SERIES_MAX {
        // Above 0 the tail has more digits than what is left.
        return match z > 0.0 {
            true => (-part_below(-z)).ln_1p(),
            false => part_below(z).ln(),
        };
    }
    -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln() - tail_fraction(-z).ln()
}

/// Returns the density at z over the part below z.
#[must_use]
pub fn density_ratio(z: f64) -> f64 {
    if z > -SERIES_MAX {
        return (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt() / part_below(z);
    }
    tail_fraction(-z)
}

/// Laplace's continued fraction: the density at x over the part above x, for x of at least [`SERIES_MAX`].
fn tail_fraction(x: f64) -> f64 {
    (1..=FRACTION_TERMS)
        .rev()
        .fold(x, |f, k| x + f64::from(k) / f)
}

/// Largest argument of the series, and the terms of the continued fraction beyond it.
const SERIES_MAX: f64 = 2.5;
const FRACTION_TERMS: u8 = 100;

fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

const CENTRE: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_4,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_BELOW: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const MIDDLE: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const MIDDLE_BELOW: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const FAR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288e-7,
];
const FAR_BELOW: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

#[cfg(test)]
mod tests {
    use super::{part_below, quantile};

    /// Values that R 4 gives for `pnorm`.
    #[test]
    fn known_parts() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (-1.959_963_984_540_054, 0.025),
            (2.5, 0.993_790_334_674_224),
            (-6.0, 9.865_876_450_376_98e-10),
            (-37.0, 5.725_571_222_524_58e-300),
        ] {
            assert!(
                (part_below(z) - p).abs() < 1e-12 * p,
                "{z}: {}",
                part_below(z)
            );
        }
        assert!(part_below(40.0) < 1.0 && part_below(-40.0) > 0.0);
        for i in 1..1000 {
            let p = f64::from(i) / 1000.0;
            assert!((part_below(quantile(p)) - p).abs() < 1e-14, "{p}");
        }
    }

    #[test]
    fn known_quantiles() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.025, -1.959_963_984_540_054),
            (0.841_344_746_068_542_9, 1.0),
            (1e-10, -6.361_340_902_404_056),
            (1e-300, -37.047_096_299_361_2),
        ] {
            assert!(
                (quantile(p) - z).abs() < 1e-12 * z.abs().max(1.0),
                "{p}: {}",
                quantile(p)
            );
        }
        assert!(quantile(-0.1).is_nan() && quantile(1.1).is_nan() && quantile(f64::NAN).is_nan());
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
    }
}
