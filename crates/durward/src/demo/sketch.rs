//! A curve in one line of text.

/// Characters of a line that sketches a curve.
const SKETCH_WIDTH: usize = 48;

/// A curve as one line of blocks, from its first time to its last.
pub(super) fn sketch(points: &[(f64, f64)]) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let end = points.last().map_or(0.0, |(time, _)| *time);
    let highest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let mut line = String::new();
    for at in 0..SKETCH_WIDTH {
        #[expect(clippy::cast_precision_loss, reason = "a line has few characters")]
        let (from, to) = (
            end * at as f64 / SKETCH_WIDTH as f64,
            end * (at + 1) as f64 / SKETCH_WIDTH as f64,
        );
        let within = points.iter().filter(|(time, _)| (from..=to).contains(time));
        let most = within.map(|(_, value)| *value).fold(0.0, f64::max);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 8; a cast from float to integer saturates"
        )]
        let height = (most / highest.max(f64::MIN_POSITIVE) * 8.0).ceil() as usize;
        line.push(BLOCKS.get(height).copied().unwrap_or('█'));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_rises_and_falls_with_its_curve() {
        let points: Vec<(f64, f64)> = (0..=120)
            .map(|n| (f64::from(n), f64::from(60 - (n - 60_i32).abs())))
            .collect();
        let line: Vec<char> = sketch(&points).chars().collect();
        assert_eq!(line.len(), SKETCH_WIDTH);
        assert_eq!((line[0], line[24], line[47]), ('▁', '█', '▁'));
        assert!(line[..24].windows(2).all(|two| two[0] <= two[1]));
        assert_eq!(sketch(&[]), "");
        assert_eq!(sketch(&[(0.0, 0.0), (1.0, 0.0)]), "", "nothing but zeros");
    }
}
