//! Files for other programs, read back with other code: workbooks and Arrow IPC.

#![cfg(feature = "cli")]

use std::io::Read;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};

use crate::cli::{data, example, folder, sim};

/// The files of a zip archive, by its central directory.
fn unzipped(bytes: &[u8]) -> Vec<(String, String)> {
    let word = |at: usize, n: usize| -> usize {
        (0..n).map(|i| usize::from(bytes[at + i]) << (8 * i)).sum()
    };
    let end = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap();
    let (count, mut at) = (word(end + 10, 2), word(end + 16, 4));
    let mut files = Vec::new();
    for _ in 0..count {
        let (packed, name, extra, note) = (
            word(at + 20, 4),
            word(at + 28, 2),
            word(at + 30, 2),
            word(at + 32, 2),
        );
        let local = word(at + 42, 4);
        let start = local + 30 + word(local + 26, 2) + word(local + 28, 2);
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(&bytes[start..start + packed])
            .read_to_string(&mut text)
            .unwrap();
        let name = String::from_utf8(bytes[at + 46..at + 46 + name].to_vec()).unwrap();
        at += 46 + name.len() + extra + note;
        files.push((name, text));
    }
    files
}

/// What stands between two marks, each time.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open)
        .skip(1)
        .map(|p| p.split(close).next().unwrap())
        .collect()
}

#[test]
fn a_workbook_holds_the_table() {
    let root = folder("xlsx");
    let file = root.join("pk.xlsx");
    let name = file.display().to_string();
    let words = ["pk", &example(), "--output", "**|Concentration"];
    let done = sim(&[&words[..], &["--xlsx", &name]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let bytes = std::fs::read(&file).unwrap();
    let files = unzipped(&bytes);
    let part = |name: &str| &files.iter().find(|f| f.0 == name).unwrap().1;
    let strings: Vec<&str> = between(part("xl/sharedStrings.xml"), "<t>", "</t>");
    let rows = between(part("xl/worksheets/sheet1.xml"), "<row ", "</row>");
    let cell = |cell: &str| {
        let value = between(cell, "<v>", "</v>")[0];
        if cell.contains("t=\"s\"") {
            strings[value.parse::<usize>().unwrap()].to_owned()
        } else {
            value.to_owned()
        }
    };
    let cells = |row: &str| row.split("<c ").skip(1).map(cell).collect::<Vec<String>>();
    assert_eq!(cells(rows[0]), ["Output", "Parameter", "Value", "Unit"]);

    let json = sim(&[&words[..], &["--json"]].concat()).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let expected = json["parameters"].as_array().unwrap();
    assert_eq!(rows.len() - 1, expected.len());
    let mut numbers = 0;
    for (row, expected) in rows[1..].iter().zip(expected) {
        let row = cells(row);
        assert_eq!(row[0], expected["output"].as_str().unwrap());
        assert_eq!(row[1], expected["parameter"].as_str().unwrap());
        match expected["value"].as_f64() {
            Some(value) => {
                let found: f64 = row[2].parse().unwrap();
                assert!((found - value).abs() <= 1e-15 * value.abs(), "{row:?}");
                numbers += 1;
            }
            None => assert!(["nan", "inf", "-inf"].contains(&row[2].as_str()), "{row:?}"),
        }
    }
    assert!(numbers > 5);
    // The same table is the same file.
    let again = root.join("again.xlsx");
    let done = sim(&[&words[..], &["--xlsx", &again.display().to_string()]].concat());
    assert_eq!(done.code, 0);
    assert!(std::fs::read(&again).unwrap() == bytes);
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn columnar_files_hold_the_results() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("arrow");
    let out = root.join("out");
    let model = data("pkml/pksim_simple_simulation.pkml")
        .display()
        .to_string();
    let people = data("csv/ospr_pop.csv").display().to_string();
    let done = sim(&[
        "population",
        &model,
        &people,
        "--output",
        "Organism|VenousBlood|Plasma|C1",
        "--output",
        "Organism|Fat|Intracellular|C1",
        "--out",
        &out.display().to_string(),
        "--chunk",
        "4",
        "--arrow",
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    let table = std::fs::read(out.join("results.csv")).unwrap();
    let individuals = pbpk::csv::results(&mut table.as_slice()).unwrap();
    let list = std::fs::read_to_string(out.join("chunks.csv")).unwrap();
    let mut rest = individuals.iter();
    let mut files = 0;
    for line in list.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let bytes = std::fs::read(out.join(fields[0])).unwrap();
        assert_eq!(fields[5], bytes.len().to_string());
        // FNV-1a, from its definition.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
        });
        assert_eq!(fields[6], format!("{hash:016x}"));
        let mut reader =
            arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        assert!(reader.next().is_none());
        assert_eq!(fields[4], batch.num_rows().to_string());
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names[..2], ["IndividualId", "Time [min]"]);
        assert!(
            names[2].ends_with("Organism|VenousBlood|Plasma|C1 [µmol]"),
            "{names:?}"
        );
        let column = |c: usize| {
            batch
                .column(c)
                .as_primitive::<Float64Type>()
                .values()
                .to_vec()
        };
        let ids = batch
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec();
        let (times, values) = (column(1), [column(2), column(3)]);
        let count: usize = fields[3].parse().unwrap();
        assert_eq!(fields[1], ids[0].to_string());
        for (i, individual) in rest.by_ref().take(count).enumerate() {
            let at = i * 129..(i + 1) * 129;
            assert!(ids[at.clone()].iter().all(|id| *id == individual.id));
            assert_eq!(times[at.clone()], individual.curves.times);
            for (column, series) in values.iter().zip(&individual.curves.series) {
                assert_eq!(column[at.clone()], series.values);
            }
        }
        files += 1;
    }
    assert_eq!(files, 3);
    assert!(rest.next().is_none());
    std::fs::remove_dir_all(root).unwrap();
}
