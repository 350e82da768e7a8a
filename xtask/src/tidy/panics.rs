//! Nothing outside tests may panic on purpose: bad input is a feature, and an error is its answer.

use super::tree::SourceTree;
use crate::finding::Finding;

/// Calls that panic, outside test code. Examples and benches are no tests.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let one = |path: &str, line: usize, what: &str| {
        Finding::new(
            path,
            line,
            format!("`{what}` outside a test"),
            "return an error that says what was wrong and what to do",
        )
    };
    tree.shipped()
        .flat_map(|f| {
            f.survey
                .panics
                .iter()
                .map(move |(line, what)| one(f.path, *line, what))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(path: &str, body: &str) -> Vec<String> {
        check(&SourceTree::of(&[(path, body)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn each_way_to_panic_is_found() {
        let ways = [
            ("o.unwrap()", "`.unwrap()`"),
            ("r.unwrap_err()", "`.unwrap_err()`"),
            ("o.expect(\"there\")", "`.expect(…)`"),
            ("o.expect(&format!(\"{x}\"))", "`.expect(…)`"),
            ("r.expect_err(\"not\")", "`.expect_err(…)`"),
            ("o.unwrap().expect(\":\")?", "`.unwrap()`"),
            ("panic!(\"no\")", "`panic!`"),
            ("std::panic!(\"no\")", "`panic!`"),
            ("todo!()", "`todo!`"),
            ("unimplemented!()", "`unimplemented!`"),
            ("unreachable!()", "`unreachable!`"),
            ("v.iter().map(Option::unwrap)", "`Option::unwrap`"),
            ("select! { x = y => x.unwrap() }", "`.unwrap()`"),
            (
                "select! { x = y => { x.expect(\"there\") } }",
                "`.expect(…)`",
            ),
            ("select! { _ = y => unreachable!() }", "`unreachable!`"),
        ];
        for (body, what) in ways {
            let found = findings_of(
                "crates/a/src/lib.rs",
                &format!("//! A.\nfn f() {{\n    {body};\n}}\n"),
            );
            assert_eq!(found.len(), 1, "{body}: {found:?}");
            assert!(
                found[0].starts_with(&format!("crates/a/src/lib.rs:3: {what} outside a test; ")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn what_does_not_panic_passes() {
        for body in [
            "o.unwrap_or(1)",
            "o.unwrap_or_default()",
            "parser.expect(b':')",
            "parser.expect(Token::Colon)",
            "parser.expect(\":\")?",
            "assert!(x, \"a stated invariant\")",
            "// o.unwrap()\n()",
            "\"panic!()\".len()",
        ] {
            assert_eq!(
                findings_of("crates/a/src/lib.rs", &format!("fn f() {{ {body}; }}")),
                [""; 0],
                "{body}"
            );
        }
    }

    #[test]
    fn tests_may_panic_and_examples_and_benches_may_not() {
        let body = "fn f() { o.unwrap(); }";
        for (path, findings) in [
            ("crates/a/tests/run.rs", 0),
            ("crates/a/tests/support/proc.rs", 0),
            ("crates/a/fuzz/frame.rs", 0),
            ("crates/a/examples/mock.rs", 1),
            ("crates/a/benches/hot.rs", 1),
            ("xtask/src/main.rs", 1),
        ] {
            assert_eq!(findings_of(path, body).len(), findings, "{path}");
        }
    }

    #[test]
    fn only_code_that_is_compiled_for_tests_alone_is_passed_over() {
        for (attribute, findings) in [
            ("cfg(test)", 0),
            ("cfg(all(unix, test))", 0),
            ("test", 0),
            ("tokio::test", 0),
            ("cfg(any(test, feature = \"x\"))", 1),
            ("cfg(not(test))", 1),
            ("inline", 1),
        ] {
            let body = format!("#[{attribute}] fn f() {{ o.unwrap(); }}");
            assert_eq!(
                findings_of("crates/a/src/lib.rs", &body).len(),
                findings,
                "{attribute}"
            );
            let body = format!("struct S; impl S {{ #[{attribute}] fn f() {{ o.unwrap(); }} }}");
            assert_eq!(
                findings_of("crates/a/src/lib.rs", &body).len(),
                findings,
                "{attribute} in an impl"
            );
        }
        assert_eq!(
            findings_of(
                "crates/a/src/lib.rs",
                "#[cfg(test)] mod tests { fn f() { o.unwrap(); } }"
            )
            .len(),
            0
        );
    }
}
