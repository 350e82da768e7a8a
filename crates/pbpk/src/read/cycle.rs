//! Definitions that go in circles are refused at load, by path.

use crate::error::LoadError;
use crate::model::{AliasReference, Model, ValueSource};
use crate::watch::{Interrupt, Watch};

/// Refuses quantities with (start) values that define each other.
pub(super) fn refuse(model: &Model, watch: &Watch<'_>) -> Result<(), LoadError> {
    match find(model.quantities.len(), |i| uses(model, i), watch)? {
        None => Ok(()),
        Some(circle) => Err(LoadError::Cycle {
            paths: circle.into_iter().map(|i| path(model, i)).collect(),
        }),
    }
}

fn path(model: &Model, i: usize) -> String {
    model
        .quantities
        .get(i)
        .map(|q| q.path.clone())
        .unwrap_or_default()
}

/// Positions of the quantities in the (start) formula of quantity `i`.
fn uses(model: &Model, i: usize) -> Vec<usize> {
    let Some(ValueSource::Formula(f)) = model.quantities.get(i).map(|q| q.source) else {
        return Vec::new();
    };
    let Some(formula) = model.formulas.get(f) else {
        return Vec::new();
    };
    let quantities = formula.references().filter_map(|r| match r {
        AliasReference::Time => None,
        AliasReference::Quantity(q) => Some(q),
    });
    quantities.collect()
}

/// Returns the circle of a graph that is known to have one.
///
/// # Errors
/// That of the watch.
pub(crate) fn of(
    n: usize,
    uses: impl Fn(usize) -> Vec<usize>,
    watch: &Watch<'_>,
) -> Result<Vec<usize>, Interrupt> {
    Ok(find(n, uses, watch)?.unwrap_or_default())
}

/// Returns a circle in a graph of `n` nodes, if there is one; depth-first with its own stack.
///
/// # Errors
/// That of the watch.
fn find(
    n: usize,
    uses: impl Fn(usize) -> Vec<usize>,
    watch: &Watch<'_>,
) -> Result<Option<Vec<usize>>, Interrupt> {
    #[derive(Clone, Copy, PartialEq)]
    enum CycleMark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![CycleMark::New; n];
    for start in 0..n {
        if marks.get(start) != Some(&CycleMark::New) {
            continue;
        }
        let mut path: Vec<(usize, Vec<usize>)> = vec![(start, uses(start))];
        set(&mut marks, start, CycleMark::Open);
        while let Some((node, rest)) = path.last_mut() {
            let node = *node;
            match rest.pop() {
                None => {
                    watch.check()?;
                    set(&mut marks, node, CycleMark::Done);
                    path.pop();
                }
                Some(next) => match marks.get(next) {
                    Some(CycleMark::New) => {
                        set(&mut marks, next, CycleMark::Open);
                        path.push((next, uses(next)));
                    }
                    Some(CycleMark::Open) => {
                        let open = path.iter().map(|(i, _)| *i);
                        let mut circle: Vec<usize> = open.skip_while(|i| *i != next).collect();
                        circle.push(next);
                        return Ok(Some(circle));
                    }
                    _ => {}
                },
            }
        }
    }
    fn set(marks: &mut [CycleMark], i: usize, mark: CycleMark) {
        if let Some(m) = marks.get_mut(i) {
            *m = mark;
        }
    }
    Ok(None)
}
