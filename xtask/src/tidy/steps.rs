//! Checks the path of a call in `docs/life_of_a_call.md`: each function is in its file, and its caller's body names it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tree::SourceTree;
use crate::finding::Finding;

const PAGE: &str = "docs/life_of_a_call.md";

/// A row of the page.
#[derive(Debug)]
struct CallStep<'a> {
    line: usize,
    /// `Type::function`, or `function`.
    name: &'a str,
    /// The file, relative to the repository root.
    file: &'a str,
    /// The row that calls it.
    from: &'a str,
}

/// Returns steps that are not in the code, links that lead nowhere, and a wrong count of files.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else {
        return Vec::new();
    };
    let steps: BTreeMap<&str, CallStep<'_>> = (1..)
        .zip(page.lines())
        .filter_map(|(n, l)| step_of(n, l))
        .collect();
    let mut findings: Vec<Finding> = (1..)
        .zip(page.lines())
        .flat_map(|(line, text)| links(text).map(move |link| (line, link)))
        .filter(|(_, link)| tree.text(link).is_none())
        .map(|(line, link)| {
            Finding::new(
                PAGE,
                line,
                format!("there is no file {link}"),
                "correct the link",
            )
        })
        .collect();
    for step in steps.values() {
        if let Some(wrong) = fault(tree, &steps, step) {
            findings.push(Finding::new(
                PAGE,
                step.line,
                wrong,
                "follow the code and correct the row",
            ));
        }
    }
    let files: BTreeSet<&str> = steps.values().map(|step| step.file).collect();
    let count = format!("The path has {} files.", files.len());
    if !page.contains(&count) {
        let wrong = format!("the page lacks \"{count}\"");
        findings.push(Finding::new(PAGE, 1, wrong, "correct the count"));
    }
    findings
}

fn fault(
    tree: &SourceTree,
    steps: &BTreeMap<&str, CallStep<'_>>,
    step: &CallStep<'_>,
) -> Option<String> {
    if bodies(tree, step).is_empty() {
        return Some(format!("{} has no function {}", step.file, step.name));
    }
    if step.from == "–" {
        return None;
    }
    let Some(caller) = steps.get(step.from) else {
        return Some(format!("there is no row {}", step.from));
    };
    let called = function_of(step.name);
    let is_called = bodies(tree, caller)
        .into_iter()
        .any(|body| names(body, called));
    (!is_called).then(|| format!("{} does not name {called}", caller.name))
}

/// Returns the number and the step of a row, if the line is one.
fn step_of(line: usize, text: &str) -> Option<(&str, CallStep<'_>)> {
    let mut cells = text.strip_prefix("| ")?.split(" | ");
    let number = cells.next().filter(|cell| cell.parse::<u16>().is_ok())?;
    let linked = cells.next()?;
    let name = linked.split('`').nth(1)?;
    let file = links(linked).next()?;
    let from = cells.next()?;
    let step = CallStep {
        line,
        name,
        file,
        from,
    };
    Some((number, step))
}

/// Returns the files of the repository that a line of the page links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](../")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0))
}

fn function_of(name: &str) -> &str {
    name.rsplit_once("::")
        .map_or(name, |(_, function)| function)
}

/// Returns the bodies of the functions of this name: several types of a file may have one.
fn bodies(tree: &SourceTree, step: &CallStep<'_>) -> Vec<TokenStream> {
    let tokens = tree.text(step.file).and_then(|text| text.parse().ok());
    let of_type = step.name.rsplit_once("::").map(|(of_type, _)| of_type);
    let mut found = Vec::new();
    if let Some(tokens) = tokens {
        find(tokens, function_of(step.name), of_type, &mut found);
    }
    found
}

fn find(tokens: TokenStream, function: &str, of_type: Option<&str>, found: &mut Vec<TokenStream>) {
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(word) = token else {
            continue;
        };
        if word == "impl" {
            let (head, body) = up_to_braces(&mut tokens);
            if of_type.is_some_and(|name| head.iter().any(|word| word == name)) {
                find(body, function, None, found);
            }
        } else if word == "fn" && of_type.is_none() {
            let (head, body) = up_to_braces(&mut tokens);
            if head.first().is_some_and(|name| name == function) {
                found.push(body);
            }
        }
    }
}

/// Returns the words before the next braces, and what is in these; a `;` ends the search.
fn up_to_braces(tokens: &mut impl Iterator<Item = TokenTree>) -> (Vec<String>, TokenStream) {
    let mut head = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return (head, group.stream());
            }
            TokenTree::Ident(word) => head.push(word.to_string()),
            TokenTree::Punct(sign) if sign.as_char() == ';' => break,
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    (head, TokenStream::new())
}

/// Returns whether a word occurs in the tokens at any depth.
fn names(tokens: TokenStream, wanted: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == wanted,
        TokenTree::Group(group) => names(group.stream(), wanted),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn free() { a.named(); }\nimpl<T> Trait for Own<T> { fn run(&self) { if x { self.next() } } fn next(&self) {} }\n\
        impl Other { fn run(&self) {} }\n";

    fn findings_of(rows: &str, count: usize) -> Vec<String> {
        let page = format!("The path has {count} files.\n{rows}");
        let tree = SourceTree::of(&[(PAGE, page.as_str()), ("crates/a/src/a.rs", CODE)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_that_the_code_takes_passes() {
        let rows = "| 1 | [`Own::run`](../crates/a/src/a.rs) | – | x |\n| 2 | [`Own::next`](../crates/a/src/a.rs) | 1 | y |\n";
        assert_eq!(findings_of(rows, 1), [""; 0]);
        assert_eq!(findings_of(rows, 2).len(), 1, "the count");
    }

    #[test]
    fn what_the_code_does_not_do_is_found() {
        for (rows, wrong) in [
            (
                "| 1 | [`gone`](../crates/a/src/a.rs) | – | x |\n",
                "has no function gone",
            ),
            (
                "| 1 | [`Own::free`](../crates/a/src/a.rs) | – | x |\n",
                "has no function Own::free",
            ),
            (
                "| 1 | [`Other::run`](../crates/a/src/a.rs) | – | x |\n| 2 | [`Own::next`](../crates/a/src/a.rs) | 1 | y |\n",
                "Other::run does not name next",
            ),
            (
                "| 1 | [`free`](../crates/a/src/a.rs) | – | x |\n| 2 | [`Own::next`](../crates/a/src/a.rs) | 7 | y |\n",
                "there is no row 7",
            ),
            (
                "| 1 | [`free`](../crates/a/src/a.rs) | – | [`b`](../crates/b.rs) |\n",
                "there is no file crates/b.rs",
            ),
        ] {
            let found = findings_of(rows, 1);
            assert!(
                found.len() == 1 && found[0].contains(wrong),
                "{wrong}: {found:?}"
            );
        }
    }
}
