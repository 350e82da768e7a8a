//! Flat code over one array of numbers: no branches but selections, no allocation, no lookups.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: slots are assigned by the emitter below the length of the array"
)]

use multiversion::multiversion;
use std::sync::Arc;

use super::graph::{ExpressionGraph, GraphNode, Id};
use super::groups::{self, InstructionGroup, OperandLists, SHORT_SLOTS, SlotArray};
use crate::formula::{
    BinaryOperation, OperationRule, UnaryOperation, apply_binary, apply_select, apply_unary,
    multiply,
};
use crate::model::PointTable;
use crate::place::SlotIndex;
use crate::watch::{Interrupt, Watch};

/// One instruction; numbers are slots of the array.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    /// `to = constant + Σ coefficient · term`; the coefficients lie side by side from `first` on, the terms are listed.
    Linear {
        to: u32,
        constant: u32,
        first: u32,
        start: u32,
        end: u32,
    },
    Multiply {
        to: u32,
        a: u32,
        b: u32,
    },
    /// 0 if a is 0, for any b.
    MultiplyUnlessZero {
        to: u32,
        a: u32,
        b: u32,
    },
    Divide {
        to: u32,
        a: u32,
        b: u32,
    },
    Add {
        to: u32,
        a: u32,
        b: u32,
    },
    Subtract {
        to: u32,
        a: u32,
        b: u32,
    },
    Binary {
        to: u32,
        op: BinaryOperation,
        rule: OperationRule,
        a: u32,
        b: u32,
    },
    Unary {
        to: u32,
        op: UnaryOperation,
        rule: OperationRule,
        a: u32,
    },
    Select {
        to: u32,
        rule: OperationRule,
        c: u32,
        a: u32,
        b: u32,
    },
    Table {
        to: u32,
        table: u32,
        x: u32,
    },
    Slope {
        to: u32,
        table: u32,
        x: u32,
    },
    Copy {
        to: u32,
        a: u32,
    },
}

impl Instruction {
    /// Returns an operator with its rule.
    pub(super) fn binary(
        to: u32,
        op: BinaryOperation,
        rule: OperationRule,
        a: u32,
        b: u32,
    ) -> Self {
        match (op, rule) {
            (BinaryOperation::Multiply, OperationRule::Live) => Self::Multiply { to, a, b },
            (BinaryOperation::Multiply, OperationRule::First) => {
                Self::MultiplyUnlessZero { to, a, b }
            }
            (BinaryOperation::Divide, OperationRule::Live) => Self::Divide { to, a, b },
            (BinaryOperation::Add, _) => Self::Add { to, a, b },
            (BinaryOperation::Subtract, _) => Self::Subtract { to, a, b },
            _ => Self::Binary { to, op, rule, a, b },
        }
    }

    /// Returns the slot that it writes.
    pub(super) fn to(&self) -> u32 {
        let [to, ..] = self.quad();
        to
    }

    /// Its target and operands; of a sum the constant and the first coefficient, of a table the argument.
    pub(super) fn quad(&self) -> [u32; 4] {
        match *self {
            Self::Linear {
                to,
                constant,
                first,
                ..
            } => [to, constant, first, 0],
            Self::Multiply { to, a, b }
            | Self::MultiplyUnlessZero { to, a, b }
            | Self::Divide { to, a, b }
            | Self::Add { to, a, b }
            | Self::Subtract { to, a, b }
            | Self::Binary { to, a, b, .. } => [to, a, b, 0],
            Self::Unary { to, a, .. } | Self::Copy { to, a } => [to, a, a, 0],
            Self::Select { to, c, a, b, .. } => [to, c, a, b],
            Self::Table { to, x, .. } | Self::Slope { to, x, .. } => [to, x, x, 0],
        }
    }

    /// About how many operands it has.
    pub(super) fn operands(&self) -> usize {
        match *self {
            Self::Linear { start, end, .. } => 1 + 2 * (end - start) as usize,
            _ => 2,
        }
    }

    /// Calls `each` with every slot that it reads and that a program can write: coefficients do not vary. A slot may
    /// come several times.
    pub(super) fn reads(&self, terms: &[u32], mut each: impl FnMut(u32)) {
        match *self {
            Self::Linear {
                constant,
                start,
                end,
                ..
            } => {
                each(constant);
                for term in &terms[start as usize..end as usize] {
                    each(*term);
                }
            }
            Self::Select { c, a, b, .. } => {
                each(c);
                each(a);
                each(b);
            }
            _ => {
                let [_, a, b, _] = self.quad();
                each(a);
                each(b);
            }
        }
    }
}

/// Code for some roots.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompiledProgram {
    pub(super) code: Vec<Instruction>,
    pub(super) terms: Vec<u32>,
    groups: Vec<InstructionGroup>,
    lists: OperandPlaces,
}

/// The places of a program's operands, as narrow as its array allows.
#[derive(Debug, Clone, Default)]
enum OperandPlaces {
    /// Not listed: the code runs in order.
    #[default]
    None,
    Short(OperandLists<u16>),
    Wide(OperandLists<u32>),
}

impl CompiledProgram {
    /// Returns code that runs in order.
    pub(super) fn of(code: Vec<Instruction>) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// Number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.code.len()
    }

    /// Lists the operands of the groups, for an array of so many slots.
    pub(super) fn list(&mut self, slots: usize) {
        let (code, groups, terms) = (&self.code, &self.groups, &self.terms);
        self.lists = if slots <= SHORT_SLOTS {
            OperandPlaces::Short(OperandLists::new(code, groups, terms))
        } else {
            OperandPlaces::Wide(OperandLists::new(code, groups, terms))
        };
    }

    /// Runs the code.
    pub(crate) fn run(&self, r: &mut [f64], tables: &[Arc<PointTable>]) {
        match &self.lists {
            OperandPlaces::None => run(&self.code, &self.terms, r, tables),
            OperandPlaces::Wide(lists) => self.group_operands(lists, r, tables),
            OperandPlaces::Short(lists) => match r.first_chunk_mut::<SHORT_SLOTS>() {
                Some(r) => short(self, lists, r, tables),
                None => self.group_operands(lists, r, tables),
            },
        }
    }

    #[inline(always)]
    fn group_operands<P: SlotIndex, R: SlotArray + ?Sized>(
        &self,
        lists: &OperandLists<P>,
        r: &mut R,
        tables: &[Arc<PointTable>],
    ) {
        for group in &self.groups {
            if !lists.run(group, r) {
                let code = &self.code[group.from..group.to];
                run(code, &self.terms, r.whole(), tables);
            }
        }
    }
}

/// As [`CompiledProgram::group_operands`], also for processors with 256-bit registers: their instructions need fewer
/// copies.
#[multiversion(targets("x86_64+avx2"))]
fn short(
    program: &CompiledProgram,
    lists: &OperandLists<u16>,
    r: &mut [f64; SHORT_SLOTS],
    tables: &[Arc<PointTable>],
) {
    program.group_operands(lists, r, tables);
}

/// Runs code one instruction after another.
fn run(code: &[Instruction], all_terms: &[u32], r: &mut [f64], tables: &[Arc<PointTable>]) {
    for instruction in code {
        match *instruction {
            Instruction::Linear {
                to,
                constant,
                first,
                start,
                end,
            } => {
                let terms = &all_terms[start as usize..end as usize];
                let coefficients = &r[first as usize..][..terms.len()];
                let mut sum = r[constant as usize];
                for (coefficient, term) in coefficients.iter().zip(terms) {
                    sum += coefficient * r[*term as usize];
                }
                if sum.is_nan() {
                    let factors = coefficients.iter().zip(terms);
                    let factors = factors.map(|(c, t)| (*c, r[*t as usize]));
                    sum = guarded_sum(r[constant as usize], factors);
                }
                r[to as usize] = sum;
            }
            Instruction::Multiply { to, a, b } => r[to as usize] = r[a as usize] * r[b as usize],
            Instruction::MultiplyUnlessZero { to, a, b } => {
                r[to as usize] = multiply(OperationRule::First, r[a as usize], r[b as usize])
            }
            Instruction::Divide { to, a, b } => r[to as usize] = r[a as usize] / r[b as usize],
            Instruction::Add { to, a, b } => r[to as usize] = r[a as usize] + r[b as usize],
            Instruction::Subtract { to, a, b } => r[to as usize] = r[a as usize] - r[b as usize],
            Instruction::Binary { to, op, rule, a, b } => {
                r[to as usize] = apply_binary(op, rule, r[a as usize], r[b as usize])
            }
            Instruction::Unary { to, op, rule, a } => {
                r[to as usize] = apply_unary(op, rule, r[a as usize])
            }
            Instruction::Select { to, rule, c, a, b } => {
                r[to as usize] = apply_select(rule, r[c as usize], r[a as usize], r[b as usize])
            }
            Instruction::Table { to, table, x } => {
                r[to as usize] = tables[table as usize].value(r[x as usize])
            }
            Instruction::Slope { to, table, x } => {
                r[to as usize] = tables[table as usize].derivative(r[x as usize])
            }
            Instruction::Copy { to, a } => r[to as usize] = r[a as usize],
        }
    }
}

/// Returns a sum in which a factor 0 makes its product 0, for any other factor: only checked if the plain sum is NaN.
#[cold]
pub(super) fn guarded_sum(constant: f64, factors: impl Iterator<Item = (f64, f64)>) -> f64 {
    let products = factors.map(|(c, t)| multiply(OperationRule::Either, c, t));
    products.fold(constant, |sum, product| sum + product)
}

/// Assigns slots to nodes as programs need them, so that what is used together lies together.
pub(super) struct CodeEmitter<'a> {
    graph: &'a ExpressionGraph,
    watch: &'a Watch<'a>,
    slots: Vec<u32>,
    next: u32,
    /// Slots of literals and of folded quantities.
    pub(super) literals: Vec<(u32, f64)>,
    pub(super) inputs: Vec<(u32, u32)>,
    constants: Vec<Id>,
    /// Coefficients that are also needed elsewhere: slot and node to copy.
    copies: Vec<(u32, Id)>,
}

const NONE: u32 = u32::MAX;
/// Terms of a sum that make a unit of work.
const TERMS_OF_A_UNIT: usize = 16;

impl<'a> CodeEmitter<'a> {
    /// Returns an emitter with the time and the states as first slots.
    pub(super) fn new(graph: &'a ExpressionGraph, states: u32, watch: &'a Watch<'a>) -> Self {
        let mut emitter = Self {
            graph,
            watch,
            slots: vec![NONE; graph.nodes.len()],
            next: states + 1,
            literals: Vec::new(),
            inputs: Vec::new(),
            constants: Vec::new(),
            copies: Vec::new(),
        };
        for (id, node) in graph.nodes.iter().enumerate() {
            match node {
                GraphNode::Time => emitter.slots[id] = 0,
                GraphNode::State(i) => emitter.slots[id] = i + 1,
                _ => {}
            }
        }
        emitter
    }

    /// Length of the array.
    pub(super) fn slots(&self) -> usize {
        self.next as usize
    }

    fn new_slots(&mut self, count: usize) -> u32 {
        let first = self.next;
        self.next += count as u32;
        first
    }

    /// Returns the slot of a node, new if it has none; values that do not vary are noted for the prologue.
    pub(super) fn slot(&mut self, id: Id) -> u32 {
        let known = self.slots[id as usize];
        if known != NONE {
            return known;
        }
        let slot = self.new_slots(1);
        self.settle(id, slot);
        slot
    }

    /// Gives a node its slot.
    fn settle(&mut self, id: Id, slot: u32) {
        self.slots[id as usize] = slot;
        match self.graph.node(id) {
            GraphNode::Literal(bits) => self.literals.push((slot, f64::from_bits(*bits))),
            GraphNode::Quantity(q) => self.inputs.push((slot, *q)),
            _ if !self.graph.varies(id) => self.constants.push(id),
            _ => {}
        }
    }

    /// Puts the value of a coefficient into a slot of its sum.
    fn coefficient(&mut self, id: Id, slot: u32) {
        match self.graph.node(id) {
            GraphNode::Literal(bits) => self.literals.push((slot, f64::from_bits(*bits))),
            GraphNode::Quantity(q) => self.inputs.push((slot, *q)),
            _ if self.slots[id as usize] == NONE => self.settle(id, slot),
            _ => self.copies.push((slot, id)),
        }
    }

    /// Code for the varying nodes that `roots` need.
    ///
    /// # Errors
    /// That of the watch, as of all that follow.
    pub(super) fn program(&mut self, roots: &[Id]) -> Result<CompiledProgram, Interrupt> {
        let needed = self.graph.needed(roots, ExpressionGraph::varies);
        let mut program = self.emit(&needed)?;
        program.groups = groups::arrange(&mut program.code, &program.terms, self.watch)?;
        Ok(program)
    }

    /// As [`CodeEmitter::program`], with the values of the roots side by side: also the first of their slots.
    pub(super) fn block(&mut self, roots: &[Id]) -> Result<(CompiledProgram, u32), Interrupt> {
        let first = self.new_slots(roots.len());
        let mut copied = Vec::new();
        for (slot, &root) in (first..).zip(roots) {
            if self.slots[root as usize] == NONE && self.graph.varies(root) {
                self.slots[root as usize] = slot;
            } else {
                copied.push((slot, root));
            }
        }
        let needed = self.graph.needed(roots, ExpressionGraph::varies);
        let mut program = self.emit(&needed)?;
        for (to, root) in copied {
            let a = self.slot(root);
            program.code.push(Instruction::Copy { to, a });
        }
        program.groups = groups::arrange(&mut program.code, &program.terms, self.watch)?;
        Ok((program, first))
    }

    /// Code for everything noted that does not vary; last, when all programs are emitted.
    pub(super) fn prologue(&mut self) -> Result<CompiledProgram, Interrupt> {
        let roots = std::mem::take(&mut self.constants);
        let needed = self.graph.needed(&roots, |graph, id| !graph.varies(id));
        let mut program = self.emit(&needed)?;
        for (to, id) in std::mem::take(&mut self.copies) {
            let a = self.slot(id);
            program.code.push(Instruction::Copy { to, a });
        }
        Ok(program)
    }

    fn emit(&mut self, nodes: &[Id]) -> Result<CompiledProgram, Interrupt> {
        let mut program = CompiledProgram::default();
        for &id in nodes {
            let before = program.terms.len();
            let instruction = self.instruction(id, &mut program.terms);
            program.code.extend(instruction);
            self.watch
                .work(1 + (program.terms.len() - before) / TERMS_OF_A_UNIT)?;
        }
        Ok(program)
    }

    /// Returns the instruction that computes a node; nothing for what is given.
    fn instruction(&mut self, id: Id, terms: &mut Vec<u32>) -> Option<Instruction> {
        let graph = self.graph;
        Some(match graph.node(id) {
            GraphNode::Time | GraphNode::State(_) => return None,
            GraphNode::Literal(_) | GraphNode::Quantity(_) => {
                self.slot(id);
                return None;
            }
            GraphNode::Unary(op, rule, a) => {
                let a = self.slot(*a);
                Instruction::Unary {
                    to: self.slot(id),
                    op: *op,
                    rule: *rule,
                    a,
                }
            }
            GraphNode::Binary(op, rule, a, b) => self.binary(id, *op, *rule, *a, *b),
            GraphNode::Select(rule, c, a, b) => {
                let (c, a, b) = (self.slot(*c), self.slot(*a), self.slot(*b));
                Instruction::Select {
                    to: self.slot(id),
                    rule: *rule,
                    c,
                    a,
                    b,
                }
            }
            GraphNode::Table(table, x) => {
                let x = self.slot(*x);
                Instruction::Table {
                    to: self.slot(id),
                    table: *table,
                    x,
                }
            }
            GraphNode::Slope(table, x) => {
                let x = self.slot(*x);
                Instruction::Slope {
                    to: self.slot(id),
                    table: *table,
                    x,
                }
            }
            GraphNode::Opaque(a) => {
                let a = self.slot(*a);
                Instruction::Copy {
                    to: self.slot(id),
                    a,
                }
            }
            GraphNode::Linear(sum, constant) => {
                let constant = self.slot(*constant);
                let start = terms.len() as u32;
                let first = self.new_slots(sum.len());
                for (slot, (coefficient, term)) in (first..).zip(sum) {
                    self.coefficient(*coefficient, slot);
                    terms.push(self.slot(*term));
                }
                Instruction::Linear {
                    to: self.slot(id),
                    constant,
                    first,
                    start,
                    end: terms.len() as u32,
                }
            }
        })
    }

    fn binary(
        &mut self,
        id: Id,
        op: BinaryOperation,
        rule: OperationRule,
        a: Id,
        b: Id,
    ) -> Instruction {
        let (a, b) = (self.slot(a), self.slot(b));
        Instruction::binary(self.slot(id), op, rule, a, b)
    }
}
