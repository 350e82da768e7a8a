use serde_json::json;

use super::*;

fn schema(json: Value) -> Schema {
    Schema::new(json).unwrap()
}

fn told(schema: &Schema, value: &Value) -> Vec<String> {
    let faults = schema.check(value).err().unwrap_or_default();
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn faults_name_the_member_and_what_it_must_be() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "ms": {"type": "integer", "minimum": 0, "maximum": 100},
            "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
            "mode": {"enum": ["fast", "slow"]},
            "tests": {"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true,
                      "items": {"type": "object", "required": ["port"],
                                "properties": {"port": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 65536}}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "one": {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            "only": {"const": 1}
        },
        "required": ["ms"],
        "additionalProperties": false
    }));
    let cases = [
        (json!({"ms": 1}), vec![]),
        (
            json!({"ms": 1.0, "either": null, "one": 0.5, "only": 1.0}),
            vec![],
        ),
        (json!([]), vec!["must be an object"]),
        (json!({}), vec!["\"ms\" is required"]),
        (json!({"ms": 1.5}), vec!["\"ms\" must be an integer"]),
        (json!({"ms": -1}), vec!["\"ms\" must be at least 0"]),
        (json!({"ms": 1e30}), vec!["\"ms\" must be at most 100"]),
        (json!({"ms": "1"}), vec!["\"ms\" must be an integer"]),
        (json!({"ms": null}), vec!["\"ms\" must be an integer"]),
        (
            json!({"ms": 1, "name": "äöüß!"}),
            vec![
                "\"name\" must have at most 4 characters, it has 5",
                "\"name\" must match the pattern ^[a-z]+$",
            ],
        ),
        (
            json!({"ms": 1, "name": "a"}),
            vec!["\"name\" must have at least 2 characters, it has 1"],
        ),
        (
            json!({"ms": 1, "mode": "Fast"}),
            vec!["\"mode\" must be one of \"fast\", \"slow\""],
        ),
        (json!({"ms": 1, "only": 2}), vec!["\"only\" must be 1"]),
        (
            json!({"ms": 1, "naem": "ab"}),
            vec!["\"naem\" is not known; did you mean \"name\"?"],
        ),
        (json!({"ms": 1, "zzz\n": 0}), vec!["\"zzz\" is not known"]),
        (
            json!({"ms": 1, "tests": []}),
            vec!["\"tests\" must have at least 1 entries, it has 0"],
        ),
        (
            json!({"ms": 1, "tests": [{}, {"port": 0}]}),
            vec![
                "\"tests[0].port\" is required",
                "\"tests[1].port\" must be greater than 0",
            ],
        ),
        (
            json!({"ms": 1, "tests": [{"port": 65536}]}),
            vec!["\"tests[0].port\" must be less than 65536"],
        ),
        (
            json!({"ms": 1, "tests": [{"port": 1}, {"port": 1}]}),
            vec!["\"tests\" must not repeat an entry"],
        ),
        (
            json!({"ms": 1, "either": 1}),
            vec!["\"either\" must fit one of the alternatives of its schema"],
        ),
        (
            json!({"ms": 1, "one": 1}),
            vec!["\"one\" must fit exactly one of the alternatives of its schema"],
        ),
    ];
    for (value, expect) in cases {
        assert_eq!(told(&schema, &value), expect, "{value}");
    }
}

#[test]
fn faults_are_bounded() {
    let schema = schema(json!({"type": "array", "items": {"type": "string"}}));
    let value: Value = (0..10_000).collect::<Vec<i32>>().into();
    assert_eq!(told(&schema, &value).len(), FAULTS_MAX);
    let closed = Schema::new(json!({"additionalProperties": false})).unwrap();
    let many: serde_json::Map<String, Value> =
        (0..100).map(|n| (format!("m{n}"), Value::Null)).collect();
    assert_eq!(told(&closed, &many.into()).len(), FAULTS_MAX);
}

#[test]
fn defaults_fill_what_is_absent_at_every_depth() {
    let schema = schema(json!({
        "properties": {
            "a": {"default": 1},
            "b": {"properties": {"c": {"default": []}}},
            "d": {"items": {"properties": {"e": {"default": "x"}}}}
        }
    }));
    let mut value = json!({"b": {}, "d": [{}, {"e": "y"}]});
    schema.fill(&mut value);
    assert_eq!(
        value,
        json!({"a": 1, "b": {"c": []}, "d": [{"e": "x"}, {"e": "y"}]})
    );
    let mut none = json!("text");
    schema.fill(&mut none);
    assert_eq!(none, json!("text"));
}

#[test]
fn a_schema_that_would_not_be_checked_in_full_is_refused() {
    let cases = [
        (json!(3), "", "is neither an object nor true"),
        (json!({"type": "text"}), "/type", "is not a type of JSON"),
        (json!({"type": []}), "/type", "is not a type of JSON"),
        (
            json!({"properties": {"a": {"multipleOf": 2}}}),
            "/properties/a/multipleOf",
            "is a keyword that is not checked here; leave it out",
        ),
        (
            json!({"$ref": "http://example.com"}),
            "/$ref",
            "is a keyword that is not checked here; leave it out",
        ),
        (
            json!({"pattern": "("}),
            "/pattern",
            "is not a pattern, or one that does not run in linear time",
        ),
        (json!({"minItems": -1}), "/minItems", "is not a count"),
        (
            json!({"required": "a"}),
            "/required",
            "is not a list of names",
        ),
        (
            json!({"additionalProperties": false, "required": ["a"]}),
            "",
            "requires \"a\", which is not among its properties",
        ),
        (
            json!({"enum": []}),
            "/enum",
            "is not a list, or an empty one",
        ),
    ];
    for (json, at, wrong) in cases {
        let fault = Schema::new(json.clone()).unwrap_err();
        assert_eq!(
            (fault.at.as_str(), fault.wrong.as_str()),
            (at, wrong),
            "{json}"
        );
    }
    let mut deep = json!(true);
    for _ in 0..100 {
        deep = json!({"items": deep});
    }
    assert!(
        Schema::new(deep)
            .unwrap_err()
            .wrong
            .contains("nests deeper")
    );
}
