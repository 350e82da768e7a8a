//! What changes touch, as flat code: an individual of a population is folded without a look at the nodes of formulas.
//!
//! What of an operand is known before the run decides on rules, and that is the same in all individuals of the same
//! changes.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model, operands precede their users in a body"
)]

use std::collections::HashMap;
use std::sync::Arc;

use super::fold::table;
use super::instance::Instance;
use super::program::{CompiledProgram, Instruction};
use crate::formula::{Expr, FormulaBody, FormulaRegime, KnownExtent, OperationRule};
use crate::model::{AliasReference, FormulaKind, PointTable, START};
use crate::watch::{Interrupt, Watch};

/// Instructions that run without a look at the watch, and the rest of a formula.
const CODE_UNASKED: usize = 512;

/// Code over one number per quantity, with room behind them.
#[derive(Debug)]
pub(super) struct RefoldCode {
    pieces: Vec<CompiledProgram>,
    /// Numbers of the slots behind the quantities: room for what is in between, and the numbers of texts.
    behind: Vec<f64>,
    tables: Vec<Arc<PointTable>>,
}

impl RefoldCode {
    /// Returns the code for these quantities, in their order, of an individual with the changes, for any numbers.
    pub(super) fn new(taken: &Instance, touched: &[u32]) -> Self {
        let model = taken.structure().model();
        let formulas = touched.iter().filter_map(|q| taken.formula_of(*q as usize));
        let nodes = formulas.map(|f| match &model.formulas[f].kind {
            FormulaKind::Explicit { body, .. } => body.plan().len(),
            _ => 1,
        });
        let mut writer = RefoldWriter {
            taken,
            room: nodes.max().unwrap_or(0),
            numbers: Vec::new(),
            slots: HashMap::new(),
            code: Vec::new(),
            pieces: Vec::new(),
            tables: Vec::new(),
        };
        for &q in touched {
            if let Some(f) = taken.formula_of(q as usize) {
                writer.quantity(q, f);
            }
        }
        writer.close();
        let mut behind = vec![0.0; writer.room];
        behind.extend(writer.numbers);
        Self {
            pieces: writer.pieces,
            behind,
            tables: writer.tables,
        }
    }

    /// Returns how many slots lie behind the quantities.
    pub(super) fn room(&self) -> usize {
        self.behind.len()
    }

    /// Computes the quantities again.
    pub(super) fn run(
        &self,
        individual: &mut Instance,
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        let mut values = individual.take_values();
        let quantities = values.len();
        values.extend_from_slice(&self.behind);
        for program in &self.pieces {
            program.run(&mut values, &self.tables);
            watch.ask()?;
        }
        values.truncate(quantities);
        individual.give_values(values);
        Ok(())
    }
}

/// Slot of a value, and how much of it is known.
type Value = (u32, KnownExtent);

struct RefoldWriter<'a> {
    taken: &'a Instance,
    /// Slots for what is in between.
    room: usize,
    numbers: Vec<f64>,
    /// Slots of numbers, by their bits.
    slots: HashMap<u64, u32>,
    code: Vec<Instruction>,
    pieces: Vec<CompiledProgram>,
    tables: Vec<Arc<PointTable>>,
}

impl RefoldWriter<'_> {
    fn close(&mut self) {
        if !self.code.is_empty() {
            let code = std::mem::take(&mut self.code);
            self.pieces.push(CompiledProgram::of(code));
        }
    }

    fn quantity(&mut self, q: u32, f: usize) {
        self.formula(q, f);
        if self.code.len() >= CODE_UNASKED {
            self.close();
        }
    }

    fn number(&mut self, value: f64) -> u32 {
        let first = self.between(self.room);
        let numbers = &mut self.numbers;
        *self.slots.entry(value.to_bits()).or_insert_with(|| {
            numbers.push(value);
            first + (numbers.len() - 1) as u32
        })
    }

    /// Returns the slot for what is in between at this place.
    fn between(&self, i: usize) -> u32 {
        (self.taken.values().len() + i) as u32
    }

    fn reference(&mut self, reference: AliasReference) -> Value {
        match reference {
            AliasReference::Time => (self.number(START), KnownExtent::Live),
            AliasReference::Quantity(q) if self.taken.constants()[q] => {
                (q as u32, KnownExtent::Constant)
            }
            AliasReference::Quantity(q) => (q as u32, KnownExtent::Live),
        }
    }

    /// Writes the code of a formula.
    fn formula(&mut self, to: u32, f: usize) {
        let model = self.taken.structure().model();
        match &model.formulas[f].kind {
            FormulaKind::Explicit { body, arguments } => self.body(to, body, arguments),
            FormulaKind::Table(table) => {
                let x = self.number(START);
                self.table(to, table, x);
            }
            FormulaKind::TableWithOffset { table: of, offset } => {
                match table(model, self.taken.formula_of(*of)) {
                    Some(table) => {
                        let (a, b) = (self.number(START), self.reference(*offset).0);
                        let x = self.between(0);
                        self.code.push(Instruction::Subtract { to: x, a, b });
                        self.table(to, table, x);
                    }
                    None => self.copy(to, *of as u32),
                }
            }
            FormulaKind::TableWithArgument {
                table: of,
                argument,
            } => match table(model, self.taken.formula_of(*of)) {
                Some(table) => {
                    let x = self.reference(*argument).0;
                    self.table(to, table, x);
                }
                None => self.copy(to, *of as u32),
            },
        }
    }

    fn copy(&mut self, to: u32, a: u32) {
        self.code.push(Instruction::Copy { to, a });
    }

    fn table(&mut self, to: u32, table: &Arc<PointTable>, x: u32) {
        self.tables.push(Arc::clone(table));
        let table = (self.tables.len() - 1) as u32;
        self.code.push(Instruction::Table { to, table, x });
    }

    /// As [`FormulaBody::evaluate_known`].
    fn body(&mut self, whole: u32, body: &FormulaBody, arguments: &[AliasReference]) {
        if let Some(value) = body.as_number() {
            let a = self.number(value);
            self.copy(whole, a);
            return;
        }
        let regime = body.regime(|i| match arguments.get(i) {
            Some(AliasReference::Quantity(q)) if self.taken.constants()[*q] => {
                Some(self.taken.values()[*q])
            }
            _ => None,
        });
        if regime == FormulaRegime::Zero {
            let a = self.number(0.0);
            self.copy(whole, a);
            return;
        }
        let plan = body.plan();
        let mut values: Vec<Value> = Vec::with_capacity(plan.len());
        for (i, node) in plan.iter().enumerate() {
            let to = if i + 1 == plan.len() {
                whole
            } else {
                self.between(i)
            };
            let value = match *node {
                Expr::Number(value) => (self.number(value), KnownExtent::Constant),
                Expr::Argument(i) => {
                    let (at, known) = self.reference(arguments[i as usize]);
                    match regime {
                        FormulaRegime::Constant => (at, KnownExtent::Live),
                        FormulaRegime::Zero | FormulaRegime::Mixed => (at, known),
                    }
                }
                Expr::Unary(op, a) => {
                    let (a, known) = values[a as usize];
                    let known = known.max(KnownExtent::Folded);
                    let rule = OperationRule::rule_for(known);
                    self.code.push(Instruction::Unary { to, op, rule, a });
                    (to, known)
                }
                Expr::Binary(op, a, b) => {
                    let (a, b) = (values[a as usize], values[b as usize]);
                    let rule = OperationRule::of(op, a.1, b.1, false);
                    let code = Instruction::binary(to, op, rule, a.0, b.0);
                    self.code.push(code);
                    (to, a.1.max(b.1).max(KnownExtent::Folded))
                }
                Expr::Select(c, a, b) => {
                    let [c, a, b] = [c, a, b].map(|i| values[i as usize]);
                    let known = c.1.max(a.1).max(b.1).max(KnownExtent::Folded);
                    let rule = OperationRule::rule_for(c.1.max(b.1));
                    let (c, a, b) = (c.0, a.0, b.0);
                    self.code.push(Instruction::Select { to, rule, c, a, b });
                    (to, known)
                }
            };
            values.push(value);
        }
        if let Some(&(root, _)) = values.last()
            && root != whole
        {
            self.copy(whole, root);
        }
    }
}
