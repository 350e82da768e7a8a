use super::*;

fn shown(old: &str, new: &str) -> String {
    let one = |line: &Line<'_>| match line {
        Line::At(number) => format!("@{number}"),
        Line::Both(text) => format!(" {}", text.trim_end()),
        Line::Old(text) => format!("-{}", text.trim_end()),
        Line::New(text) => format!("+{}", text.trim_end()),
    };
    lines(old, new)
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join("|")
}

#[test]
fn only_what_changed_is_shown_with_a_little_around_it() {
    assert_eq!(shown("a\nb\n", "a\nb\n"), "");
    assert_eq!(shown("", "a\nb"), "+a|+b");
    assert_eq!(shown("a\nb", ""), "-a|-b");
    assert_eq!(shown("a\nb\nc\n", "a\nx\nc\n"), " a|-b|+x| c");
    assert_eq!(
        shown("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\nx\n9\n"),
        "@6| 6| 7|-8|+x| 9"
    );
    assert_eq!(shown("a\n", "a"), "-a|+a");
    assert_eq!(shown("a\nb\nc\nd\n", "b\nc\nx\nd\n"), "-a| b| c|+x| d");
}

#[test]
fn large_texts_are_shown_as_wholes() {
    let text = |word: &str| {
        (0..1_200)
            .map(|n| format!("{word}{n}\n"))
            .collect::<String>()
    };
    let all = lines(&text("a"), &text("b")).len();
    assert_eq!(all, 2_400);
}
