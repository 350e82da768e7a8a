//! What R is asked for, a line each, and the numbers that it gives.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fault::{Fault, Kind};

/// One individual's run.
#[derive(Debug)]
pub struct IndividualRequest<'a> {
    /// The model file.
    pub file: &'a Path,
    /// SHA-256 of its content: another one is loaded again.
    pub sha256: &'a str,
    /// Paths of the curves.
    pub outputs: &'a [String],
    /// Set values, in base units.
    pub parameters: &'a BTreeMap<String, f64>,
}

/// Curves of one individual.
#[derive(Debug, PartialEq)]
pub struct IndividualCurves {
    /// In minutes.
    pub times: Vec<f64>,
    /// One curve behind the other.
    pub values: Vec<f64>,
}

impl IndividualRequest<'_> {
    /// Returns the text that is sent.
    ///
    /// # Errors
    /// [`Kind::UnsupportedModel`] if a path has a line end in it.
    pub(super) fn text(&self) -> Result<String, Fault> {
        let mut lines = vec![
            self.file.to_string_lossy().into_owned(),
            self.sha256.to_owned(),
        ];
        let count = |count: usize| count.to_string();
        lines.push(count(self.outputs.len()));
        lines.extend(self.outputs.iter().cloned());
        lines.push(count(self.parameters.len()));
        lines.extend(self.parameters.keys().cloned());
        lines.push(count(self.parameters.len()));
        // The shortest text that is read as the same number.
        lines.extend(self.parameters.values().map(|value| format!("{value:e}")));
        match lines.iter().find(|line| line.contains(['\n', '\r'])) {
            None => Ok(lines.join("\n")),
            Some(line) => {
                let wrong = format!("R cannot be told of {line:?}: it has a line end");
                Err(Fault::new(Kind::UnsupportedModel, wrong))
            }
        }
    }
}

impl IndividualCurves {
    /// Reads what R sends: the number of times, the times, and each curve.
    ///
    /// # Errors
    /// [`Kind::InteropError`] if the count is another one.
    pub(super) fn read(bytes: &[u8], outputs: usize) -> Result<Self, Fault> {
        let (eights, rest) = bytes.as_chunks::<8>();
        let mut numbers = eights.iter().map(|eight| f64::from_le_bytes(*eight));
        let times = numbers.next().map_or(0.0, f64::round);
        let all: Vec<f64> = numbers.collect();
        let count = all.len() / (outputs + 1);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let is_whole =
            rest.is_empty() && count * (outputs + 1) == all.len() && times == count as f64;
        if !is_whole || count == 0 {
            let wrong = format!(
                "R gives {} numbers for {outputs} curves of {times} times",
                all.len()
            );
            return Err(Fault::new(Kind::InteropError, wrong));
        }
        let values = all.get(count..).unwrap_or_default().to_vec();
        let mut times = all;
        times.truncate(count);
        Ok(Self { times, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_exactly_and_line_ends_are_refused() {
        let mut parameters = BTreeMap::from([("A|B".to_owned(), 0.1), ("A|C".to_owned(), -3e-300)]);
        let outputs = ["A|µ".to_owned()];
        let text = |parameters: &BTreeMap<String, f64>| {
            let request = IndividualRequest {
                file: Path::new("/m/a.pkml"),
                sha256: "ab",
                outputs: &outputs,
                parameters,
            };
            request.text()
        };
        let told = text(&parameters).unwrap();
        assert_eq!(told, "/m/a.pkml\nab\n1\nA|µ\n2\nA|B\nA|C\n2\n1e-1\n-3e-300");
        parameters.insert("A\nquit()".to_owned(), 1.0);
        assert_eq!(text(&parameters).unwrap_err().kind, Kind::UnsupportedModel);
    }

    #[test]
    fn curves_are_as_many_as_were_asked_for() {
        let sent = |numbers: &[f64]| -> Vec<u8> {
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        };
        let read = IndividualCurves::read(&sent(&[2.0, 0.0, 1.0, 5.0, 6.0, 7.0, 8.0]), 2).unwrap();
        assert_eq!(read.times, [0.0, 1.0]);
        assert_eq!(read.values, [5.0, 6.0, 7.0, 8.0]);
        for (numbers, outputs) in [
            (&[2.0, 0.0, 1.0, 5.0][..], 1),
            (&[1.0, 0.0, 1.0], 2),
            (&[0.0], 1),
            (&[], 1),
        ] {
            assert_eq!(
                IndividualCurves::read(&sent(numbers), outputs)
                    .unwrap_err()
                    .kind,
                Kind::InteropError
            );
        }
        assert!(IndividualCurves::read(&sent(&[1.0, 0.0, 1.0])[1..], 1).is_err());
    }
}
