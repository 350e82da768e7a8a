//! Models drawn by lot: networks of reactions with saturation, powers, inputs over time and tables, with derived
//! parameters and scaled states. The same seed draws the same model, as the text of a SimModel file.

use std::fmt::Write;

/// SplitMix64.
struct Lot(u64);

impl Lot {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// Evenly spread over orders of magnitude.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let u = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        low * (high / low).powf(u)
    }
}

/// A file under way; ids are given out in order.
#[derive(Default)]
struct File {
    next: usize,
    formulas: String,
    parameters: String,
    rates: Vec<Vec<usize>>,
    /// States on which the speed of a process from another state depends. Such a state may make more of itself, and
    /// then 0 is a start that holds exactly and from which any rounding grows: two solvers need not agree.
    catalysts: Vec<bool>,
}

impl File {
    fn id(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn formula(&mut self, text: &str, references: &[(&str, usize)]) -> usize {
        let id = self.id();
        let listed: String = references
            .iter()
            .map(|(alias, of)| format!("<R alias=\"{alias}\" id=\"{of}\"/>"))
            .collect();
        let text = text.replace('<', "&lt;").replace('>', "&gt;");
        let _ = write!(
            self.formulas,
            "<ExplicitFormula id=\"{id}\"><Equation>{text}</Equation><ReferenceList>{listed}</ReferenceList></ExplicitFormula>"
        );
        id
    }

    fn parameter(&mut self, source: &str) -> usize {
        let id = self.id();
        let _ = write!(
            self.parameters,
            "<P id=\"{id}\" name=\"p{id}\" path=\"S|p{id}\" {source}/>"
        );
        id
    }

    /// A constant, given or computed from others.
    fn constant(&mut self, lot: &mut Lot, low: f64, high: f64) -> usize {
        let value = lot.between(low, high);
        let plain = self.parameter(&format!("value=\"{value}\""));
        if lot.below(3) > 0 {
            return plain;
        }
        let factor = lot.between(0.5, 2.0);
        let other = self.parameter(&format!("value=\"{factor}\""));
        let text = ["a*b", "a/b", "a*SQRT(b)", "b > 1 ? a : a*b"][lot.below(4)];
        let formula = self.formula(text, &[("a", plain), ("b", other)]);
        self.parameter(&format!("formulaId=\"{formula}\""))
    }

    /// A parameter that is a table over the time, between 0 and 2.
    fn table(&mut self, lot: &mut Lot, end: f64) -> usize {
        let id = self.id();
        let count = 2 + lot.below(4);
        let points: String = (0..=count)
            .map(|i| {
                let (x, y) = (end * i as f64 / count as f64, lot.between(0.1, 2.0));
                format!("<Point x=\"{x}\" y=\"{y}\" restartSolver=\"0\"/>")
            })
            .collect();
        let _ = write!(
            self.formulas,
            "<TableFormula id=\"{id}\" useDerivedValues=\"0\"><PointList>{points}</PointList></TableFormula>"
        );
        self.parameter(&format!("formulaId=\"{id}\""))
    }

    /// A process that takes from one state (or nowhere) and gives to another (or nowhere).
    fn process(&mut self, lot: &mut Lot, states: usize, end: f64) {
        let from = lot.below(states);
        let to = lot.below(states + 1);
        let (a, b) = (from + 1, lot.below(states) + 1);
        let speed = 1.0 / end;
        let k = self.constant(lot, 0.1 * speed, 300.0 * speed);
        let m = self.constant(lot, 0.1, 10.0);
        let all = [("A", a), ("B", b), ("k", k), ("m", m), ("t", 0)];
        let text = match lot.below(8) {
            0 | 1 => "k*A".to_owned(),
            2 => "k*A/(m+A)".to_owned(),
            3 => {
                self.catalysts[b - 1] = true;
                "k*A*B/(m+B)".to_owned()
            }
            4 => "k*A^2/(m^2+A^2)".to_owned(),
            5 => format!("k*A*(1+SIN({}*t))", lot.between(0.5, 5.0) * speed),
            6 => "MIN(k*A;k*m)*EXP(-A/(10+m))".to_owned(),
            _ => {
                let table = self.table(lot, end);
                let all = [("A", a), ("k", k), ("w", table)];
                self.both("k*A*w", &all, from, to, states);
                return;
            }
        };
        self.both(&text, &all, from, to, states);
    }

    fn both(&mut self, text: &str, all: &[(&str, usize)], from: usize, to: usize, states: usize) {
        let lost = self.formula(&format!("-1*({text})").replace("-1*", "0-"), all);
        self.rates[from].push(lost);
        if to < states && to != from {
            let gained = self.formula(text, all);
            self.rates[to].push(gained);
        }
    }
}

/// The model of a seed.
pub fn model(seed: u64) -> String {
    let mut lot = Lot(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let states = 2 + lot.below(14);
    let end = lot.between(1.0, 1000.0);
    let mut file = File {
        next: states,
        rates: vec![Vec::new(); states],
        catalysts: vec![false; states],
        ..File::default()
    };
    for _ in 0..states + lot.below(2 * states) {
        file.process(&mut lot, states, end);
    }
    // Something flows in, at a rate that falls with the time.
    let k = file.constant(&mut lot, 0.1 / end, 10.0 / end);
    let inflow = file.formula(&format!("k*EXP(0-t/{end})"), &[("k", k), ("t", 0)]);
    let target = lot.below(states);
    file.rates[target].push(inflow);
    let mut variables = String::new();
    for (i, rates) in file.rates.clone().iter().enumerate() {
        let start = if lot.below(3) == 0 {
            if file.catalysts[i] { 0.01 } else { 0.0 }
        } else {
            lot.between(0.01, 100.0)
        };
        let scale = if lot.below(4) == 0 {
            lot.between(1e-3, 1e3)
        } else {
            1.0
        };
        let rates: String = rates
            .iter()
            .map(|r| format!("<RHSFormula id=\"{r}\"/>"))
            .collect();
        let list = if rates.is_empty() {
            rates
        } else {
            format!("<RHSFormulaList>{rates}</RHSFormulaList>")
        };
        let id = i + 1;
        let _ = write!(
            variables,
            "<V id=\"{id}\" name=\"M{id}\" path=\"S|M{id}\" value=\"{start}\"><ScaleFactor>{scale}</ScaleFactor>{list}</V>"
        );
    }
    let mut solver = String::new();
    for (name, value) in [
        ("H0", 1e-10),
        ("HMin", 0.0),
        ("HMax", 0.0),
        ("AbsTol", 1e-9),
        ("RelTol", 1e-6),
        ("MxStep", 1e5),
        ("UseJacobian", 1.0),
        ("CheckForNegativeValues", 0.0),
    ] {
        let id = file.parameter(&format!("value=\"{value}\""));
        let _ = write!(solver, "<{name} id=\"{id}\"/>");
    }
    format!(
        "<Simulation version=\"4\" objectPathDelimiter=\"|\"><FormulaList>{}</FormulaList><VariableList>{variables}</VariableList>\
         <ParameterList>{}</ParameterList><Solver>{solver}</Solver><OutputSchema><OutputIntervalList><OutputInterval>\
         <StartTime>0</StartTime><EndTime>{end}</EndTime><NumberOfTimePoints>13</NumberOfTimePoints>\
         </OutputInterval></OutputIntervalList></OutputSchema></Simulation>",
        file.formulas, file.parameters
    )
}
