//! Two texts, line by line: what is taken away and what is added.

/// Most cells of the table of common lines; beyond it the lines that differ are shown as wholes.
const CELLS_MAX: usize = 1_000_000;
/// Lines that are shown around a change.
const CONTEXT: usize = 2;

/// A line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'t> {
    /// Lines from here on, by their number in the old text; those before are alike and not shown.
    At(usize),
    /// In both.
    Both(&'t str),
    /// In the old text alone.
    Old(&'t str),
    /// In the new text alone.
    New(&'t str),
}

/// The difference, with a few lines around each change; none where there is none. Line ends count.
#[must_use]
pub fn lines<'t>(old: &'t str, new: &'t str) -> Vec<Line<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (split(old), split(new));
    let ahead = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let behind = |text: &[&'t str]| text.get(ahead..).unwrap_or_default().to_vec();
    let (rest_old, rest_new) = (behind(&old), behind(&new));
    let tail = rest_old.iter().rev().zip(rest_new.iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    let middle_old = rest_old.get(..rest_old.len() - tail).unwrap_or_default();
    let middle_new = rest_new.get(..rest_new.len() - tail).unwrap_or_default();
    let mut all: Vec<Line<'t>> = Vec::new();
    all.extend(old.iter().take(ahead).map(|line| Line::Both(line)));
    all.extend(changed(middle_old, middle_new));
    let last = rest_old.get(rest_old.len() - tail..).unwrap_or_default();
    all.extend(last.iter().map(|line| Line::Both(line)));
    around(&all)
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The lines of two texts that begin and end otherwise.
fn changed<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let width = new.len() + 1;
    if old.len().saturating_add(1).saturating_mul(width) > CELLS_MAX {
        let taken = old.iter().map(|line| Line::Old(line));
        return taken
            .chain(new.iter().map(|line| Line::New(line)))
            .collect();
    }
    // How many lines are common to what follows each pair of places.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    let cell =
        |common: &[u32], a: usize, b: usize| common.get(a * width + b).copied().unwrap_or_default();
    for (a, of_old) in old.iter().enumerate().rev() {
        for (b, of_new) in new.iter().enumerate().rev() {
            let longest = if of_old == of_new {
                cell(&common, a + 1, b + 1) + 1
            } else {
                cell(&common, a + 1, b).max(cell(&common, a, b + 1))
            };
            if let Some(place) = common.get_mut(a * width + b) {
                *place = longest;
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut out = Vec::new();
    loop {
        match (old.get(a), new.get(b)) {
            (None, None) => return out,
            (Some(of_old), Some(of_new)) if of_old == of_new => {
                out.push(Line::Both(of_old));
                (a, b) = (a + 1, b + 1);
            }
            (Some(of_old), None) => {
                out.push(Line::Old(of_old));
                a += 1;
            }
            (Some(of_old), Some(_)) if cell(&common, a + 1, b) >= cell(&common, a, b + 1) => {
                out.push(Line::Old(of_old));
                a += 1;
            }
            (_, Some(of_new)) => {
                out.push(Line::New(of_new));
                b += 1;
            }
        }
    }
}

/// Only what is near a change.
fn around<'t>(all: &[Line<'t>]) -> Vec<Line<'t>> {
    let is_change = |line: &Line<'_>| matches!(line, Line::Old(_) | Line::New(_));
    let mut out = Vec::new();
    let (mut number, mut shown_before) = (1, true);
    for (at, line) in all.iter().enumerate() {
        let near = all.get(at.saturating_sub(CONTEXT)..all.len().min(at + CONTEXT + 1));
        let is_shown = near.unwrap_or_default().iter().any(is_change);
        if is_shown {
            if !shown_before {
                out.push(Line::At(number));
            }
            out.push(*line);
        }
        shown_before = is_shown;
        number += usize::from(!matches!(line, Line::New(_)));
    }
    out
}

#[cfg(test)]
mod tests;
