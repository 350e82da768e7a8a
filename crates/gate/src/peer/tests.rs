use super::*;

#[test]
fn a_server_is_not_a_client_of_the_same_name() {
    let (server, client) = (PeerId::server("a"), PeerId::client("a"));
    assert_ne!(server, client);
    assert_eq!(server, PeerId::server(String::from("a")));
    assert_eq!(
        format!("{server} {client:?}"),
        r#"server "a" PeerId(client "a")"#
    );
}

#[test]
fn targets_include_what_they_list() {
    let (a, b) = (PeerId::server("a"), PeerId::server("b"));
    let one = Targets::from(&a);
    assert!(one.include(&a) && !one.include(&b));
    let both = Targets::any([a.clone(), b.clone()]);
    assert!(both.include(&a) && both.include(&b));
    assert!(!both.include(&PeerId::client("a")));
    assert!(!Targets::any([]).include(&a));
}
