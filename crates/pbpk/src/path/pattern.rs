//! Patterns over path elements.

/// A path in which elements may hold stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    delimiter: char,
    elements: Vec<String>,
}

impl PathPattern {
    /// Splits the text at the delimiter.
    #[must_use]
    pub fn new(text: &str, delimiter: char) -> Self {
        Self {
            delimiter,
            elements: text.split(delimiter).map(str::to_owned).collect(),
        }
    }

    /// Returns whether the whole path matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let elements: Vec<&str> = path.split(self.delimiter).collect();
        sequence(
            &self.elements,
            &elements,
            |p| p == "**",
            |p, e| element(p, e),
        )
    }
}

fn element(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    sequence(&pattern, &text, |p| *p == '*', |p, c| p == c)
}

/// Matches a sequence in which some items match any run; goes back only to the last such item, so the time is at most
/// the product of the lengths.
fn sequence<P, T>(
    pattern: &[P],
    text: &[T],
    any: impl Fn(&P) -> bool,
    same: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(item) = text.get(t) {
        match pattern.get(p) {
            Some(star) if any(star) => {
                back = Some((p, t));
                p += 1;
            }
            Some(one) if same(one, item) => {
                p += 1;
                t += 1;
            }
            _ => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    p = star + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(any)
}

#[cfg(test)]
mod tests {
    use super::PathPattern;

    fn check(pattern: &str, path: &str, expected: bool) {
        assert_eq!(
            PathPattern::new(pattern, '|').matches(path),
            expected,
            "{pattern} on {path}"
        );
    }

    #[test]
    fn patterns_match_elements() {
        check("Organism|Liver|Volume", "Organism|Liver|Volume", true);
        check("Organism|*|Volume", "Organism|Liver|Volume", true);
        check("Organism|*|Volume", "Organism|Liver|Cell|Volume", false);
        check("Organism|**|Volume", "Organism|Liver|Cell|Volume", true);
        check("**|Volume", "Volume", true);
        check("**", "a|b|c", true);
        check("Organism|L*r|Vol*", "Organism|Liver|Volume", true);
        check("Organism|L*r|Vol*", "Organism|Lung|Volume", false);
        check("**|A|**|B", "x|A|y|A|z|B", true);
        check("**|A|**|B", "x|A|y|z", false);
        check("*", "a|b", false);
    }
}
