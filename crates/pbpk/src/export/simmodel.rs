//! SimModel XML, version 4: full paths, quantities and formulas by number, in the form that the genuine library loads.
//!
//! A list without items is not written, ids are distinct over all lists, conditions of events are comparisons, logic,
//! conditionals, parameters or numbers.

use super::xml::{escape, number};
use super::{ExportError, count_text};
use crate::formula::{BinaryOperation, Expr, FormulaBody, UnaryOperation};
use crate::model::{
    AliasReference, BoundFormula, FormulaKind, Model, ModelFormat, OutputInterval, Quantity,
    QuantityKind, RhsTerm, TimePrecision, ValueSource,
};
use crate::watch::{Interrupt, Watch};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::Write;

const FORMAT: &str = "simmodel xml";

/// The document under construction. Ids: time 0, quantities from 1 in model order, formulas after them.
struct SimModelDocument<'a> {
    model: &'a Model,
    watch: &'a Watch<'a>,
    out: String,
    /// Formulas that exist only in the document: a rate with its factor, or an observer's number.
    extra: Vec<(usize, String)>,
    factors: BTreeMap<(usize, u64), usize>,
    /// Quantities that follow a state.
    on_state: Vec<bool>,
    next: usize,
}

/// Writes a model.
///
/// # Errors
/// [`ExportError::Unsupported`] names a quantity with a table times a factor in its rate, or text that XML cannot hold;
/// [`ExportError::Io`].
pub fn simmodel(model: &Model, out: &mut dyn Write) -> Result<(), ExportError> {
    simmodel_watched(model, out, &Watch::default())
}

/// As [`simmodel`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`simmodel`], and [`ExportError::Interrupted`]: nothing was written then.
pub fn simmodel_watched(
    model: &Model,
    out: &mut dyn Write,
    watch: &Watch<'_>,
) -> Result<(), ExportError> {
    watch.ask()?;
    if !model
        .grid
        .sorted(TimePrecision::Double)
        .iter()
        .any(|t| *t > 0.0)
    {
        let what = "no output time above 0";
        return Err(ExportError::unsupported(FORMAT, &model.name, what));
    }
    let formulas = model.quantities.len() + 1;
    let mut document = SimModelDocument {
        model,
        watch,
        out: String::new(),
        extra: Vec::new(),
        factors: BTreeMap::new(),
        on_state: on_state(model, watch)?,
        next: formulas + model.formulas.len(),
    };
    let delimiter = escape(FORMAT, &model.delimiter.to_string())?;
    document.push(format_args!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Simulation objectPathDelimiter=\"{delimiter}\" version=\"4\" xmlns=\"http://www.systems-biology.com\">\n"
    ));
    let head = std::mem::take(&mut document.out);
    document.events()?;
    document.quantities()?;
    document.settings();
    document.grid()?;
    let rest = std::mem::take(&mut document.out);
    document.formulas()?;
    let mut body = format!("{head}{}{rest}", document.out);
    body.push_str("</Simulation>\n");
    watch.ask()?;
    out.write_all(body.as_bytes())?;
    Ok(())
}

/// Attribute text of a truth.
fn flag(value: bool) -> u8 {
    u8::from(value)
}

impl SimModelDocument<'_> {
    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
    }

    /// Counts what was written since the text had this length.
    fn count_text(&self, since: usize) -> Result<(), Interrupt> {
        count_text(self.out.len().saturating_sub(since), self.watch)
    }

    fn formula_id(&self, position: usize) -> usize {
        self.model.quantities.len() + 1 + position
    }

    fn events(&mut self) -> Result<(), ExportError> {
        let model = self.model;
        if model.events.is_empty() {
            return Ok(());
        }
        self.out.push_str("<EventList>\n");
        for (i, event) in model.events.iter().enumerate() {
            let since = self.out.len();
            let condition = self.condition(event.condition)?;
            // Beyond the ids of quantities, formulas and settings.
            let id = self.settings_id() + self.solver().len() + i;
            self.push(format_args!(
                "<Event id=\"{id}\" conditionFormulaId=\"{condition}\" oneTime=\"{}\">",
                flag(event.one_time)
            ));
            if !event.assignments.is_empty() {
                self.out.push_str("<AssignmentList>");
                for a in &event.assignments {
                    let formula = self.formula_id(a.formula);
                    self.push(format_args!(
                        "<Assignment objectId=\"{}\" newFormulaId=\"{formula}\" useAsValue=\"{}\"/>",
                        a.target + 1,
                        flag(a.as_value)
                    ));
                }
                self.out.push_str("</AssignmentList>");
            }
            self.out.push_str("</Event>\n");
            self.count_text(since)?;
        }
        self.out.push_str("</EventList>\n");
        Ok(())
    }

    /// Id of the formula of a condition. The genuine library takes no arithmetic and no state as a condition, and a
    /// bare time compared with a state ends its process.
    fn condition(&mut self, f: usize) -> Result<usize, ExportError> {
        let Some(BoundFormula {
            kind: FormulaKind::Explicit { body, arguments },
            ..
        }) = self.model.formulas.get(f)
        else {
            return Ok(self.formula_id(f));
        };
        let argument = |nodes: &[Expr], i: u32| match nodes.get(i as usize) {
            Some(Expr::Argument(a)) => arguments.get(*a as usize).copied(),
            _ => None,
        };
        let reads_state = |nodes: &[Expr], i: u32| self.reads_state(nodes, i, arguments);
        let written = body.with_differences(|nodes, a, b| {
            let time = Some(AliasReference::Time);
            argument(nodes, a) == time && reads_state(nodes, b)
                || argument(nodes, b) == time && reads_state(nodes, a)
        });
        let root = written.nodes.len().saturating_sub(1) as u32;
        let accepted = match written.nodes.last() {
            Some(Expr::Number(_) | Expr::Select(..) | Expr::Unary(UnaryOperation::Not, _)) => true,
            Some(Expr::Binary(op, ..)) => {
                op.is_comparison() || matches!(op, BinaryOperation::And | BinaryOperation::Or)
            }
            Some(Expr::Argument(_)) => match argument(&written.nodes, root) {
                Some(AliasReference::Quantity(q)) => {
                    let quantity = self.model.quantities.get(q);
                    quantity.is_some_and(|q| q.kind == QuantityKind::Parameter && q.rhs.is_empty())
                }
                _ => false,
            },
            _ => false,
        };
        if accepted && written == **body {
            return Ok(self.formula_id(f));
        }
        let written = if accepted {
            written
        } else {
            written.equals_one()
        };
        let text = explicit(&written, "", arguments)?;
        Ok(self.add(text)?)
    }

    /// Returns whether a node of a body follows a state.
    fn reads_state(&self, nodes: &[Expr], node: u32, arguments: &[AliasReference]) -> bool {
        let mut open = vec![node];
        while let Some(i) = open.pop() {
            match nodes.get(i as usize).copied() {
                Some(Expr::Argument(a)) => {
                    if let Some(AliasReference::Quantity(q)) = arguments.get(a as usize)
                        && self.on_state.get(*q) == Some(&true)
                    {
                        return true;
                    }
                }
                Some(Expr::Unary(_, a)) => open.push(a),
                Some(Expr::Binary(_, a, b)) => open.extend([a, b]),
                Some(Expr::Select(c, a, b)) => open.extend([c, a, b]),
                Some(Expr::Number(_)) | None => {}
            }
        }
        false
    }

    fn quantities(&mut self) -> Result<(), ExportError> {
        let model = self.model;
        // A parameter with a rate is a variable to this format.
        let list_of = |q: &Quantity| match q.kind {
            QuantityKind::Parameter if !q.rhs.is_empty() => QuantityKind::Variable,
            kind => kind,
        };
        for (kind, list) in [
            (QuantityKind::Variable, "VariableList"),
            (QuantityKind::Observer, "ObserverList"),
            (QuantityKind::Parameter, "ParameterList"),
        ] {
            let is_empty = !model.quantities.iter().any(|q| list_of(q) == kind);
            if is_empty && kind != QuantityKind::Parameter {
                continue;
            }
            self.push(format_args!("<{list}>\n"));
            for (i, q) in model
                .quantities
                .iter()
                .enumerate()
                .filter(|(_, q)| list_of(q) == kind)
            {
                let since = self.out.len();
                self.quantity(i, q, kind)?;
                self.count_text(since)?;
            }
            if kind == QuantityKind::Parameter {
                self.solver_parameters();
            }
            self.push(format_args!("</{list}>\n"));
        }
        Ok(())
    }

    fn quantity(&mut self, i: usize, q: &Quantity, kind: QuantityKind) -> Result<(), ExportError> {
        let path = match self.model.format {
            ModelFormat::Pkml { .. } => {
                format!("{}{}{}", self.model.name, self.model.delimiter, q.path)
            }
            ModelFormat::SimModel { .. } => q.path.clone(),
        };
        let (path, name, unit) = (
            escape(FORMAT, &path)?,
            escape(FORMAT, &q.name)?,
            escape(FORMAT, &q.unit)?,
        );
        let entity = if q.entity_id.is_empty() {
            format!("q{}", i + 1)
        } else {
            escape(FORMAT, &q.entity_id)?
        };
        let tag = match kind {
            QuantityKind::Variable => "V",
            QuantityKind::Observer => "Observer",
            QuantityKind::Parameter => "P",
        };
        let source = match (q.source, kind) {
            (ValueSource::Constant(value), QuantityKind::Observer) => {
                let body = FormulaBody::number(value);
                let text = explicit(&body, "", &[])?;
                let id = self.add(text)?;
                format!("formulaId=\"{id}\"")
            }
            (ValueSource::Constant(value), _) => format!("value=\"{}\"", number(value)),
            (ValueSource::Formula(f), QuantityKind::Variable) => {
                format!("initialValueFormulaId=\"{}\"", self.formula_id(f))
            }
            (ValueSource::Formula(f), _) => format!("formulaId=\"{}\"", self.formula_id(f)),
        };
        self.push(format_args!(
            "<{tag} id=\"{}\" entityId=\"{entity}\" name=\"{name}\" path=\"{path}\" unit=\"{unit}\" persistable=\"{}\" {source}",
            i + 1,
            flag(q.persistable)
        ));
        match kind {
            QuantityKind::Variable => self.rates(q),
            QuantityKind::Parameter => {
                self.push(format_args!(
                    " canBeVaried=\"{}\"/>\n",
                    flag(q.can_be_varied)
                ));
                Ok(())
            }
            QuantityKind::Observer => {
                self.out.push_str("/>\n");
                Ok(())
            }
        }
    }

    /// The rest of a variable's element.
    fn rates(&mut self, q: &Quantity) -> Result<(), ExportError> {
        self.push(format_args!(
            " negativeValuesAllowed=\"{}\"><ScaleFactor>{}</ScaleFactor>",
            flag(q.negative_allowed),
            number(q.scale)
        ));
        if !q.rhs.is_empty() {
            self.out.push_str("<RHSFormulaList>");
            for term in &q.rhs {
                let id = self.rate(q, term)?;
                self.push(format_args!("<RHSFormula id=\"{id}\"/>"));
            }
            self.out.push_str("</RHSFormulaList>");
        }
        self.out.push_str("</V>\n");
        Ok(())
    }

    /// Id of the formula that is a rate's term with its factor.
    fn rate(&mut self, q: &Quantity, term: &RhsTerm) -> Result<usize, ExportError> {
        if term.factor == 1.0 {
            return Ok(self.formula_id(term.formula));
        }
        let key = (term.formula, term.factor.to_bits());
        if let Some(id) = self.factors.get(&key) {
            return Ok(*id);
        }
        let Some(BoundFormula {
            kind: FormulaKind::Explicit { body, arguments },
            ..
        }) = self.model.formulas.get(term.formula)
        else {
            let what = format!("a table times {} as a rate", term.factor);
            return Err(ExportError::unsupported(FORMAT, &q.path, what));
        };
        let factor = if term.factor == -1.0 {
            "-".to_owned()
        } else {
            format!("{}*", equation_number(term.factor))
        };
        let text = explicit(body, &factor, arguments)?;
        let id = self.add(text)?;
        self.factors.insert(key, id);
        Ok(id)
    }

    fn add(&mut self, text: String) -> Result<usize, Interrupt> {
        count_text(text.len(), self.watch)?;
        let id = self.next;
        self.next += 1;
        self.extra.push((id, text));
        Ok(id)
    }

    fn formulas(&mut self) -> Result<(), ExportError> {
        let model = self.model;
        if model.formulas.is_empty() && self.extra.is_empty() {
            // This list must be there.
            self.out.push_str("<FormulaList/>\n");
            return Ok(());
        }
        self.out.push_str("<FormulaList>\n");
        for (i, formula) in model.formulas.iter().enumerate() {
            let since = self.out.len();
            let id = self.formula_id(i);
            match &formula.kind {
                FormulaKind::Explicit { body, arguments } => {
                    let text = explicit(body, "", arguments)?;
                    self.push(format_args!("<ExplicitFormula id=\"{id}\">{text}</ExplicitFormula>\n"));
                }
                FormulaKind::Table(table) => {
                    self.push(format_args!(
                        "<TableFormula id=\"{id}\" useDerivedValues=\"{}\"><PointList>",
                        flag(table.slope_mode())
                    ));
                    for (x, y, restart) in table.points() {
                        self.watch.check()?;
                        let (x, y) = (number(x), number(y));
                        self.push(format_args!("<Point x=\"{x}\" y=\"{y}\" restartSolver=\"{}\"/>", flag(restart)));
                    }
                    self.out.push_str("</PointList></TableFormula>\n");
                }
                FormulaKind::TableWithOffset { table, offset } => self.push(format_args!(
                    "<TableFormulaWithOffset id=\"{id}\"><Table id=\"{}\"/><Offset id=\"{}\"/></TableFormulaWithOffset>\n",
                    table + 1,
                    reference(*offset)
                )),
                FormulaKind::TableWithArgument { table, argument } => self.push(format_args!(
                    "<TableFormulaWithXArgument id=\"{id}\"><Table id=\"{}\"/><XArgument id=\"{}\"/></TableFormulaWithXArgument>\n",
                    table + 1,
                    reference(*argument)
                )),
            }
            self.count_text(since)?;
        }
        for (id, text) in std::mem::take(&mut self.extra) {
            self.watch.check()?;
            self.push(format_args!(
                "<ExplicitFormula id=\"{id}\">{text}</ExplicitFormula>\n"
            ));
        }
        self.out.push_str("</FormulaList>\n");
        Ok(())
    }

    /// Name and value of each solver setting, in the order in which the format lists them.
    fn solver(&self) -> [(&'static str, f64); 8] {
        let s = &self.model.solver;
        #[expect(
            clippy::cast_precision_loss,
            reason = "bounded to SolverSettings::STEPS_MAX"
        )]
        let steps = s.max_steps as f64;
        [
            ("H0", s.h0),
            ("HMax", s.h_max),
            ("HMin", s.h_min),
            ("AbsTol", s.abs_tol),
            ("MxStep", steps),
            ("RelTol", s.rel_tol),
            ("UseJacobian", f64::from(flag(s.use_jacobian))),
            ("CheckForNegativeValues", f64::from(flag(s.check_negative))),
        ]
    }

    /// Settings are parameters with ids beyond all others; they get the same ids in `settings`.
    fn solver_parameters(&mut self) {
        let first = self.settings_id();
        for (i, (name, value)) in self.solver().into_iter().enumerate() {
            let value = number(value);
            self.push(format_args!(
                "<P id=\"{}\" entityId=\"solver-{name}\" name=\"{name}\" path=\"{name}\" unit=\"\" persistable=\"0\" value=\"{value}\" canBeVaried=\"0\"/>\n",
                first + i
            ));
        }
    }

    fn settings(&mut self) {
        let first = self.settings_id();
        self.out.push_str("<Solver name=\"CVODES\">");
        for (i, (name, _)) in self.solver().into_iter().enumerate() {
            self.push(format_args!("<{name} id=\"{}\"/>", first + i));
        }
        self.out.push_str("</Solver>\n");
    }

    /// First id of the settings' parameters. Each rate, observer and event adds at most one formula.
    fn settings_id(&self) -> usize {
        let model = self.model;
        let rates: usize = model.quantities.iter().map(|q| q.rhs.len() + 1).sum();
        model.quantities.len() + 1 + model.formulas.len() + rates + model.events.len()
    }

    /// Intervals and single times; an interval of one point is a single time to the genuine library.
    fn grid(&mut self) -> Result<(), Interrupt> {
        let grid = &self.model.grid;
        let (intervals, single): (Vec<&OutputInterval>, Vec<&OutputInterval>) =
            grid.intervals.iter().partition(|i| i.points >= 2);
        let single = single.into_iter().map(|i| i.start);
        let times: Vec<f64> = single.chain(grid.times.iter().copied()).collect();
        self.out.push_str("<OutputSchema>");
        if !intervals.is_empty() {
            self.out.push_str("<OutputIntervalList>\n");
            for interval in intervals {
                self.watch.check()?;
                let (start, end) = (number(interval.start), number(interval.end));
                self.push(format_args!(
                    "<OutputInterval distribution=\"Uniform\"><StartTime>{start}</StartTime><EndTime>{end}</EndTime><NumberOfTimePoints>{}</NumberOfTimePoints></OutputInterval>\n",
                    interval.points
                ));
            }
            self.out.push_str("</OutputIntervalList>");
        }
        if !times.is_empty() {
            self.out.push_str("<OutputTimeList>\n");
            for time in times {
                self.watch.check()?;
                self.push(format_args!("<OutputTime>{}</OutputTime>\n", number(time)));
            }
            self.out.push_str("</OutputTimeList>");
        }
        self.out.push_str("</OutputSchema>\n");
        Ok(())
    }
}

/// Which quantities are states or follow one.
fn on_state(model: &Model, watch: &Watch<'_>) -> Result<Vec<bool>, Interrupt> {
    let mut marked = vec![false; model.quantities.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); model.quantities.len()];
    for (q, quantity) in model.quantities.iter().enumerate() {
        watch.check()?;
        let formula = match quantity.source {
            ValueSource::Formula(f) => model.formulas.get(f),
            ValueSource::Constant(_) => None,
        };
        for reference in formula.iter().flat_map(|f| f.references()) {
            if let AliasReference::Quantity(used) = reference
                && let Some(users) = users.get_mut(used)
            {
                users.push(q);
            }
        }
    }
    // Variables that nothing changes are states to the genuine library all the same.
    let variables = model.quantities.iter().enumerate();
    let variables = variables
        .filter(|(_, q)| q.kind == QuantityKind::Variable)
        .map(|(i, _)| i);
    let mut open: Vec<usize> = model.states().into_iter().chain(variables).collect();
    while let Some(q) = open.pop() {
        watch.check()?;
        match marked.get_mut(q) {
            Some(mark) if !*mark => *mark = true,
            _ => continue,
        }
        open.extend(users.get(q).into_iter().flatten());
    }
    Ok(marked)
}

fn reference(reference: AliasReference) -> usize {
    match reference {
        AliasReference::Time => 0,
        AliasReference::Quantity(q) => q + 1,
    }
}

/// Returns the content of an explicit formula: `factor` precedes the body.
fn explicit(
    body: &FormulaBody,
    factor: &str,
    arguments: &[AliasReference],
) -> Result<String, ExportError> {
    let names = names(&body.aliases);
    let text = body.text_with(&names);
    let text = if factor.is_empty() {
        text
    } else {
        format!("{factor}({text})")
    };
    let mut out = format!("<Equation>{}</Equation>", escape(FORMAT, &text)?);
    if names.is_empty() {
        return Ok(out);
    }
    out.push_str("<ReferenceList>");
    for (alias, argument) in names.iter().zip(arguments) {
        let alias = escape(FORMAT, alias)?;
        let _ = write!(
            out,
            "<R alias=\"{alias}\" id=\"{}\"/>",
            reference(*argument)
        );
    }
    out.push_str("</ReferenceList>");
    Ok(out)
}

/// Returns the aliases, with others for those that the genuine parser refuses.
fn names(aliases: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(aliases.len());
    let all: HashSet<&str> = aliases.iter().map(String::as_str).collect();
    let mut taken = HashSet::with_capacity(aliases.len());
    for (i, alias) in aliases.iter().enumerate() {
        let mut name = alias.clone();
        let mut n = i;
        while !FormulaBody::is_plain_name(&name)
            || taken.contains(&name)
            || name != *alias && all.contains(name.as_str())
        {
            n += 1;
            name = format!("alias_{n}");
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Returns a number within an equation; the language has no negative infinity of its own.
fn equation_number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 {
            "Inf".to_owned()
        } else {
            "(0-Inf)".to_owned()
        }
    } else if value < 0.0 {
        format!("({value:?})")
    } else {
        format!("{value:?}")
    }
}
