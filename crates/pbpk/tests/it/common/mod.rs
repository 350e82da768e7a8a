//! Shared by the tests: where the data lies, reference tables, the comparison rule.

pub mod acceptance;
pub mod asked;
pub mod cases;
pub mod corpus;
pub mod python;

use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use pbpk::compile::{Instance, Structure};
use pbpk::model::Model;
use pbpk::run::{OspVersion, Results, RunOptions};

/// A file of the reference data.
pub fn data(relative: &str) -> PathBuf {
    reference_folder().join("data").join(relative)
}

/// Where the reference data and the differential corpus lie: beside the repository, or where `PBPK_SHARED` says.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests are told by the environment where their data lies"
)]
pub fn reference_folder() -> PathBuf {
    std::env::var_os("PBPK_SHARED").map_or_else(|| root().join("../shared/pbpk"), PathBuf::from)
}

/// The repository: the folder above with the workspace's manifest.
pub fn root() -> PathBuf {
    let start = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let above = start.ancestors().find(|a| a.join("crates").is_dir());
    above.expect("the repository").to_path_buf()
}

/// Returns whether the reference models are absent, and prints that the calling test skips. With `CI=true` they must be
/// there.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests are told by the environment whether they may skip"
)]
pub fn is_reference_absent() -> bool {
    let folder = reference_folder().join("data");
    if folder.is_dir() {
        return false;
    }
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "{} is absent", folder.display());
    let test = std::thread::current();
    let test = test.name().unwrap_or_default();
    // Past the capture of libtest, which hides what passing tests print.
    let mut err = std::io::stderr();
    let _ = writeln!(err, "skipped: {test} needs ../shared (see CONTRIBUTING.md)");
    true
}

pub fn load(relative: &str) -> Model {
    pbpk::read::file(&data(relative), &Default::default())
        .unwrap_or_else(|e| panic!("{relative}: {e}"))
}

pub fn instance(model: Model) -> Instance {
    let outputs = model.outputs();
    Instance::new(&Structure::new(Arc::new(model), outputs).unwrap())
}

/// A reference table: header and columns.
pub struct Table {
    pub names: Vec<String>,
    pub columns: Vec<Vec<f64>>,
}

pub fn reference(name: &str) -> Table {
    find_reference(name).unwrap_or_else(|| panic!("no reference for {name}"))
}

pub fn find_reference(name: &str) -> Option<Table> {
    let bytes = std::fs::read(data(&format!("ref/{name}.ref.csv.gz"))).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    let mut lines = text.lines();
    let names = split(lines.next().unwrap());
    let mut columns = vec![Vec::new(); names.len()];
    for line in lines.filter(|l| !l.is_empty()) {
        for (column, field) in columns.iter_mut().zip(split(line)) {
            column.push(match field.as_str() {
                "nan" => f64::NAN,
                "inf" => f64::INFINITY,
                "-inf" => f64::NEG_INFINITY,
                number => number.parse().unwrap(),
            });
        }
    }
    Some(Table { names, columns })
}

fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// Worst deviation by the rule of the reference: per column relative to its peak, tiny columns absolutely.
pub struct Deviation {
    pub worst: f64,
    pub column: String,
    pub columns: usize,
}

pub fn deviation(results: &Results, table: &Table, abs_tol: f64) -> Result<Deviation, String> {
    let times = &table.columns[0];
    if times.len() != results.times.len() {
        return Err(format!(
            "{} times instead of {}",
            results.times.len(),
            times.len()
        ));
    }
    for (a, b) in results.times.iter().zip(times) {
        if a != b && (a - b).abs() > 1e-9 * b.abs() {
            return Err(format!("time {a} instead of {b}"));
        }
    }
    let mut worst = Deviation {
        worst: 0.0,
        column: String::new(),
        columns: table.names.len() - 1,
    };
    for (column, values) in table.names.iter().zip(&table.columns).skip(1) {
        let ours = results
            .by_path(column)
            .ok_or_else(|| format!("no output '{column}'"))?;
        let d = column_deviation(&ours, values, abs_tol).map_err(|e| format!("'{column}' {e}"))?;
        if d > worst.worst {
            worst = Deviation {
                worst: d,
                column: column.clone(),
                columns: worst.columns,
            };
        }
    }
    Ok(worst)
}

/// Deviation of one column; a column whose peak is below 100 absolute tolerances is compared with that band.
pub fn column_deviation(ours: &[f64], theirs: &[f64], abs_tol: f64) -> Result<f64, String> {
    let (mut peak, mut difference) = (0.0_f64, 0.0_f64);
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        if !b.is_finite() || !a.is_finite() {
            if a.is_nan() != b.is_nan() || (!a.is_nan() && a != b) {
                return Err(format!("row {i}: {a} instead of {b}"));
            }
            continue;
        }
        peak = peak.max(b.abs());
        difference = difference.max((a - b).abs());
    }
    let band = 100.0 * abs_tol;
    Ok(if peak >= band {
        difference / peak
    } else if difference <= band {
        0.0
    } else {
        difference / band
    })
}

pub fn run(instance: &Instance, options: &RunOptions<'_>) -> Results {
    pbpk::run::run(instance, options).unwrap_or_else(|e| panic!("{e}"))
}

/// Deviations of a case: at the file's tolerances, and tight.
pub fn measure(case: &cases::Case) -> (Deviation, Deviation, f64) {
    let model = load(case.file);
    let tolerances = model.solver;
    let instance = instance(model);
    let mut table = reference(case.reference);
    if case.file.ends_with(".simmodel.xml") {
        for name in table.names.iter_mut().skip(1) {
            *name = format!("S|{name}");
        }
    }
    let at = |options: &RunOptions<'_>| {
        let results = run(&instance, options);
        deviation(&results, &table, tolerances.abs_tol)
            .unwrap_or_else(|e| panic!("{}: {e}", case.file))
    };
    // The reference tables were made by the development build.
    let genuine = RunOptions {
        osp_version: OspVersion::Dev13,
        ..RunOptions::default()
    };
    let loose = at(&genuine);
    let tight = at(&RunOptions {
        rel_tol: Some(1e-10),
        abs_tol: Some(tolerances.abs_tol * 1e-5),
        ..genuine
    });
    (loose, tight, tolerances.rel_tol)
}
