//! Sums at the end of a program that nothing else in it reads: most rates are of this kind. Ordered by their number of
//! terms they run without a jump that the processor has to guess.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: slots are assigned by the emitter below the length of the array"
)]

use super::program::{Instruction, guarded_sum};

/// Sums with more terms run one by one.
const TERMS_MAX: usize = 12;

/// Where the sums of one number of terms lie in the code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    terms: usize,
    start: usize,
    end: usize,
}

/// Moves the sums that nothing in the code reads to its end, in order of their number of terms, and tells where they are.
/// `read(slot)` says whether a slot is read by another instruction.
pub(super) fn arrange(code: &mut Vec<Instruction>, read: impl Fn(u32) -> bool) -> Vec<Rows> {
    let terms = |instruction: &Instruction| match *instruction {
        Instruction::Linear { to, start, end, .. } if !read(to) => Some((end - start) as usize),
        _ => None,
    };
    let terms = |instruction: &Instruction| terms(instruction).filter(|n| *n <= TERMS_MAX);
    let mut sums: Vec<(usize, Instruction)> = Vec::new();
    code.retain(|instruction| match terms(instruction) {
        Some(n) => {
            sums.push((n, *instruction));
            false
        }
        None => true,
    });
    sums.sort_by_key(|s| s.0);
    let mut rows: Vec<Rows> = Vec::new();
    for (terms, sum) in sums {
        let at = code.len();
        code.push(sum);
        match rows.last_mut() {
            Some(last) if last.terms == terms => last.end = at + 1,
            _ => rows.push(Rows {
                terms,
                start: at,
                end: at + 1,
            }),
        }
    }
    rows
}

impl Rows {
    /// Where the first of all rows lies.
    pub(super) fn first(rows: &[Self], code: &[Instruction]) -> usize {
        rows.first().map_or(code.len(), |rows| rows.start)
    }

    /// Computes the sums.
    pub(super) fn run(self, code: &[Instruction], terms: &[u32], r: &mut [f64]) {
        let code = &code[self.start..self.end];
        match self.terms {
            1 => sums::<1>(code, terms, r),
            2 => sums::<2>(code, terms, r),
            3 => sums::<3>(code, terms, r),
            4 => sums::<4>(code, terms, r),
            5 => sums::<5>(code, terms, r),
            6 => sums::<6>(code, terms, r),
            7 => sums::<7>(code, terms, r),
            8 => sums::<8>(code, terms, r),
            9 => sums::<9>(code, terms, r),
            10 => sums::<10>(code, terms, r),
            11 => sums::<11>(code, terms, r),
            12 => sums::<12>(code, terms, r),
            _ => sums::<0>(code, terms, r),
        }
    }
}

/// Sums of `TERMS` terms each.
fn sums<const TERMS: usize>(code: &[Instruction], terms: &[u32], r: &mut [f64]) {
    for instruction in code {
        let Instruction::Linear {
            to,
            constant,
            first,
            start,
            ..
        } = *instruction
        else {
            continue;
        };
        let terms = &terms[start as usize..][..TERMS];
        let coefficients = &r[first as usize..][..TERMS];
        let mut sum = r[constant as usize];
        for (coefficient, term) in coefficients.iter().zip(terms) {
            sum += coefficient * r[*term as usize];
        }
        if sum.is_nan() {
            sum = guarded_sum(r[constant as usize], coefficients, terms, r);
        }
        r[to as usize] = sum;
    }
}
