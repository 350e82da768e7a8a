//! Code in groups: instructions of one kind that can run one after another lie side by side, and a loop of its own runs
//! through each group. The processor then has no jump to guess for every instruction, and the places of its operands
//! are read in order.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: slots are assigned by the emitter below the length of the array"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;

use super::graph::NodeHasher;
use super::program::{Instruction, guarded_sum};
use crate::formula::{
    BinaryOperation, OperationRule, UnaryOperation, apply_binary, apply_select, apply_unary,
    divide, multiply,
};
use crate::place::SlotIndex;
use crate::watch::{Interrupt, Watch};

/// Sums with more terms run one by one.
const TERMS_MAX: usize = 12;
/// Length of an array of which a 16-bit place is always a place.
pub(super) const SHORT_SLOTS: usize = <u16 as SlotIndex>::COUNT;

/// Length of the array for so many slots.
pub(super) fn array_length(slots: usize) -> usize {
    slots.max(SHORT_SLOTS)
}

/// Common property of the instructions of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroupKind {
    /// Sums of so many terms.
    Sum(usize),
    Binary(BinaryOperation, OperationRule),
    Unary(UnaryOperation, OperationRule),
    Select(OperationRule),
    Copy,
    /// Tables, and sums of many terms: run by the general loop.
    Other,
}

/// Instructions of one kind: their positions in the code, and the terms of the first among the listed terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct InstructionGroup {
    pub(super) kind: GroupKind,
    pub(super) from: usize,
    pub(super) to: usize,
    terms: usize,
}

impl GroupKind {
    fn of(instruction: &Instruction) -> Self {
        match *instruction {
            Instruction::Linear { start, end, .. } => match (end - start) as usize {
                n @ 1..=TERMS_MAX => Self::Sum(n),
                _ => Self::Other,
            },
            Instruction::Multiply { .. } => {
                Self::Binary(BinaryOperation::Multiply, OperationRule::Live)
            }
            Instruction::MultiplyUnlessZero { .. } => {
                Self::Binary(BinaryOperation::Multiply, OperationRule::First)
            }
            Instruction::Divide { .. } => {
                Self::Binary(BinaryOperation::Divide, OperationRule::Live)
            }
            Instruction::Add { .. } => Self::Binary(BinaryOperation::Add, OperationRule::Live),
            Instruction::Subtract { .. } => {
                Self::Binary(BinaryOperation::Subtract, OperationRule::Live)
            }
            Instruction::Binary { op, rule, .. } => Self::Binary(op, rule),
            Instruction::Unary { op, rule, .. } => Self::Unary(op, rule),
            Instruction::Select { rule, .. } => Self::Select(rule),
            Instruction::Copy { .. } => Self::Copy,
            Instruction::Table { .. } | Instruction::Slope { .. } => Self::Other,
        }
    }
}

/// Which instructions of a code wait for which.
struct WaitingInstructions {
    /// How many results of the code each still waits for.
    open: Vec<u32>,
    /// Users of instruction i: from `start[i]` to `start[i + 1]`.
    start: Vec<u32>,
    users: Vec<u32>,
}

impl WaitingInstructions {
    fn new(code: &[Instruction], terms: &[u32], watch: &Watch<'_>) -> Result<Self, Interrupt> {
        let mut writer: HashMap<u32, usize, BuildHasherDefault<NodeHasher>> = HashMap::default();
        let mut open = vec![0; code.len()];
        let mut pairs = Vec::new();
        for (i, instruction) in code.iter().enumerate() {
            watch.check()?;
            instruction.reads(terms, |slot| {
                if let Some(&by) = writer.get(&slot) {
                    open[i] += 1;
                    pairs.push((by as u32, i as u32));
                }
            });
            writer.insert(instruction.to(), i);
        }
        watch.ask()?;
        pairs.sort_unstable();
        watch.ask()?;
        let from = |i: usize| pairs.partition_point(|p| (p.0 as usize) < i) as u32;
        Ok(Self {
            open,
            start: (0..=code.len()).map(from).collect(),
            users: pairs.iter().map(|p| p.1).collect(),
        })
    }

    /// Calls `each` with every instruction that waits for nothing more when this one is done.
    fn done(&mut self, i: usize, mut each: impl FnMut(usize)) {
        for &user in &self.users[self.start[i] as usize..self.start[i + 1] as usize] {
            let open = &mut self.open[user as usize];
            *open -= 1;
            if *open == 0 {
                each(user as usize);
            }
        }
    }
}

/// Brings the code into groups, operands before their users: of the kinds that are ready, always the one with the most
/// instructions, and all of them that its own results make ready.
///
/// # Errors
/// That of the watch.
pub(super) fn arrange(
    code: &mut Vec<Instruction>,
    terms: &[u32],
    watch: &Watch<'_>,
) -> Result<Vec<InstructionGroup>, Interrupt> {
    let mut waiting = WaitingInstructions::new(code, terms, watch)?;
    let mut ready: BTreeMap<GroupKind, BinaryHeap<Reverse<usize>>> = BTreeMap::new();
    let kinds: Vec<GroupKind> = code.iter().map(GroupKind::of).collect();
    for i in (0..code.len()).filter(|i| waiting.open[*i] == 0) {
        ready.entry(kinds[i]).or_default().push(Reverse(i));
    }
    let (mut arranged, mut groups) = (Vec::with_capacity(code.len()), Vec::new());
    let mut listed = 0;
    let largest = |ready: &BTreeMap<GroupKind, BinaryHeap<Reverse<usize>>>| {
        let most = ready.iter().max_by_key(|(_, heap)| heap.len());
        most.filter(|(_, heap)| !heap.is_empty())
            .map(|(kind, _)| *kind)
    };
    while let Some(kind) = largest(&ready) {
        let from = arranged.len();
        while let Some(Reverse(i)) = ready.get_mut(&kind).and_then(BinaryHeap::pop) {
            watch.check()?;
            arranged.push(code[i]);
            waiting.done(i, |next| {
                ready.entry(kinds[next]).or_default().push(Reverse(next));
            });
        }
        groups.push(InstructionGroup {
            kind,
            from,
            to: arranged.len(),
            terms: listed,
        });
        if let GroupKind::Sum(n) = kind {
            listed += n * (arranged.len() - from);
        }
    }
    *code = arranged;
    Ok(groups)
}

/// The array: a slice, or one so long that 16-bit places need no look at its length.
pub(super) trait SlotArray {
    fn at(&self, place: impl SlotIndex) -> f64;
    fn set(&mut self, place: impl SlotIndex, value: f64);
    fn whole(&mut self) -> &mut [f64];
    fn row<const LENGTH: usize>(&self, place: impl SlotIndex) -> &[f64];
}

impl SlotArray for [f64] {
    #[inline(always)]
    fn at(&self, place: impl SlotIndex) -> f64 {
        self[place.wide()]
    }
    #[inline(always)]
    fn set(&mut self, place: impl SlotIndex, value: f64) {
        self[place.wide()] = value;
    }
    fn whole(&mut self) -> &mut [f64] {
        self
    }
    #[inline(always)]
    fn row<const LENGTH: usize>(&self, place: impl SlotIndex) -> &[f64] {
        &self[place.wide()..][..LENGTH]
    }
}

impl SlotArray for [f64; SHORT_SLOTS] {
    #[inline(always)]
    fn at(&self, place: impl SlotIndex) -> f64 {
        self[place.wide()]
    }
    #[inline(always)]
    fn set(&mut self, place: impl SlotIndex, value: f64) {
        self[place.wide()] = value;
    }
    fn whole(&mut self) -> &mut [f64] {
        self
    }
    #[inline(always)]
    fn row<const LENGTH: usize>(&self, place: impl SlotIndex) -> &[f64] {
        &self[place.wide()..][..LENGTH]
    }
}

/// Places of all operands, group by group.
#[derive(Debug, Clone)]
pub(super) struct OperandLists<P> {
    /// For each instruction its target and operands; for a sum target, constant and first coefficient.
    quads: Vec<[P; 4]>,
    /// Terms of the sums in groups.
    terms: Vec<P>,
}

impl<P: SlotIndex> OperandLists<P> {
    pub(super) fn new(code: &[Instruction], groups: &[InstructionGroup], terms: &[u32]) -> Self {
        let mut listed = Vec::new();
        for group in groups
            .iter()
            .filter(|g| matches!(g.kind, GroupKind::Sum(_)))
        {
            for instruction in &code[group.from..group.to] {
                if let Instruction::Linear { start, end, .. } = *instruction {
                    let own = &terms[start as usize..end as usize];
                    listed.extend(own.iter().map(|t| P::new(*t)));
                }
            }
        }
        Self {
            quads: code.iter().map(|i| i.quad().map(P::new)).collect(),
            terms: listed,
        }
    }

    /// Runs a group; false if it is one for the general loop.
    #[inline(always)]
    pub(super) fn run<R: SlotArray + ?Sized>(&self, group: &InstructionGroup, r: &mut R) -> bool {
        let quads = &self.quads[group.from..group.to];
        match group.kind {
            GroupKind::Sum(terms) => self.sums(terms, quads, &self.terms[group.terms..], r),
            GroupKind::Binary(BinaryOperation::Multiply, OperationRule::Live) => {
                binaries(quads, r, |a, b| a * b)
            }
            GroupKind::Binary(BinaryOperation::Multiply, OperationRule::First) => {
                binaries(quads, r, |a, b| multiply(OperationRule::First, a, b));
            }
            GroupKind::Binary(BinaryOperation::Multiply, OperationRule::Either) => {
                binaries(quads, r, |a, b| multiply(OperationRule::Either, a, b));
            }
            GroupKind::Binary(BinaryOperation::Divide, OperationRule::Live) => {
                binaries(quads, r, |a, b| a / b)
            }
            GroupKind::Binary(BinaryOperation::Divide, OperationRule::First) => {
                binaries(quads, r, |a, b| divide(OperationRule::First, a, b));
            }
            GroupKind::Binary(BinaryOperation::Add, _) => binaries(quads, r, |a, b| a + b),
            GroupKind::Binary(BinaryOperation::Subtract, _) => binaries(quads, r, |a, b| a - b),
            GroupKind::Binary(BinaryOperation::Less, OperationRule::Live) => {
                compare(quads, r, |a, b| a < b)
            }
            GroupKind::Binary(BinaryOperation::LessOrEqual, OperationRule::Live) => {
                compare(quads, r, |a, b| a <= b)
            }
            GroupKind::Binary(BinaryOperation::Greater, OperationRule::Live) => {
                compare(quads, r, |a, b| a > b)
            }
            GroupKind::Binary(BinaryOperation::GreaterOrEqual, OperationRule::Live) => {
                compare(quads, r, |a, b| a >= b)
            }
            GroupKind::Binary(BinaryOperation::Equal, OperationRule::Live) => {
                compare(quads, r, |a, b| a == b)
            }
            GroupKind::Binary(op, rule) => binaries(quads, r, |a, b| apply_binary(op, rule, a, b)),
            GroupKind::Unary(op, rule) => {
                for &[to, a, ..] in quads {
                    r.set(to, apply_unary(op, rule, r.at(a)));
                }
            }
            GroupKind::Select(rule) => {
                for &[to, c, a, b] in quads {
                    r.set(to, apply_select(rule, r.at(c), r.at(a), r.at(b)));
                }
            }
            GroupKind::Copy => {
                for &[to, a, ..] in quads {
                    r.set(to, r.at(a));
                }
            }
            GroupKind::Other => return false,
        }
        true
    }

    #[inline(always)]
    fn sums<R: SlotArray + ?Sized>(&self, n: usize, quads: &[[P; 4]], terms: &[P], r: &mut R) {
        match n {
            1 => sums::<1, P, R>(quads, terms, r),
            2 => sums::<2, P, R>(quads, terms, r),
            3 => sums::<3, P, R>(quads, terms, r),
            4 => sums::<4, P, R>(quads, terms, r),
            5 => sums::<5, P, R>(quads, terms, r),
            6 => sums::<6, P, R>(quads, terms, r),
            7 => sums::<7, P, R>(quads, terms, r),
            8 => sums::<8, P, R>(quads, terms, r),
            9 => sums::<9, P, R>(quads, terms, r),
            10 => sums::<10, P, R>(quads, terms, r),
            11 => sums::<11, P, R>(quads, terms, r),
            _ => sums::<TERMS_MAX, P, R>(quads, terms, r),
        }
    }
}

#[inline(always)]
fn binaries<P: SlotIndex, R: SlotArray + ?Sized>(
    quads: &[[P; 4]],
    r: &mut R,
    operation: impl Fn(f64, f64) -> f64,
) {
    for &[to, a, b, _] in quads {
        r.set(to, operation(r.at(a), r.at(b)));
    }
}

/// Comparisons of what is live: with not-a-number they give that.
#[inline(always)]
fn compare<P: SlotIndex, R: SlotArray + ?Sized>(
    quads: &[[P; 4]],
    r: &mut R,
    holds: impl Fn(f64, f64) -> bool,
) {
    binaries(quads, r, |a, b| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else if holds(a, b) {
            1.0
        } else {
            0.0
        }
    });
}

/// Sums of `TERMS` terms each.
#[inline(always)]
fn sums<const TERMS: usize, P: SlotIndex, R: SlotArray + ?Sized>(
    quads: &[[P; 4]],
    terms: &[P],
    r: &mut R,
) {
    let (terms, _) = terms.as_chunks::<TERMS>();
    for (&[to, constant, first, _], terms) in quads.iter().zip(terms) {
        let coefficients = r.row::<TERMS>(first);
        let mut sum = r.at(constant);
        for (coefficient, term) in coefficients.iter().zip(terms) {
            sum += coefficient * r.at(*term);
        }
        if sum.is_nan() {
            let factors = coefficients.iter().zip(terms);
            sum = guarded_sum(r.at(constant), factors.map(|(c, t)| (*c, r.at(*t))));
        }
        r.set(to, sum);
    }
}
