//! Derivatives of everything by some parameters, all at once, beside the numbers of an engine.
//!
//! What does not vary has few derivatives that are not 0: they are kept as lists. What varies has a row with one number
//! for each parameter.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: slots, rows and quantities are those of one variant"
)]

use std::ops::Range;

use super::engine::ModelEngine;
use super::instance::Instance;
use super::program::{CompiledProgram, Instruction};
use crate::compile::{FormulaFolder, TableReading};
use crate::formula::{BinaryOperation, slope, slopes};
use crate::model::START;
use crate::watch::{Interrupt, Watch};

/// Products after which it is asked whether to go on.
const PRODUCTS_UNASKED_MAX: usize = 1 << 18;

/// A list of derivatives is kept where at most one in this many is not 0.
const SPARSE_PART: usize = 4;

/// Numbers of a row that make a unit of work.
const NUMBERS_OF_A_UNIT: usize = 256;

/// Knowledge of a slot's derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKnowledge {
    /// All are 0.
    None,
    /// A list: from and to.
    List(u32, u32),
    /// A row.
    Row,
}

/// Derivatives by `width` parameters.
#[derive(Debug, Clone)]
pub(crate) struct TangentState {
    width: usize,
    /// A row for each quantity: derivatives of its number.
    quantities: Vec<f64>,
    moved: Vec<bool>,
    /// A row for each slot of the engine.
    rows: Vec<f64>,
    kept: Vec<SlotKnowledge>,
    entries: Vec<(u32, f64)>,
    /// The row under way, and whether anything was added to it.
    sum: Vec<f64>,
    any: bool,
}

impl TangentState {
    /// Derivatives of an individual's numbers at the start by these quantities, each taken as set to its number.
    ///
    /// # Errors
    /// That of `watch`.
    pub(crate) fn new(
        instance: &Instance,
        parameters: &[usize],
        watch: &Watch<'_>,
    ) -> Result<Self, Interrupt> {
        let (n, width) = (instance.values().len(), parameters.len());
        let mut tangents = Self {
            width,
            quantities: vec![0.0; n * width],
            moved: vec![false; n],
            rows: Vec::new(),
            kept: Vec::new(),
            entries: Vec::new(),
            sum: vec![0.0; width],
            any: false,
        };
        for (k, &q) in parameters.iter().enumerate() {
            tangents.quantities[q * width + k] = 1.0;
            tangents.moved[q] = true;
        }
        let set = instance.overridden();
        let structure = instance.structure();
        let own = |q: usize| {
            let own = super::own_formula(structure.model(), q);
            own.filter(|_| !set[q])
        };
        let mut folder = FormulaFolder::new(structure.model());
        for u in structure.start.dependents_of(parameters, |user| !set[user]) {
            let u = u as usize;
            watch.work(1 + width / NUMBERS_OF_A_UNIT)?;
            if let Some(f) = own(u) {
                let (values, constants) = (instance.values(), instance.constants());
                tangents.fold_quantity(&mut folder, u, f, START, values, constants, |q, _| own(q));
                // A parameter with a formula follows that for all others, and itself for itself.
                if let Some(k) = parameters.iter().position(|p| *p == u) {
                    tangents.quantities[u * width + k] = 1.0;
                    tangents.moved[u] = true;
                }
            }
        }
        Ok(tangents)
    }

    /// Number of parameters.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Derivatives of a quantity's number.
    pub(crate) fn quantity(&self, q: usize) -> &[f64] {
        &self.quantities[q * self.width..(q + 1) * self.width]
    }

    /// Returns whether any derivative of a quantity's number is not 0.
    pub(crate) fn moves(&self, q: usize) -> bool {
        self.moved[q]
    }

    /// Gives a quantity's number these derivatives.
    pub(crate) fn set(&mut self, q: usize, row: &[f64]) {
        self.moved[q] = row.iter().any(|d| *d != 0.0);
        self.quantities[q * self.width..(q + 1) * self.width].copy_from_slice(row);
    }

    /// Derivatives of the number that a quantity gets from formula f.
    pub(crate) fn fold_quantity(
        &mut self,
        folder: &mut FormulaFolder<'_>,
        q: usize,
        f: usize,
        t: f64,
        values: &[f64],
        constants: &[bool],
        table_of: impl Fn(usize, TableReading) -> Option<usize>,
    ) {
        let width = self.width;
        self.sum.fill(0.0);
        self.any = false;
        let (sum, quantities, moved) = (&mut self.sum, &self.quantities, &self.moved);
        let mut any = false;
        folder.gradient(f, t, values, constants, table_of, |from, derivative| {
            if moved[from] && derivative != 0.0 {
                any = true;
                add(
                    sum,
                    derivative,
                    &quantities[from * width..(from + 1) * width],
                );
            }
        });
        self.moved[q] = any;
        self.quantities[q * width..(q + 1) * width].copy_from_slice(&self.sum);
    }

    /// Takes over the derivatives of all quantities for the code of `engine` with its numbers loaded.
    ///
    /// # Errors
    /// That of `watch`.
    pub(crate) fn load(
        &mut self,
        engine: &ModelEngine,
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        let width = self.width;
        let variant = &engine.variant;
        self.rows.clear();
        for _ in 0..variant.slots {
            watch.work(1 + width / NUMBERS_OF_A_UNIT)?;
            self.rows.resize(self.rows.len() + width, 0.0);
        }
        self.kept.clear();
        self.kept.resize(variant.slots, SlotKnowledge::None);
        self.entries.clear();
        for &(slot, q) in &variant.inputs {
            let (slot, q) = (slot as usize, q as usize);
            if self.moved[q] {
                let row = &self.quantities[q * width..(q + 1) * width];
                self.rows[slot * width..(slot + 1) * width].copy_from_slice(row);
                self.kept[slot] = SlotKnowledge::Row;
            }
        }
        self.run(&variant.prologue, engine, watch)?;
        for slot in 0..variant.slots {
            watch.work(1 + width / NUMBERS_OF_A_UNIT)?;
            if self.kept[slot] != SlotKnowledge::Row {
                continue;
            }
            let row = &self.rows[slot * width..(slot + 1) * width];
            let count = row.iter().filter(|d| **d != 0.0).count();
            if count * SPARSE_PART <= width {
                let from = self.entries.len() as u32;
                let listed = row.iter().enumerate().filter(|(_, d)| **d != 0.0);
                self.entries.extend(listed.map(|(k, d)| (k as u32, *d)));
                self.kept[slot] = SlotKnowledge::List(from, self.entries.len() as u32);
            }
        }
        Ok(())
    }

    /// Takes over the derivatives of the scaled states, a row each.
    fn place(&mut self, engine: &ModelEngine, states: &[f64]) {
        self.rows[self.width..(engine.states + 1) * self.width].copy_from_slice(states);
        self.kept[1..=engine.states].fill(SlotKnowledge::Row);
    }

    /// Derivatives of the rates, a row each, where `engine` was evaluated just now.
    ///
    /// # Errors
    /// That of `watch`, as of all that follow.
    pub(crate) fn rates(
        &mut self,
        engine: &ModelEngine,
        states: &[f64],
        out: &mut [f64],
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        self.place(engine, states);
        self.run(&engine.variant.rhs, engine, watch)?;
        self.take(engine.variant.rates.clone(), out);
        Ok(())
    }

    /// Derivatives of the outputs, a row each, where `engine` gave these outputs just now.
    pub(crate) fn outputs(
        &mut self,
        engine: &ModelEngine,
        states: &[f64],
        out: &mut [f64],
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        self.place(engine, states);
        self.run(&engine.variant.outputs, engine, watch)?;
        self.take(engine.variant.values.clone(), out);
        Ok(())
    }

    /// Derivatives of the value of an assignment, where `engine` gave that value just now.
    pub(crate) fn assignment(
        &mut self,
        engine: &ModelEngine,
        event: usize,
        assignment: usize,
        states: &[f64],
        watch: &Watch<'_>,
    ) -> Result<Vec<f64>, Interrupt> {
        self.place(engine, states);
        let code = &engine.variant.assignments[event][assignment];
        self.run(&code.program, engine, watch)?;
        let mut out = vec![0.0; self.width];
        self.take(code.slot..code.slot + 1, &mut out);
        Ok(out)
    }

    fn take(&self, slots: Range<u32>, out: &mut [f64]) {
        if self.width == 0 {
            return;
        }
        for (row, slot) in out.chunks_exact_mut(self.width).zip(slots) {
            let slot = slot as usize;
            match self.kept[slot] {
                SlotKnowledge::None => row.fill(0.0),
                SlotKnowledge::List(from, to) => {
                    row.fill(0.0);
                    for &(k, d) in &self.entries[from as usize..to as usize] {
                        row[k as usize] = d;
                    }
                }
                SlotKnowledge::Row => {
                    row.copy_from_slice(&self.rows[slot * self.width..(slot + 1) * self.width]);
                }
            }
        }
    }

    /// Adds a multiple of a slot's derivatives to the row under way.
    #[inline]
    fn add(&mut self, factor: f64, slot: u32) {
        let slot = slot as usize;
        match self.kept[slot] {
            SlotKnowledge::None => {}
            _ if factor == 0.0 || !factor.is_finite() => {}
            SlotKnowledge::List(from, to) => {
                self.any = true;
                for &(k, d) in &self.entries[from as usize..to as usize] {
                    self.sum[k as usize] += factor * d;
                }
            }
            SlotKnowledge::Row => {
                self.any = true;
                let row = &self.rows[slot * self.width..(slot + 1) * self.width];
                add(&mut self.sum, factor, row);
            }
        }
    }

    fn store(&mut self, to: u32) {
        let to = to as usize;
        if !self.any {
            self.kept[to] = SlotKnowledge::None;
            return;
        }
        self.rows[to * self.width..(to + 1) * self.width].copy_from_slice(&self.sum);
        self.kept[to] = SlotKnowledge::Row;
        self.sum.fill(0.0);
        self.any = false;
    }

    /// Differentiates a program over the engine's array.
    fn run(
        &mut self,
        program: &CompiledProgram,
        engine: &ModelEngine,
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        let r = engine.array.as_slice();
        let at = |slot: u32| r[slot as usize];
        self.sum.fill(0.0);
        self.any = false;
        let mut unasked = 0;
        for instruction in &program.code {
            unasked += self.width * instruction.operands();
            if unasked > PRODUCTS_UNASKED_MAX {
                unasked = 0;
                watch.ask()?;
            }
            let to = match *instruction {
                Instruction::Linear {
                    to,
                    constant,
                    first,
                    start,
                    end,
                } => {
                    self.add(1.0, constant);
                    for (coefficient, &term) in
                        (first..).zip(&program.terms[start as usize..end as usize])
                    {
                        self.add(at(term), coefficient);
                        self.add(at(coefficient), term);
                    }
                    to
                }
                Instruction::Multiply { to, a, b }
                | Instruction::MultiplyUnlessZero { to, a, b } => {
                    self.both(BinaryOperation::Multiply, at, (to, a, b))
                }
                Instruction::Divide { to, a, b } => {
                    self.both(BinaryOperation::Divide, at, (to, a, b))
                }
                Instruction::Add { to, a, b } => self.both(BinaryOperation::Add, at, (to, a, b)),
                Instruction::Subtract { to, a, b } => {
                    self.both(BinaryOperation::Subtract, at, (to, a, b))
                }
                Instruction::Binary { to, op, a, b, .. } => self.both(op, at, (to, a, b)),
                Instruction::Unary { to, op, a, .. } => {
                    if self.kept[a as usize] != SlotKnowledge::None {
                        self.add(slope(op, at(a), at(to)), a);
                    }
                    to
                }
                Instruction::Select { to, c, a, b, .. } => {
                    self.add(1.0, if at(c) == 1.0 { a } else { b });
                    to
                }
                Instruction::Table { to, table, x } => {
                    if self.kept[x as usize] != SlotKnowledge::None {
                        self.add(engine.variant.tables[table as usize].derivative(at(x)), x);
                    }
                    to
                }
                Instruction::Slope { to, .. } => to,
                Instruction::Copy { to, a } => {
                    self.add(1.0, a);
                    to
                }
            };
            self.store(to);
        }
        Ok(())
    }

    fn both(
        &mut self,
        op: BinaryOperation,
        at: impl Fn(u32) -> f64,
        (to, a, b): (u32, u32, u32),
    ) -> u32 {
        if self.kept[a as usize] != SlotKnowledge::None
            || self.kept[b as usize] != SlotKnowledge::None
        {
            let (by_a, by_b) = slopes(op, at(a), at(b), at(to));
            self.add(by_a, a);
            self.add(by_b, b);
        }
        to
    }
}

/// `sum += factor · row`.
fn add(sum: &mut [f64], factor: f64, row: &[f64]) {
    for (s, d) in sum.iter_mut().zip(row) {
        *s += factor * d;
    }
}
