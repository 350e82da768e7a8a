//! What the genuine library accepts of a SimModel file, item by item: a checker for exports.

use std::collections::HashSet;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element with what stands in it.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    pub text: String,
    comment: bool,
}

impl Element {
    fn start(tag: &BytesStart<'_>) -> Self {
        let attributes = tag.attributes().map(|a| {
            let a = a.unwrap();
            let key = a.key.as_ref().to_owned();
            let raw = a.value.to_string();
            (key, quick_xml::escape::unescape(&raw).unwrap().into_owned())
        });
        Self {
            name: tag.name().as_ref().to_owned(),
            attributes: attributes.collect(),
            ..Self::default()
        }
    }

    pub fn attribute(&self, key: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|a| a.0 == key);
        found.map(|a| a.1.as_str())
    }

    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    pub fn items(&self, list: &str) -> &[Element] {
        self.child(list).map_or(&[], |l| l.children.as_slice())
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.child(name)?.text.trim().parse().ok()
    }
}

pub fn parse(xml: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(xml);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Start(tag) => open.push(Element::start(&tag)),
            Event::Empty(tag) => {
                let element = Element::start(&tag);
                open.last_mut().unwrap().children.push(element);
            }
            Event::End(_) => {
                let done = open.pop().unwrap();
                open.last_mut().unwrap().children.push(done);
            }
            Event::Text(text) => {
                let text: &str = &text;
                let parent = open.last_mut().unwrap();
                parent.text += &quick_xml::escape::unescape(text).unwrap();
            }
            Event::GeneralRef(name) => {
                let name: &str = &name;
                let text = quick_xml::escape::unescape(&format!("&{name};"))
                    .unwrap()
                    .into_owned();
                open.last_mut().unwrap().text += &text;
            }
            Event::Comment(_) => open.last_mut().unwrap().comment = true,
            Event::Eof => break,
            _ => {}
        }
    }
    let mut document = open.pop().unwrap();
    document
        .children
        .pop()
        .ok_or_else(|| "no element".to_owned())
}

fn refuse<T>(what: impl Into<String>) -> Result<T, String> {
    Err(what.into())
}

/// Accepts a file or says which item it breaks.
pub fn check(xml: &str) -> Result<(), String> {
    let root = parse(xml)?;
    lists(&root)?;
    for list in ["FormulaList", "OutputSchema"] {
        if root.child(list).is_none() {
            return refuse(format!("no {list}"));
        }
    }
    solver(&root)?;
    ids(&root)?;
    for variable in root.items("VariableList") {
        if variable.number("ScaleFactor").is_some_and(|s| s <= 0.0) {
            return refuse("scale factor not positive");
        }
    }
    for formula in root.items("FormulaList") {
        match formula.name.as_str() {
            "ExplicitFormula" => explicit(formula)?,
            "TableFormula" => table(formula)?,
            _ => {}
        }
    }
    conditions(&root)?;
    outputs(&root)
}

/// Lists that hold only white space, and comments in lists.
fn lists(element: &Element) -> Result<(), String> {
    let is_list = element.name.ends_with("List") && element.name != "OutputTimeList";
    if is_list && element.children.is_empty() && !element.text.is_empty() {
        return refuse(format!("white space in the empty {}", element.name));
    }
    if element.name.ends_with("List") && element.comment {
        return refuse("a comment in a list");
    }
    element.children.iter().try_for_each(lists)
}

fn solver(root: &Element) -> Result<(), String> {
    let Some(solver) = root.child("Solver") else {
        return refuse("no Solver");
    };
    for setting in [
        "H0",
        "HMin",
        "HMax",
        "AbsTol",
        "RelTol",
        "MxStep",
        "UseJacobian",
    ] {
        if solver.child(setting).is_none() {
            return refuse(format!("no {setting}"));
        }
    }
    Ok(())
}

fn ids(root: &Element) -> Result<(), String> {
    let mut objects = HashSet::from(["0"]);
    let mut formulas = HashSet::new();
    let mut all = HashSet::new();
    for list in [
        "ParameterList",
        "VariableList",
        "ObserverList",
        "FormulaList",
        "EventList",
    ] {
        for item in root.items(list) {
            let Some(id) = item.attribute("id") else {
                return refuse("no id");
            };
            if !all.insert(id) {
                return refuse(format!("id {id} twice"));
            }
            match list {
                "FormulaList" => formulas.insert(id),
                "EventList" => true,
                _ => objects.insert(id),
            };
        }
    }
    let known = |set: &HashSet<&str>, id: Option<&str>| match id {
        Some(id) if !set.contains(id) => refuse(format!("unknown id {id}")),
        _ => Ok(()),
    };
    for list in ["ParameterList", "VariableList", "ObserverList"] {
        for item in root.items(list) {
            known(&formulas, item.attribute("formulaId"))?;
            known(&formulas, item.attribute("initialValueFormulaId"))?;
            for term in item.items("RHSFormulaList") {
                known(&formulas, term.attribute("id"))?;
            }
        }
    }
    for formula in root.items("FormulaList") {
        for reference in formula.items("ReferenceList") {
            known(&objects, reference.attribute("id"))?;
        }
        for part in ["Table", "Offset", "XArgument"] {
            known(
                &objects,
                formula.child(part).and_then(|p| p.attribute("id")),
            )?;
        }
    }
    for event in root.items("EventList") {
        known(&formulas, event.attribute("conditionFormulaId"))?;
        for assignment in event.items("AssignmentList") {
            known(&objects, assignment.attribute("objectId"))?;
            known(&formulas, assignment.attribute("newFormulaId"))?;
        }
    }
    Ok(())
}

const ONE: [&str; 15] = [
    "ACOS", "ASIN", "ATAN", "COS", "COSH", "EXP", "LN", "LOG", "LOG10", "SIN", "SINH", "SQRT",
    "TAN", "TANH", "NOT",
];
const TWO: [&str; 10] = [
    "MIN", "MAX", "EQ", "GT", "GEQ", "LT", "LEQ", "NEQ", "POW", "RND",
];
const WORDS: [&str; 8] = ["E", "PI", "INF", "INFINITY", "NAN", "AND", "OR", "NOT"];

fn explicit(formula: &Element) -> Result<(), String> {
    let mut seen = HashSet::new();
    for reference in formula.items("ReferenceList") {
        let alias = reference.attribute("alias").unwrap_or_default();
        let upper = alias.to_ascii_uppercase();
        let forbidden = |c: char| c.is_whitespace() || "+-*\\/^.,<>=!()[]{}'\"?:&|;".contains(c);
        if alias.is_empty() || alias.contains(forbidden) {
            return refuse(format!("alias '{alias}'"));
        }
        if [&ONE[..], &TWO[..], &WORDS[..]]
            .concat()
            .contains(&upper.as_str())
        {
            return refuse(format!("alias '{alias}' is a word of the language"));
        }
        if !seen.insert(alias) {
            return refuse(format!("alias '{alias}' twice"));
        }
    }
    let text = formula.child("Equation").map_or("", |e| e.text.trim());
    equation(text)?;
    words(text, &seen)
}

/// Every word is an alias, a number or a word of the language: `XOR`, `ABS` and `FLOOR` are none.
fn words(text: &str, aliases: &HashSet<&str>) -> Result<(), String> {
    let signs = |c: char| c.is_whitespace() || "+-*/^()<>=!?:;&|".contains(c);
    for word in text.split(signs).filter(|w| !w.is_empty()) {
        let upper = word.to_ascii_uppercase();
        // `1E-3` is cut at its sign.
        let digits = word.strip_suffix(['e', 'E']).unwrap_or(word);
        let known = aliases.contains(word)
            || digits.replace(',', ".").parse::<f64>().is_ok()
            || [&ONE[..], &TWO[..], &WORDS[..]]
                .concat()
                .contains(&upper.as_str());
        if !known {
            return refuse(format!("the word '{word}' in '{text}'"));
        }
    }
    Ok(())
}

fn equation(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return refuse("empty equation");
    }
    for sign in ["==", "&&"] {
        if text.contains(sign) {
            return refuse(format!("'{sign}' in '{text}'"));
        }
    }
    if text.replace("!=", "").contains('!') {
        return refuse(format!("'!' in '{text}'"));
    }
    signs(text)?;
    groups(text)
}

/// Signs after operators, any leading plus, and `NOT` after arithmetic.
fn signs(text: &str) -> Result<(), String> {
    let chars: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).map(|b| chars[b]);
        let exponent = matches!(before, Some('e' | 'E'))
            && i >= 2
            && (chars[i - 2].is_ascii_digit() || chars[i - 2] == '.');
        let starts = before.is_none_or(|b| "(;<>=?:&|".contains(b));
        if *c == '+' && starts {
            return refuse(format!("a leading plus in '{text}'"));
        }
        let after_operator = before.is_some_and(|b| "+-*/^".contains(b));
        if matches!(c, '+' | '-') && after_operator && !exponent {
            return refuse(format!("a sign after an operator in '{text}'"));
        }
        let word: String = chars[i..].iter().take(3).collect();
        if after_operator && word.eq_ignore_ascii_case("NOT") && chars.get(i + 3) == Some(&'(') {
            return refuse(format!("NOT after an operator in '{text}'"));
        }
    }
    Ok(())
}

/// Functions with their operands, and conditionals directly in conditionals.
fn groups(text: &str) -> Result<(), String> {
    // For each open bracket: the word before it, conditionals in the present part, parts.
    let mut open: Vec<(String, usize, usize)> = vec![(String::new(), 0, 1)];
    let mut word = String::new();
    for c in text.chars() {
        match c {
            '(' => open.push((std::mem::take(&mut word).to_ascii_uppercase(), 0, 1)),
            ')' => {
                let (name, _, parts) = open.pop().unwrap();
                let wanted = if ONE.contains(&name.as_str())
                    || name.is_empty()
                    || WORDS.contains(&name.as_str())
                {
                    1
                } else if TWO.contains(&name.as_str()) {
                    2
                } else {
                    return refuse(format!("unknown function {name}"));
                };
                if parts != wanted {
                    return refuse(format!("{name} with {parts} operands"));
                }
            }
            ';' => {
                let group = open.last_mut().unwrap();
                group.1 = 0;
                group.2 += 1;
            }
            '?' => {
                let group = open.last_mut().unwrap();
                group.1 += 1;
                if group.1 > 1 {
                    return refuse(format!(
                        "a conditional in a conditional without brackets: '{text}'"
                    ));
                }
            }
            _ => {}
        }
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else if c != '(' {
            word.clear();
        }
    }
    Ok(())
}

fn table(formula: &Element) -> Result<(), String> {
    let x: Vec<f64> = formula
        .items("PointList")
        .iter()
        .map(|p| p.attribute("x").unwrap().parse().unwrap())
        .collect();
    if x.windows(2).any(|w| w[0] >= w[1]) {
        return refuse("table x do not increase");
    }
    let slope = formula.attribute("useDerivedValues") != Some("0");
    if x.len() < if slope { 2 } else { 1 } {
        return refuse("a table with too few points");
    }
    Ok(())
}

/// Conditions of events: no bare arithmetic, no bare state, no bare time compared with a state.
fn conditions(root: &Element) -> Result<(), String> {
    let states: HashSet<&str> = root
        .items("VariableList")
        .iter()
        .filter_map(|v| v.attribute("id"))
        .collect();
    for event in root.items("EventList") {
        let id = event.attribute("conditionFormulaId");
        let formula = root
            .items("FormulaList")
            .iter()
            .find(|f| f.attribute("id") == id);
        let Some(formula) = formula.filter(|f| f.name == "ExplicitFormula") else {
            continue;
        };
        let text = formula.child("Equation").map_or("", |e| e.text.trim());
        let alias_of = |wanted: &dyn Fn(&str) -> bool| -> Vec<&str> {
            let items = formula.items("ReferenceList").iter();
            items
                .filter(|r| r.attribute("id").is_some_and(wanted))
                .filter_map(|r| r.attribute("alias"))
                .collect()
        };
        let (times, of_states) = (
            alias_of(&|id| id == "0"),
            alias_of(&|id| states.contains(id)),
        );
        let logical = text.contains(['<', '>', '=', '?', '&', '|'])
            || [" AND ", " OR ", "NOT"]
                .iter()
                .any(|w| text.to_ascii_uppercase().contains(w));
        let top = outside_brackets(text);
        let top_logical = top.contains(['<', '>', '=', '?', '&', '|'])
            || [" AND ", " OR ", "NOT"]
                .iter()
                .any(|w| top.to_ascii_uppercase().contains(w));
        if of_states.contains(&text) || top.contains(['*', '/', '+', '^']) && !top_logical {
            return refuse(format!(
                "condition '{text}' is arithmetic or a state ({logical})"
            ));
        }
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for time in &times {
            for state in &of_states {
                for op in [">=", "<=", "<>", "!=", ">", "<", "="] {
                    let (a, b) = (format!("{time}{op}{state}"), format!("{state}{op}{time}"));
                    if compact == a || compact == b {
                        return refuse(format!(
                            "condition '{text}' compares the time with a state"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The text with everything in brackets left out.
fn outside_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

fn outputs(root: &Element) -> Result<(), String> {
    let schema = root.child("OutputSchema").unwrap();
    let mut last = f64::NEG_INFINITY;
    for interval in schema.items("OutputIntervalList") {
        let get = |name| {
            interval
                .number(name)
                .ok_or_else(|| format!("interval without {name}"))
        };
        let (start, end, points) = (
            get("StartTime")?,
            get("EndTime")?,
            get("NumberOfTimePoints")?,
        );
        if points < 2.0 || end < start {
            return refuse("an interval with too few points or that ends before it starts");
        }
        last = last.max(end);
    }
    for time in schema.items("OutputTimeList") {
        last = last.max(time.text.trim().parse().unwrap());
    }
    if last <= 0.0 {
        return refuse("no output time above 0");
    }
    Ok(())
}
