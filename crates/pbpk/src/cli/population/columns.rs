//! The joined results of a population as Arrow IPC files, one for each part, with a list of them.

use std::fs;
use std::io;
use std::path::Path;

use super::figures::{FigureSource, individuals};
use super::parts::{fnv, write_whole};
use crate::csv;
use crate::population::PopulationPlan;
use tables::Columns;

/// The list of the files.
const LIST: &str = "chunks.csv";

/// Columns of one file as they grow.
#[derive(Default)]
struct ColumnChunk {
    ids: Vec<i64>,
    numbers: Vec<(String, Vec<f64>)>,
    individuals: usize,
}

/// Writes the files: `size` individuals each, columns `IndividualId`, `Time [min]` and one `path [unit]` for each
/// output; and `chunks.csv` with file name, individuals, rows, bytes and checksum (FNV-1a, 64 bits) of each.
pub(super) fn write(
    results: &FigureSource<'_>,
    folder: &Path,
    plan: &PopulationPlan,
    size: usize,
) -> io::Result<()> {
    let outputs = plan.outputs().map(|(path, unit)| csv::titled(path, unit));
    let names: Vec<String> = ["Time [min]".to_owned()]
        .into_iter()
        .chain(outputs)
        .collect();
    let empty = || ColumnChunk {
        numbers: names.iter().map(|n| (n.clone(), Vec::new())).collect(),
        ..ColumnChunk::default()
    };
    let mut list = String::from("File,FirstId,LastId,Individuals,Rows,Bytes,FNV1a64\n");
    let (mut chunk, mut number) = (empty(), 0);
    individuals(results, |curves| {
        chunk.ids.extend(curves.times.iter().map(|_| curves.id));
        let width = names.len() - 1;
        let mut columns = chunk.numbers.iter_mut();
        if let Some((_, times)) = columns.next() {
            times.extend_from_slice(&curves.times);
        }
        for (output, (_, column)) in columns.enumerate() {
            column.extend(curves.values.iter().skip(output).step_by(width));
        }
        chunk.individuals += 1;
        if chunk.individuals == size {
            close(&chunk, folder, number, &mut list)?;
            number += 1;
            chunk = empty();
        }
        Ok(())
    })?;
    if chunk.individuals > 0 {
        close(&chunk, folder, number, &mut list)?;
    }
    write_whole(&folder.join(LIST), list.as_bytes())
}

/// Writes one file and its line.
fn close(chunk: &ColumnChunk, folder: &Path, number: usize, list: &mut String) -> io::Result<()> {
    let columns = Columns {
        ids: &chunk.ids,
        numbers: &chunk.numbers,
    };
    let bytes = tables::arrow(&columns).map_err(io::Error::other)?;
    let name = format!("results-{number:06}.arrow");
    write_whole(&folder.join(&name), &bytes)?;
    let (first, last) = (chunk.ids.first(), chunk.ids.last());
    let (first, last) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
    list.push_str(&format!(
        "{name},{first},{last},{},{},{},{:016x}\n",
        chunk.individuals,
        chunk.ids.len(),
        bytes.len(),
        fnv(bytes.iter().copied())
    ));
    Ok(())
}

/// Takes away what an earlier run left, so that no file is there without its line.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name == LIST || name.starts_with("results-") && name.ends_with(".arrow") {
            fs::remove_file(folder.join(&*name))?;
        }
    }
    Ok(())
}
