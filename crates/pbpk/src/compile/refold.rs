//! What changes touch, as flat code: an individual of a population is folded without a look at the nodes of formulas.
//!
//! What of an operand is known before the run decides on rules, and that is the same in all individuals of the same changes.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model, operands precede their users in a body"
)]

use std::collections::HashMap;
use std::sync::Arc;

use super::fold::table;
use super::instance::Instance;
use super::program::{Instruction, Program};
use crate::formula::{Body, Expr, Known, Regime, Rule};
use crate::model::{FormulaKind, Reference, START, Table};
use crate::watch::{Interrupt, Watch};

/// Instructions that run without a look at the watch, and the rest of a formula.
const CODE_UNASKED: usize = 512;

/// Code over one number per quantity, with room behind them.
#[derive(Debug)]
pub(super) struct Refold {
    pieces: Vec<Program>,
    /// Numbers of the slots behind the quantities: room for what is in between, and the numbers of texts.
    behind: Vec<f64>,
    tables: Vec<Arc<Table>>,
}

impl Refold {
    /// The code for these quantities, in their order, of an individual that has taken the changes, whatever the numbers.
    pub(super) fn new(taken: &Instance, touched: &[u32]) -> Self {
        let model = taken.structure().model();
        let formulas = touched.iter().filter_map(|q| taken.formula_of(*q as usize));
        let nodes = formulas.map(|f| match &model.formulas[f].kind {
            FormulaKind::Explicit { body, .. } => body.plan().len(),
            _ => 1,
        });
        let mut writer = Writer {
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

    /// How many slots lie behind the quantities.
    pub(super) fn room(&self) -> usize {
        self.behind.len()
    }

    /// Computes the quantities anew.
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

/// Where a value lies, and how much of it is known.
type Value = (u32, Known);

struct Writer<'a> {
    taken: &'a Instance,
    /// Slots for what is in between.
    room: usize,
    numbers: Vec<f64>,
    /// Slots of numbers, by their bits.
    slots: HashMap<u64, u32>,
    code: Vec<Instruction>,
    pieces: Vec<Program>,
    tables: Vec<Arc<Table>>,
}

impl Writer<'_> {
    fn close(&mut self) {
        if !self.code.is_empty() {
            let code = std::mem::take(&mut self.code);
            self.pieces.push(Program::of(code));
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

    /// The slot for what is in between at this place.
    fn between(&self, i: usize) -> u32 {
        (self.taken.values().len() + i) as u32
    }

    fn reference(&mut self, reference: Reference) -> Value {
        match reference {
            Reference::Time => (self.number(START), Known::Live),
            Reference::Quantity(q) if self.taken.constants()[q] => (q as u32, Known::Constant),
            Reference::Quantity(q) => (q as u32, Known::Live),
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

    fn table(&mut self, to: u32, table: &Arc<Table>, x: u32) {
        self.tables.push(Arc::clone(table));
        let table = (self.tables.len() - 1) as u32;
        self.code.push(Instruction::Table { to, table, x });
    }

    /// As [`Body::evaluate_known`].
    fn body(&mut self, whole: u32, body: &Body, arguments: &[Reference]) {
        if let Some(value) = body.as_number() {
            let a = self.number(value);
            self.copy(whole, a);
            return;
        }
        let regime = body.regime(|i| match arguments.get(i) {
            Some(Reference::Quantity(q)) if self.taken.constants()[*q] => {
                Some(self.taken.values()[*q])
            }
            _ => None,
        });
        if regime == Regime::Zero {
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
                Expr::Number(value) => (self.number(value), Known::Constant),
                Expr::Argument(i) => {
                    let (at, known) = self.reference(arguments[i as usize]);
                    match regime {
                        Regime::Constant => (at, Known::Live),
                        Regime::Zero | Regime::Mixed => (at, known),
                    }
                }
                Expr::Unary(op, a) => {
                    let (a, known) = values[a as usize];
                    let known = known.max(Known::Folded);
                    let rule = Rule::known(known);
                    self.code.push(Instruction::Unary { to, op, rule, a });
                    (to, known)
                }
                Expr::Binary(op, a, b) => {
                    let (a, b) = (values[a as usize], values[b as usize]);
                    let rule = Rule::of(op, a.1, b.1, false);
                    let code = Instruction::binary(to, op, rule, a.0, b.0);
                    self.code.push(code);
                    (to, a.1.max(b.1).max(Known::Folded))
                }
                Expr::Select(c, a, b) => {
                    let [c, a, b] = [c, a, b].map(|i| values[i as usize]);
                    let known = c.1.max(a.1).max(b.1).max(Known::Folded);
                    let rule = Rule::known(c.1.max(b.1));
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
