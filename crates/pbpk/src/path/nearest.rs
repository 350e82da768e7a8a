//! Suggestions for a name: edit distance, ignoring case.

/// Longest text compared, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// Returns the `count` most similar candidates, best first; candidates that share too little are left out.
pub fn nearest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
    count: usize,
) -> Vec<String> {
    let wanted: Vec<char> = fold_case(text);
    let bound = (wanted.len() / 2).max(3);
    let mut best: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        let other = fold_case(candidate);
        // The end of a path says more than its beginning: also compare with the end alone.
        let tail = other
            .get(other.len().saturating_sub(wanted.len())..)
            .unwrap_or(&other);
        let limit = best
            .get(count.saturating_sub(1))
            .map_or(bound, |worst| worst.0.min(bound));
        let whole = distance(&wanted, &other, limit);
        let ended = distance(&wanted, tail, limit).map(|d| d + 1);
        let Some(d) = [whole, ended].into_iter().flatten().min() else {
            continue;
        };
        let place = best.partition_point(|b| b.0 <= d);
        best.insert(place, (d, candidate));
        best.truncate(count);
    }
    best.into_iter().map(|(_, path)| path.to_owned()).collect()
}

fn fold_case(text: &str) -> Vec<char> {
    text.chars()
        .take(TEXT_CHARS_MAX)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Edit distance, if it is at most `limit`.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut least = left;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let value = (diagonal + usize::from(x != y))
                .min(left + 1)
                .min(*cell + 1);
            diagonal = *cell;
            *cell = value;
            left = value;
            least = least.min(value);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        if least > limit {
            return None;
        }
    }
    row.last().copied().filter(|d| *d <= limit)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_likeliest_comes_first() {
        let paths = [
            "Organism|Liver|Volume",
            "Organism|Lung|Volume",
            "Organism|Weight",
            "Organism|Liver|A",
        ];
        let best = nearest("Organism|Livr|volume", paths.into_iter(), 2);
        assert_eq!(best, ["Organism|Liver|Volume", "Organism|Lung|Volume"]);
        assert_eq!(
            nearest("Liver|Volume", paths.into_iter(), 1),
            ["Organism|Liver|Volume"]
        );
        assert!(nearest("completely different", paths.into_iter(), 2).is_empty());
    }
}
