use super::*;

#[test]
fn flags_change_what_they_name_and_nothing_else() {
    let base = Limits::default();
    assert_eq!(LimitArgs::default().over(base), Ok(base));
    let args = LimitArgs {
        burst: Some(7),
        tool_window: Some(5),
        then: Some(Then::Refuse),
        ..LimitArgs::default()
    };
    let expected = Limits {
        requests_burst: 7,
        tool_window_ms: 5_000,
        tool_then: Then::Refuse,
        ..base
    };
    assert_eq!(args.over(base), Ok(expected));
    let args = LimitArgs {
        tool_window: Some(0),
        ..LimitArgs::default()
    };
    assert_eq!(
        args.over(base).unwrap_err(),
        "--limit-tool-window is out of bounds; it can be 1 to 86400"
    );
}
