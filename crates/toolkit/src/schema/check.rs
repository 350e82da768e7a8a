//! Holding a value against a compiled schema.

use serde_json::{Map, Value};

use super::compile::{Bounds, Node, Others, Type};
use super::{FAULTS_MAX, Fault};

/// Longest member name that is repeated in a fault, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Most choices that a fault lists.
const CHOICES_MAX: usize = 16;

/// Appends what is wrong with `value`, which stands at `at`.
pub(super) fn check(node: &Node, value: &Value, at: &mut String, faults: &mut Vec<Fault>) {
    if faults.len() >= FAULTS_MAX {
        return;
    }
    let mut wrong = |wrong: String| {
        faults.push(Fault {
            member: at.clone(),
            wrong,
        });
    };
    if !node.types.is_empty() && !node.types.iter().any(|kind| is(*kind, value)) {
        let kinds: Vec<_> = node.types.iter().map(|kind| kind.described()).collect();
        return wrong(format!("must be {}", kinds.join(" or ")));
    }
    if let Some(choices) = &node.choices
        && !choices.iter().any(|choice| same(choice, value))
    {
        return wrong(format!("must be {}", listed(choices)));
    }
    match value {
        Value::Number(number) => numbers(node, number.as_f64(), &mut wrong),
        Value::String(text) => texts(node, text, &mut wrong),
        Value::Array(items) => {
            counted(node.item_count, items.len(), "entries", &mut wrong);
            if node.unique && repeats(items) {
                wrong("must not repeat an entry".into());
            }
            if let Some(item) = &node.items {
                for (index, value) in items.iter().enumerate() {
                    below(at, &format!("[{index}]"), |at| {
                        check(item, value, at, faults)
                    });
                }
            }
        }
        Value::Object(members) => object(node, members, at, faults),
        Value::Null | Value::Bool(_) => {}
    }
    alternatives(node, value, at, faults);
}

fn numbers(node: &Node, number: Option<f64>, wrong: &mut impl FnMut(String)) {
    let Some(number) = number else { return };
    if let Some(min) = node.minimum.filter(|min| number < *min) {
        wrong(format!("must be at least {min}"));
    }
    if let Some(max) = node.maximum.filter(|max| number > *max) {
        wrong(format!("must be at most {max}"));
    }
    if let Some(above) = node.above.filter(|above| number <= *above) {
        wrong(format!("must be greater than {above}"));
    }
    if let Some(below) = node.below.filter(|below| number >= *below) {
        wrong(format!("must be less than {below}"));
    }
}

fn texts(node: &Node, text: &str, wrong: &mut impl FnMut(String)) {
    counted(node.length, text.chars().count(), "characters", wrong);
    if let Some(pattern) = &node.pattern
        && !pattern.is_match(text)
    {
        wrong(format!("must match the pattern {}", pattern.as_str()));
    }
}

fn counted(bounds: Bounds, count: usize, of: &str, wrong: &mut impl FnMut(String)) {
    let count = count as u64;
    if let Some(min) = bounds.min.filter(|min| count < *min) {
        wrong(format!("must have at least {min} {of}, it has {count}"));
    }
    if let Some(max) = bounds.max.filter(|max| count > *max) {
        wrong(format!("must have at most {max} {of}, it has {count}"));
    }
}

fn object(node: &Node, members: &Map<String, Value>, at: &mut String, faults: &mut Vec<Fault>) {
    for name in &node.required {
        if !members.contains_key(name) {
            below(at, name, |at| {
                faults.push(Fault {
                    member: at.clone(),
                    wrong: "is required".into(),
                });
            });
        }
    }
    for (name, value) in members {
        match (node.members.get(name), &node.others) {
            (Some(member), _) => below(at, name, |at| check(member, value, at, faults)),
            (None, Others::Anything) => {}
            (None, Others::Like(other)) => below(at, name, |at| check(other, value, at, faults)),
            (None, Others::None) => below(at, name, |at| {
                faults.push(Fault {
                    member: at.clone(),
                    wrong: unknown(node, name),
                });
            }),
        }
        if faults.len() >= FAULTS_MAX {
            return;
        }
    }
}

/// That a member is not known, with the known name that looks most like it.
fn unknown(node: &Node, name: &str) -> String {
    let nearest = node
        .members
        .keys()
        .map(|known| (strsim::osa_distance(known, name), known))
        .min();
    match nearest {
        Some((distance, known)) if distance * 2 <= known.chars().count() => {
            format!("is not known; did you mean \"{known}\"?")
        }
        _ => "is not known".into(),
    }
}

fn alternatives(node: &Node, value: &Value, at: &str, faults: &mut Vec<Fault>) {
    let fits = |alternative: &&Node| {
        let mut found = Vec::new();
        check(alternative, value, &mut String::new(), &mut found);
        found.is_empty()
    };
    let any = node.any_of.is_empty() || node.any_of.iter().any(|node| fits(&node));
    let one = node.one_of.is_empty() || node.one_of.iter().filter(fits).count() == 1;
    if !any || !one {
        faults.push(Fault {
            member: at.to_owned(),
            wrong: if any {
                "must fit exactly one of the alternatives of its schema"
            } else {
                "must fit one of the alternatives of its schema"
            }
            .into(),
        });
    }
}

/// Runs `f` with the name of a member appended to the place.
fn below(at: &mut String, name: &str, f: impl FnOnce(&mut String)) {
    let length = at.len();
    if !at.is_empty() && !name.starts_with('[') {
        at.push('.');
    }
    at.extend(
        name.chars()
            .filter(|c| !c.is_control())
            .take(NAME_CHARS_MAX),
    );
    f(at);
    at.truncate(length);
}

fn is(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Null => value.is_null(),
        Type::Boolean => value.is_boolean(),
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::Number => value.is_number(),
        // 1.0 is an integer (JSON Schema 2020-12, validation, section 6.1.1).
        Type::Integer => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Type::String => value.is_string(),
    }
}

/// Equality of JSON: 1 and 1.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Whether two entries are equal, by their text, so that long lists take no square of time.
fn repeats(items: &[Value]) -> bool {
    let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    texts.windows(2).any(|pair| match pair {
        [a, b] => a == b,
        _ => false,
    })
}

fn listed(choices: &[Value]) -> String {
    let mut shown: Vec<String> = choices
        .iter()
        .take(CHOICES_MAX)
        .map(Value::to_string)
        .collect();
    if choices.len() > CHOICES_MAX {
        shown.push(format!("one of {} more", choices.len() - CHOICES_MAX));
    }
    match shown.as_slice() {
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// Puts the defaults of absent members into an object, at every depth.
pub(super) fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in &node.members {
                match (members.get_mut(name), &member.default) {
                    (Some(value), _) => fill(member, value),
                    (None, Some(default)) => {
                        members.insert(name.clone(), default.clone());
                    }
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = &node.items {
                items.iter_mut().for_each(|value| fill(item, value));
            }
        }
        _ => {}
    }
}
