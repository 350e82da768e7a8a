//! Definitions that go in circles are refused at load, by path.

use crate::error::LoadError;
use crate::model::{Model, Reference, Source};
use crate::watch::{Interrupt, Watch};

/// Refuses quantities whose (start) values define each other.
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
    let Some(Source::Formula(f)) = model.quantities.get(i).map(|q| q.source) else {
        return Vec::new();
    };
    let Some(formula) = model.formulas.get(f) else {
        return Vec::new();
    };
    let quantities = formula.references().filter_map(|r| match r {
        Reference::Time => None,
        Reference::Quantity(q) => Some(q),
    });
    quantities.collect()
}

/// The circle of a graph that is known to have one.
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

/// A circle in a graph of `n` nodes, if there is one; depth-first with its own stack.
///
/// # Errors
/// That of the watch.
fn find(
    n: usize,
    uses: impl Fn(usize) -> Vec<usize>,
    watch: &Watch<'_>,
) -> Result<Option<Vec<usize>>, Interrupt> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; n];
    for start in 0..n {
        if marks.get(start) != Some(&Mark::New) {
            continue;
        }
        let mut path: Vec<(usize, Vec<usize>)> = vec![(start, uses(start))];
        set(&mut marks, start, Mark::Open);
        while let Some((node, rest)) = path.last_mut() {
            let node = *node;
            match rest.pop() {
                None => {
                    watch.check()?;
                    set(&mut marks, node, Mark::Done);
                    path.pop();
                }
                Some(next) => match marks.get(next) {
                    Some(Mark::New) => {
                        set(&mut marks, next, Mark::Open);
                        path.push((next, uses(next)));
                    }
                    Some(Mark::Open) => {
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
    fn set(marks: &mut [Mark], i: usize, mark: Mark) {
        if let Some(m) = marks.get_mut(i) {
            *m = mark;
        }
    }
    Ok(None)
}
