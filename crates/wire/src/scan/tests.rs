use super::*;
use crate::error::WireErrorKind as K;

fn kind(frame: &[u8]) -> Result<(), K> {
    scan_request(frame, &Bounds::default())
        .map(|_| ())
        .map_err(|e| e.kind)
}

#[test]
fn accepts_and_refuses() {
    let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    let cases: Vec<(Vec<u8>, Result<(), K>)> = vec![
        (
            br#"{"a":[1,-0.5e+3,true,false,null,"x\u00e9"],"b":{}}"#.to_vec(),
            Ok(()),
        ),
        (b" [ ] ".to_vec(), Ok(())),
        (br#"{"a":1,"a":2}"#.to_vec(), Err(K::DuplicateKey)),
        (
            br#"{"a":{"b":[{"c":1,"c":2}]}}"#.to_vec(),
            Err(K::DuplicateKey),
        ),
        (br#"{"a":1,"\u0061":2}"#.to_vec(), Err(K::DuplicateKey)),
        (br#"{"a":"\ud800"}"#.to_vec(), Err(K::Syntax)),
        (b"{\"a\":\"\x01\"}".to_vec(), Err(K::Syntax)),
        (b"{\"a\":\xff}".to_vec(), Err(K::NotUtf8)),
        (b"\xef\xbb\xbf{}".to_vec(), Err(K::Syntax)),
        (b"{\"a\":NaN}".to_vec(), Err(K::Syntax)),
        (b"{\"a\":01}".to_vec(), Err(K::Syntax)),
        (b"{\"a\":1.}".to_vec(), Err(K::Syntax)),
        (b"{\"a\":1,}".to_vec(), Err(K::Syntax)),
        (b"{} {}".to_vec(), Err(K::Syntax)),
        (b"".to_vec(), Err(K::Syntax)),
        (b"{\"a\":\"\\\"}".to_vec(), Err(K::Syntax)),
        (deep(128), Ok(())),
        (deep(129), Err(K::TooDeep)),
        (deep(10_000), Err(K::TooDeep)),
    ];
    for (frame, expect) in cases {
        assert_eq!(
            kind(&frame),
            expect,
            "{}",
            String::from_utf8_lossy(&frame[..frame.len().min(60)])
        );
    }
}

#[test]
fn duplicates_are_found_among_many_names() {
    let mut names: Vec<String> = (0..500).map(|i| format!("\"k{i}\":0")).collect();
    assert_eq!(kind(format!("{{{}}}", names.join(",")).as_bytes()), Ok(()));
    names.push("\"k250\":1".into());
    assert_eq!(
        kind(format!("{{{}}}", names.join(",")).as_bytes()),
        Err(K::DuplicateKey)
    );
}

#[test]
fn notes_members_params_and_leaves() {
    let frame = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"copy","_meta":{"path":"/no"},
        "arguments":{"path":"/a","list":["x",{"file":"b\/c"}],"o":{"/key":"v"},"n":3}}}"#;
    let scan = scan_request(frame, &Bounds::default()).unwrap();
    let names: Vec<_> = scan.members.iter().map(|(k, _)| k.as_ref()).collect();
    assert_eq!(names, ["jsonrpc", "id", "method", "params"]);
    assert_eq!(
        scan.params.first().unwrap(),
        &(Cow::Borrowed("name"), "\"copy\"")
    );
    let leaves: Vec<_> = scan
        .leaves
        .iter()
        .filter(|l| !l.is_name)
        .map(|l| (l.key.as_ref(), l.value))
        .collect();
    assert_eq!(
        leaves,
        [
            ("path", "/a"),
            ("list", "x"),
            ("file", "b\\/c"),
            ("/key", "v")
        ]
    );
    assert!(scan.leaves.iter().any(|l| l.is_name && l.value == "/key"));
    assert_eq!(
        scan.leaves.iter().find(|l| l.value == "b\\/c").unwrap().top,
        "list"
    );
}

#[test]
fn replies_are_checked_in_their_envelope_only() {
    let inner = br#"{"id":1,"result":{"a":1,"a":2}}"#;
    assert!(scan_reply(inner, &Bounds::default()).is_ok());
    assert!(scan_reply(br#"{"id":1,"id":2}"#, &Bounds::default()).is_err());
    assert_eq!(
        scan_reply(b"[1,2]", &Bounds::default()).unwrap().batch,
        Some(vec!["1", "2"])
    );
}
