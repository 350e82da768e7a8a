//! When a certificate ends: the one member of X.509 that an operator has to be warned of.
//!
//! Reads as much of DER as lies before the validity, and nothing behind it; rustls judges the rest.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Tags of DER that stand before the validity.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns when the first certificate of a PEM text ends, in seconds since 1970; `None` where it holds none that can be read.
#[must_use]
pub fn not_after_s(pem: &[u8]) -> Option<i64> {
    let certificate = CertificateDer::from_pem_slice(pem).ok()?;
    let (whole, _) = element(certificate.as_ref(), SEQUENCE)?;
    let (mut rest, _) = element(whole, SEQUENCE)?;
    if let Some((_, after)) = element(rest, VERSION) {
        rest = after;
    }
    // Serial number, algorithm of the signature, and issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        rest = element(rest, tag)?.1;
    }
    let (validity, _) = element(rest, SEQUENCE)?;
    let (_, rest) = time(validity)?;
    Some(time(rest)?.0)
}

/// The contents of an element with this tag, and what stands behind it.
fn element(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short if short < 0x80 => (short, rest),
        // Longer lengths than four bytes have no certificate.
        long if (0x81..=0x84).contains(&long) => {
            let (length, rest) = rest.split_at_checked(long - 0x80)?;
            let length = length
                .iter()
                .fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    (*tag == wanted).then_some(())?;
    rest.split_at_checked(length)
}

/// A time in seconds since 1970, and what stands behind it.
fn time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest, years) = match element(bytes, UTC_TIME) {
        Some((text, rest)) => (text, rest, 2),
        None => {
            let (text, rest) = element(bytes, GENERALIZED_TIME)?;
            (text, rest, 4)
        }
    };
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest_of_text) = text.split_at_checked(years)?;
    let year: i64 = year.parse().ok()?;
    let year = match years {
        // RFC 5280: two digits from 50 on are of the last century.
        2 if year >= 50 => year + 1_900,
        2 => year + 2_000,
        _ => year,
    };
    let pair = |at: usize| rest_of_text.get(at..at + 2)?.parse::<i64>().ok();
    let (month, day) = (pair(0)?, pair(2)?);
    let (hour, minute, second) = (pair(4)?, pair(6)?, pair(8)?);
    let seconds = days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds, rest))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1..=9_999).contains(&year) {
        return None;
    }
    // Years begin in March, so that the day of a leap year comes last.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let of_year = (153 * month + 2).div_euclid(5) + day - 1;
    Some(365 * year + leaps + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certified(year: i32) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(1999, 1, 2);
        params.not_after = rcgen::date_time_ymd(year, 3, 1);
        params.self_signed(&key).unwrap().pem()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms_of_time() {
        for (year, seconds) in [
            (2024, 1_709_251_200),
            (2026, 1_772_323_200),
            (2049, 2_498_169_600),
            (2050, 2_529_705_600),
            (2100, 4_107_542_400),
        ] {
            let pem = certified(year);
            assert_eq!(not_after_s(pem.as_bytes()), Some(seconds), "{year}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let pem = certified(2026);
        let cut = pem.replace("\nM", "\nA");
        for text in ["", "garbage", cut.as_str()] {
            assert_eq!(not_after_s(text.as_bytes()), None, "{text}");
        }
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        for length in 0..60 {
            assert_eq!(element(&der[..length], SEQUENCE), None);
        }
    }
}
