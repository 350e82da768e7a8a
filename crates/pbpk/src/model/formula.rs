//! Formulas bound to the quantities they use.

use std::sync::Arc;

use super::PointTable;
use crate::formula::FormulaBody;

/// What an alias means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AliasReference {
    /// The simulation time, in minutes.
    Time,
    /// The quantity at this position.
    Quantity(usize),
}

/// A formula as one object uses it.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundFormula {
    /// The file's id or name, for messages.
    pub name: String,
    /// Kind of computation.
    pub kind: FormulaKind,
}

/// The four kinds of formula.
#[derive(Debug, Clone, PartialEq)]
pub enum FormulaKind {
    /// A text with one reference per alias of the body.
    Explicit {
        /// The parsed text, shared between users.
        body: Arc<FormulaBody>,
        /// One per alias.
        arguments: Vec<AliasReference>,
    },
    /// A table over time.
    Table(Arc<PointTable>),
    /// The table formula of another quantity, at t minus an offset.
    TableWithOffset {
        /// The quantity with a table as formula; without a table it counts with its plain value.
        table: usize,
        /// The offset, in minutes.
        offset: AliasReference,
    },
    /// The table formula of another quantity, at the value of a third.
    TableWithArgument {
        /// The quantity with a table as formula; without a table it counts with its plain value.
        table: usize,
        /// Argument of the table.
        argument: AliasReference,
    },
}

impl BoundFormula {
    /// Everything the formula uses; what it lists and its text does not use is left out. A quantity may come twice.
    pub fn references(&self) -> impl Iterator<Item = AliasReference> + '_ {
        let (text, more) = match &self.kind {
            FormulaKind::Explicit { body, arguments } => {
                (Some((&body.nodes, arguments)), [None, None, None])
            }
            FormulaKind::Table(_) => (None, [Some(AliasReference::Time), None, None]),
            FormulaKind::TableWithOffset { table, offset } => (
                None,
                [
                    Some(AliasReference::Quantity(*table)),
                    Some(*offset),
                    Some(AliasReference::Time),
                ],
            ),
            FormulaKind::TableWithArgument { table, argument } => (
                None,
                [
                    Some(AliasReference::Quantity(*table)),
                    Some(*argument),
                    None,
                ],
            ),
        };
        let used = text.into_iter().flat_map(|(nodes, arguments)| {
            nodes.iter().filter_map(|node| match node {
                crate::formula::Expr::Argument(i) => arguments.get(*i as usize).copied(),
                _ => None,
            })
        });
        used.chain(more.into_iter().flatten())
    }

    /// Returns the number, if the formula uses nothing else.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match &self.kind {
            FormulaKind::Explicit { body, .. } => {
                let uses = body
                    .nodes
                    .iter()
                    .any(|n| matches!(n, crate::formula::Expr::Argument(_)));
                (!uses).then(|| body.evaluate(&mut Vec::new(), |_| f64::NAN))
            }
            _ => None,
        }
    }
}
