use super::*;
use serde_json::json;

#[test]
fn a_uri_is_read_in_its_one_spelling() {
    for (text, name, part, query) in [
        ("sim://results/run-1", "run-1", UriPart::Whole, json!({})),
        (
            "sim://results/a%20b?outputs=A%7CB&outputs=C&page=2&limit=5",
            "a b",
            UriPart::Whole,
            json!({"outputs": ["A|B", "C"], "page": 2, "limit": 5}),
        ),
        (
            "sim://results/x/pk?outputPath=A",
            "x",
            UriPart::Parameters,
            json!({"outputPath": "A"}),
        ),
        ("sim://results/x/plot", "x", UriPart::Plot, json!({})),
        (
            "sim://results/x/chunks/x-1?subjects=0&subjects=7",
            "x",
            UriPart::Chunk("x-1".into()),
            json!({"subjects": [0, 7]}),
        ),
    ] {
        let read = ResultUri::read(text).unwrap();
        assert_eq!((read.results_id.as_str(), &read.part), (name, &part));
        assert_eq!(Value::Object(read.query.clone()), query);
        assert_eq!(read.to_text(), text);
    }
}

#[test]
fn any_other_text_is_refused_with_what_to_write() {
    for (text, said) in [
        ("", "names no result"),
        ("file:///etc/passwd", "names no result"),
        ("SIM://results/x", "names no result"),
        ("sim://results/", "names no result"),
        ("sim://results//pk", "names no result"),
        ("sim://results/x/", "no such part"),
        ("sim://results/x/../y", "no such part"),
        ("sim://results/x/chunks/", "no such part"),
        ("sim://results/%78", "write sim://results/x"),
        ("sim://results/a%2fb", "write sim://results/a%2Fb"),
        ("sim://results/a+b", "write sim://results/a%20b"),
        ("sim://results/x?", "write sim://results/x"),
        ("sim://results/x#y", "write sim://results/x%23y"),
        (
            "sim://results/x?limit=5&page=2",
            "write sim://results/x?page=2&limit=5",
        ),
        ("sim://results/x?page=one", "whole number"),
        ("sim://results/x?page=1&page=2", "twice"),
        ("sim://results/x?size=1", "may have outputs, page, limit"),
        ("sim://results/x/pk?page=1", "may have outputPath"),
    ] {
        let wrong = ResultUri::read(text).unwrap_err();
        assert!(wrong.contains(said), "{text}: {wrong}");
    }
    let long = format!("sim://results/{}", "x".repeat(URI_BYTES_MAX));
    assert!(ResultUri::read(&long).unwrap_err().contains("longer"));
}
