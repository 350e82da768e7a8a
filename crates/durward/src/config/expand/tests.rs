use super::*;
use std::os::unix::ffi::OsStringExt as _;

fn variable(name: &str) -> Option<OsString> {
    match name {
        "TOKEN" => Some("s3cret".into()),
        "NESTED" => Some("${TOKEN}".into()),
        "BROKEN" => Some(OsString::from_vec(vec![0xff])),
        _ => None,
    }
}

#[test]
fn variables_are_put_in_once() {
    for (written, expect) in [
        ("", Ok("")),
        ("plain $5 and $x", Ok("plain $5 and $x")),
        ("${TOKEN}", Ok("s3cret")),
        ("a${TOKEN}b${TOKEN}", Ok("as3cretbs3cret")),
        ("$${TOKEN}", Ok("${TOKEN}")),
        ("$$${TOKEN}", Ok("$${TOKEN}")),
        // What a variable holds is not looked into again.
        ("${NESTED}", Ok("${TOKEN}")),
        (
            "${MISSING}",
            Err("the environment variable MISSING is not set, or empty"),
        ),
        (
            "${BROKEN}",
            Err("the environment variable BROKEN is not UTF-8"),
        ),
        (
            "${}",
            Err(
                "\"\" is not a variable name; names have letters, digits and _, and no default behind them",
            ),
        ),
        (
            "${1A}",
            Err(
                "\"1A\" is not a variable name; names have letters, digits and _, and no default behind them",
            ),
        ),
        (
            "${A:-hunter2}",
            Err(
                "\"A…\" is not a variable name; names have letters, digits and _, and no default behind them",
            ),
        ),
        (
            "${TOKEN",
            Err(
                "\"${\" has no \"}\" behind it; write ${NAME}, or $${ for the two characters themselves",
            ),
        ),
    ] {
        let read = expand(written, &variable);
        assert_eq!(read.as_deref().map_err(String::as_str), expect, "{written}");
    }
}

#[test]
fn secrets_and_expanded_texts_do_not_print() {
    let text = Text {
        written: "${TOKEN}".into(),
        value: "s3cret".into(),
    };
    let shown = format!("{text} {text:?} {:?}", Secret::new("s3cret".into()));
    assert!(!shown.contains("s3cret"), "{shown}");
}
