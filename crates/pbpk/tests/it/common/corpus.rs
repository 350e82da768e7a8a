//! The differential corpus: models that the genuine solver ran, what was changed in them, and its numbers.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pbpk::compile::{Instance, Structure};
use pbpk::model::Model;
use pbpk::run::{OspVersion, Results, RunOptions};
use serde_json::Value;

/// Where the corpus lies; nothing, with the reason printed, where it is absent on a developer's machine.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the environment says whether a skip is a failure, and a skip is told"
)]
pub fn folder() -> Option<PathBuf> {
    let folder = crate::common::reference_folder().join("differential");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{} is absent, and CI must not pass without it",
        folder.display()
    );
    eprintln!("skipped: {} is absent", folder.display());
    None
}

pub fn unpacked(file: &Path) -> Vec<u8> {
    let packed = std::fs::read(file).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// One case and the numbers of the whole file.
pub struct Case {
    json: Value,
    blob: Arc<Vec<u8>>,
}

/// What became of a case: the deviation and its bound, or why it is structurally different.
pub type Verdict = Result<(f64, f64), String>;

/// All cases of `name`.jsonl.gz.
pub fn cases(folder: &Path, name: &str) -> Vec<Case> {
    let blob = Arc::new(unpacked(&folder.join(format!("{name}.bin.gz"))));
    let text = unpacked(&folder.join(format!("{name}.jsonl.gz")));
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| Case {
            json: serde_json::from_str(line).unwrap(),
            blob: Arc::clone(&blob),
        })
        .collect()
}

impl Case {
    pub fn id(&self) -> &str {
        self.json["id"].as_str().unwrap()
    }

    pub fn classes(&self) -> String {
        let names: Vec<&str> = list(&self.json["classes"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        names.join(",")
    }

    /// The file of the case: generated whole, or a file of the collection with some bytes replaced.
    fn file(&self) -> Vec<u8> {
        if let Some(xml) = self.json["xml"].as_str() {
            return xml.as_bytes().to_vec();
        }
        let base = std::fs::read(crate::common::data(self.json["base"].as_str().unwrap())).unwrap();
        let (mut out, mut from) = (Vec::with_capacity(base.len()), 0);
        for edit in list(&self.json["edits"]) {
            let at = edit[0].as_u64().unwrap() as usize;
            out.extend_from_slice(&base[from..at]);
            out.extend_from_slice(edit[2].as_str().unwrap().as_bytes());
            from = at + edit[1].as_u64().unwrap() as usize;
        }
        out.extend_from_slice(&base[from..]);
        out
    }

    fn run(&self) -> Result<Results, String> {
        let model: Model = pbpk::read::bytes(&self.file(), &Default::default())
            .map_err(|e| format!("refused: {e}"))?;
        let outputs = model.outputs();
        let structure =
            Structure::new(Arc::new(model), outputs).map_err(|e| format!("refused: {e}"))?;
        let mut instance = Instance::new(&structure);
        for set in list(&self.json["sets"]) {
            let (path, value) = (set[0].as_str().unwrap(), number(&set[1]));
            pbpk::path::assign(&mut instance, path, value, None)
                .map_err(|e| format!("not set: {e}"))?;
        }
        // The corpus was made by the development build.
        let options = RunOptions {
            osp_version: OspVersion::Dev13,
            ..RunOptions::default()
        };
        pbpk::run::run(&instance, &options).map_err(|e| format!("refused: {e}"))
    }

    pub fn check(&self) -> Verdict {
        let ran = self.run();
        if self.json["outcome"] == "refuses" {
            return match ran {
                Err(_) => Ok((0.0, 0.0)),
                Ok(_) => Err("runs, but should be refused".to_owned()),
            };
        }
        self.compare(&ran?)
    }

    fn compare(&self, results: &Results) -> Verdict {
        let total = self.json["rows_total"].as_u64().unwrap() as usize;
        if results.times.len() != total {
            return Err(format!("{} rows instead of {total}", results.times.len()));
        }
        let rows: Vec<usize> = match self.json["rows"].as_array() {
            Some(rows) => rows.iter().map(|r| r.as_u64().unwrap() as usize).collect(),
            None => (0..total).collect(),
        };
        for (row, time) in rows.iter().zip(list(&self.json["times"])) {
            let (a, b) = (results.times[*row], number(time));
            if (a - b).abs() > 1e-9 * b.abs().max(1e-9) {
                return Err(format!("time {a} instead of {b}"));
            }
        }
        let positions = by_either_path(&results.paths);
        let atol = number(&self.json["atol"]);
        let bound = (10.0 * number(&self.json["rtol"]))
            .max(3.0 * number(&self.json["E"]))
            .max(1e-6);
        let mut worst = 0.0_f64;
        let mut at = self.json["offset"].as_u64().unwrap_or(0) as usize;
        for name in list(&self.json["columns"]) {
            let name = name.as_str().unwrap();
            let column = positions
                .get(name)
                .or_else(|| positions.get(bare(name)))
                .ok_or_else(|| format!("no column '{name}'"))?;
            let ours: Vec<f64> = results.column(*column).collect();
            let peak = f64::from_le_bytes(self.blob[at..at + 8].try_into().unwrap());
            at += 8;
            for row in &rows {
                let ratio = f32::from_le_bytes(self.blob[at..at + 4].try_into().unwrap());
                at += 4;
                let d = difference(ours[*row], f64::from(ratio), peak, 100.0 * atol).ok_or_else(
                    || {
                        let theirs = f64::from(ratio) * peak;
                        format!("'{name}' row {row}: {} instead of {theirs}", ours[*row])
                    },
                )?;
                worst = worst.max(d);
            }
        }
        Ok((worst, bound))
    }
}

/// Relative to the peak, or nothing where one value is a number and the other is none.
fn difference(ours: f64, ratio: f64, peak: f64, band: f64) -> Option<f64> {
    if !ratio.is_finite() || !ours.is_finite() {
        let same = ours.is_nan() && ratio.is_nan() || ours == ratio;
        return same.then_some(0.0);
    }
    let d = (ours - ratio * peak).abs();
    if peak < band {
        return Some(if d <= band { 0.0 } else { f64::INFINITY });
    }
    // What the storage in single precision costs.
    Some((d / peak - 1.2e-7 * ratio.abs()).max(0.0))
}

fn bare(path: &str) -> &str {
    path.split_once(['|', '/']).map_or(path, |p| p.1)
}

/// Columns by their path, with and without the simulation's name.
fn by_either_path(paths: &[String]) -> HashMap<&str, usize> {
    let mut positions = HashMap::new();
    for (i, path) in paths.iter().enumerate() {
        positions.entry(bare(path)).or_insert(i);
    }
    for (i, path) in paths.iter().enumerate() {
        positions.insert(path, i);
    }
    positions
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A number, or one of the words for what is none.
pub fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => value.as_f64().unwrap(),
    }
}
