use super::*;
use crate::scan::{Bounds, scan_request};

fn read(frame: &str) -> Result<String, K> {
    let scan = scan_request(frame.as_bytes(), &Bounds::default()).map_err(|e| e.kind)?;
    let envelope = Envelope::of(&scan).map_err(|e| e.kind)?;
    Ok(match envelope.kind {
        Kind::Request { id, method } => format!("request {} {method}", id.raw()),
        Kind::Notification { method } => format!("notification {method}"),
        Kind::Response { id, is_error } => {
            format!("response {} {is_error}", id.map_or("null", Id::raw))
        }
    })
}

#[test]
fn reads_envelopes() {
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            Ok("request \"a\" ping"),
        ),
        (
            r#"{"method":"pi\u006eg","id":1.0,"jsonrpc":"2.0","x":0}"#,
            Ok("request 1.0 ping"),
        ),
        (r#"{"jsonrpc":"2.0","method":"n"}"#, Ok("notification n")),
        (
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
            Ok("response 3 false"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
            Ok("response null true"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            Err(K::NotJsonRpc),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            Err(K::NotJsonRpc),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
            Err(K::NotJsonRpc),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            Err(K::NotJsonRpc),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":3}"#,
            Err(K::NotJsonRpc),
        ),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            Err(K::NotJsonRpc),
        ),
        (r#"{"id":1,"method":"x"}"#, Err(K::NotJsonRpc)),
        (r#""text""#, Err(K::NotJsonRpc)),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#,
            Err(K::BatchNotAllowed),
        ),
    ];
    for (frame, expect) in cases {
        assert_eq!(read(frame), expect.map(str::to_owned), "{frame}");
    }
}
