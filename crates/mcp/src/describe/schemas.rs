//! Which arguments of a tool are paths, as its input schema says: `format: path` and the like, wherever JSON Schema
//! lets a value be described. A part that cannot be read here makes a possible path of what it describes.

use ahash::{AHashMap as HashMap, AHashSet as HashSet};
use gate::paths::is_content_key;
use percent_encoding::percent_decode_str;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::{effects, nested};

/// Which tools a server has listed, and which of their arguments the schemas say are paths.
#[derive(Debug, Default)]
pub struct PathSchemas {
    listed: HashSet<String>,
    /// Of those that have any.
    by_tool: HashMap<String, SchemaPaths>,
    /// Arguments that are called like contents and may be more than a text, of tools that have any.
    structured: HashMap<String, HashSet<String>>,
    /// Tools with arguments that none has that only reads: code, a command, an output.
    suspicious: HashSet<String>,
}

/// Values of JSON Schema's `format` that mean a path.
const PATH_FORMATS: [&str; 8] = [
    "path",
    "file-path",
    "filepath",
    "file",
    "directory",
    "directory-path",
    "file-uri",
    "uri-reference",
];
/// Most tools whose schemas are kept; those beyond count as not listed.
const TOOLS_MAX: usize = 4_096;
/// Most parts of a schema that are visited, each reference followed counted. In one that has more, every argument is a
/// possible path.
const VISITS_MAX: usize = 16_384;
/// Most names and patterns of one tool's path arguments.
const NAMES_MAX: usize = 4_096;
/// Most bytes of one compiled pattern of names.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

impl PathSchemas {
    /// Learns from a tool's definition. A name that is listed again keeps what was learned of it before: which of the
    /// definitions a server goes by is its own affair.
    pub fn learn(&mut self, tool: &str, input_schema: &Value) {
        if !self.listed.contains(tool) {
            if self.listed.len() >= TOOLS_MAX {
                return;
            }
            self.listed.insert(tool.to_owned());
        }
        let paths = SchemaPaths::of(input_schema);
        if !paths.is_empty() {
            self.by_tool.entry(tool.to_owned()).or_default().add(paths);
        }
        if effects::has_suspicious_argument(input_schema) {
            self.suspicious.insert(tool.to_owned());
        }
        let structured = nested::structured_contents(input_schema);
        if !structured.is_empty() {
            let known = self.structured.entry(tool.to_owned()).or_default();
            known.extend(structured);
        }
    }

    /// Forgets all definitions: the server has said that they are others.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns whether the server has listed a tool of this name, to whichever session.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.listed.contains(tool)
    }

    /// Returns whether an argument that is called like a content may be an object or a list.
    pub(super) fn says_structured(&self, tool: &str, key: &str) -> bool {
        let keys = self.structured.get(tool);
        keys.is_some_and(|keys| keys.contains(key))
    }

    /// Returns whether a tool has an argument that none has that only reads.
    pub(super) fn is_suspicious(&self, tool: &str) -> bool {
        self.suspicious.contains(tool)
    }

    /// Returns whether the schema makes an argument of this name a path.
    pub(super) fn says_path(&self, tool: &str, key: &str) -> bool {
        self.by_tool.get(tool).is_some_and(|paths| paths.has(key))
    }
}

/// The path arguments of one tool, by their names.
#[derive(Debug, Default)]
struct SchemaPaths {
    names: HashSet<String>,
    patterns: Vec<Regex>,
    /// Names that no `properties` lists are paths.
    others: bool,
    /// The names that are listed.
    listed: HashSet<String>,
    /// The schema could not be read to its end: every name is a possible path.
    all: bool,
}

impl SchemaPaths {
    fn of(schema: &Value) -> Self {
        let mut walk = SchemaWalk {
            root: schema,
            anchors: anchors(schema),
            todo: vec![(schema, Owner::Whole)],
            seen: HashSet::new(),
            out: Self::default(),
        };
        walk.run();
        walk.out
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty() && !self.others && !self.all
    }

    fn has(&self, key: &str) -> bool {
        self.all
            || self.names.contains(key)
            || (self.others && !self.listed.contains(key))
            || self.patterns.iter().any(|pattern| pattern.is_match(key))
    }

    fn add(&mut self, more: Self) {
        self.names.extend(more.names);
        let is_new = |pattern: &Regex| {
            self.patterns
                .iter()
                .all(|known| known.as_str() != pattern.as_str())
        };
        let new: Vec<Regex> = more.patterns.into_iter().filter(is_new).collect();
        self.patterns.extend(new);
        // A name that one definition lists is another name in the other one.
        match (self.others, more.others) {
            (true, true) => self.listed.retain(|name| more.listed.contains(name)),
            (false, true) => self.listed = more.listed,
            (_, false) => {}
        }
        self.others |= more.others;
        self.all |= more.all;
        self.bound();
    }

    fn bound(&mut self) {
        self.all |= self.names.len() + self.patterns.len() > NAMES_MAX;
    }
}

/// The arguments that a part of a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner<'s> {
    /// All: the arguments as a whole.
    Whole,
    /// None: a part that is in use only where something refers to it.
    Nothing,
    /// Those of this name.
    Name(&'s str),
    /// Those whose names match.
    Pattern(&'s str),
    /// Those that no `properties` lists.
    Others,
}

/// Keywords whose schemas describe the same value, or items of it.
const SAME_VALUE: [&str; 14] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "anyOf",
    "oneOf",
    "allOf",
    "if",
    "then",
    "else",
    "not",
    "contentSchema",
    "extends",
];
/// Keywords with schemas of the same value by name.
const SAME_VALUE_BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with values, which are no schemas.
const VALUES: [&str; 6] = [
    "default", "examples", "example", "const", "enum", "required",
];

/// A walk through a schema and all that it refers to.
struct SchemaWalk<'s> {
    root: &'s Value,
    anchors: HashMap<String, Vec<&'s Value>>,
    todo: Vec<(&'s Value, Owner<'s>)>,
    seen: HashSet<(*const Value, Owner<'s>)>,
    out: SchemaPaths,
}

impl<'s> SchemaWalk<'s> {
    fn run(&mut self) {
        while let Some((schema, owner)) = self.todo.pop() {
            let Some(members) = schema.as_object() else {
                self.todo.extend(items(schema).map(|item| (item, owner)));
                continue;
            };
            if !self.seen.insert((std::ptr::from_ref(schema), owner)) {
                continue;
            }
            if self.seen.len() > VISITS_MAX || self.todo.len() > VISITS_MAX {
                self.out.all = true;
                return;
            }
            self.visit(members, owner);
            self.out.bound();
        }
    }

    fn visit(&mut self, members: &'s Map<String, Value>, owner: Owner<'s>) {
        for (keyword, value) in members {
            match keyword.as_str() {
                "format" => {
                    let format = value.as_str().unwrap_or_default().to_ascii_lowercase();
                    if PATH_FORMATS.contains(&format.as_str()) {
                        self.mark(owner);
                    }
                }
                "$ref" | "$dynamicRef" | "$recursiveRef" => self.follow(value, owner),
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        self.out.listed.insert(name.clone());
                        self.todo.push((property, Owner::Name(name)));
                    }
                }
                "patternProperties" => {
                    let patterns = value.as_object().into_iter().flatten();
                    self.todo.extend(
                        patterns.map(|(pattern, schema)| (schema, Owner::Pattern(pattern))),
                    );
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    self.todo.push((value, Owner::Others));
                }
                same if SAME_VALUE.contains(&same) => self.todo.push((value, owner)),
                same if SAME_VALUE_BY_NAME.contains(&same) => {
                    let schemas = value.as_object().into_iter().flatten();
                    self.todo.extend(schemas.map(|(_, schema)| (schema, owner)));
                }
                "$defs" | "definitions" => {
                    let schemas = value.as_object().into_iter().flatten();
                    self.todo
                        .extend(schemas.map(|(_, schema)| (schema, Owner::Nothing)));
                }
                values if VALUES.contains(&values) => {}
                // Of a keyword that is not known here, what it holds may describe arguments of names of its own.
                _ => self.todo.push((value, Owner::Nothing)),
            }
        }
    }

    fn follow(&mut self, reference: &'s Value, owner: Owner<'s>) {
        let found = reference
            .as_str()
            .map(|text| self.resolve(text))
            .unwrap_or_default();
        if found.is_empty() {
            self.mark_unread(owner);
        }
        self.todo
            .extend(found.into_iter().map(|schema| (schema, owner)));
    }

    /// Returns the schemas that a reference may lead to: several, where names stand twice or are found at run time.
    fn resolve(&self, reference: &str) -> Vec<&'s Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let bases = match base {
            "" => vec![self.root],
            base => self.anchors.get(base).cloned().unwrap_or_default(),
        };
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        match fragment.as_ref() {
            "" => bases,
            pointer if pointer.starts_with('/') => bases
                .into_iter()
                .filter_map(|schema| schema.pointer(pointer))
                .collect(),
            name => {
                let named = self.anchors.get(&format!("#{name}"));
                named.cloned().unwrap_or_default()
            }
        }
    }

    fn mark(&mut self, owner: Owner<'s>) {
        match owner {
            Owner::Whole | Owner::Nothing => {}
            Owner::Name(name) => {
                self.out.names.insert(name.to_owned());
            }
            Owner::Pattern(text) => {
                if self.out.patterns.iter().any(|known| known.as_str() == text) {
                    return;
                }
                match RegexBuilder::new(text)
                    .size_limit(PATTERN_BYTES_MAX)
                    .build()
                {
                    Ok(pattern) => self.out.patterns.push(pattern),
                    // Another dialect of expressions: any name may match.
                    Err(_) => self.out.all = true,
                }
            }
            Owner::Others => self.out.others = true,
        }
    }

    /// Marks what a reference describes that leads nowhere.
    fn mark_unread(&mut self, owner: Owner<'s>) {
        match owner {
            Owner::Whole => self.out.all = true,
            // What such an argument holds is read as a possible path already.
            Owner::Name(name) if is_content_key(name) => {}
            owner => self.mark(owner),
        }
    }
}

/// Returns the members of a list; none of anything else.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the parts of a schema by their names: `#NAME` for anchors, the whole text for `$id`.
fn anchors(root: &Value) -> HashMap<String, Vec<&Value>> {
    let mut out: HashMap<String, Vec<&Value>> = HashMap::new();
    let mut todo = vec![root];
    while let Some(value) = todo.pop() {
        todo.extend(items(value));
        let Some(members) = value.as_object() else {
            continue;
        };
        todo.extend(members.values());
        for (keyword, sign) in [
            ("$anchor", "#"),
            ("$dynamicAnchor", "#"),
            ("$id", ""),
            ("id", ""),
        ] {
            if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                // An older `$id` may be an anchor: it begins with the sign then.
                let name = format!("{sign}{name}");
                out.entry(name).or_default().push(value);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(schema: &Value, names: &[&str]) -> Vec<String> {
        let mut schemas = PathSchemas::default();
        schemas.learn("t", schema);
        let found = names.iter().filter(|name| schemas.says_path("t", name));
        found.map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn path_formats_are_seen_in_composed_schemas() {
        let path = json!({"type": "string", "format": "path"});
        let cases = [
            json!({"properties": {"at": path}}),
            json!({"properties": {"at": {"anyOf": [path, {"type": "null"}]}}}),
            json!({"properties": {"at": {"oneOf": [{"type": "integer"}, path]}}}),
            json!({"properties": {"at": {"allOf": [{"minLength": 1}, {"allOf": [path]}]}}}),
            json!({"properties": {"at": {"$ref": "#/$defs/Place"}}, "$defs": {"Place": path}}),
            json!({"properties": {"at": {"$ref": "#/definitions/a~1b"}}, "definitions": {"a/b": path}}),
            json!({"properties": {"at": {"$ref": "#place"}}, "$defs": {"x": {"$anchor": "place", "format": "path"}}}),
            json!({"properties": {"at": {"$dynamicRef": "#place"}},
                   "$defs": {"x": {"$dynamicAnchor": "place", "format": "path"}}}),
            json!({"properties": {"at": {"$ref": "urn:place"}}, "$defs": {"x": {"$id": "urn:place", "format": "path"}}}),
            json!({"properties": {"at": {"type": "array", "prefixItems": [{"type": "integer"}, path]}}}),
            json!({"properties": {"at": {"type": "array", "items": {"anyOf": [path]}}}}),
            json!({"properties": {"at": {"if": {"type": "string"}, "then": path}}}),
            json!({"properties": {"at": {"if": {"type": "integer"}, "else": path}}}),
            json!({"$ref": "#/$defs/All", "$defs": {"All": {"properties": {"at": path}}}}),
            json!({"allOf": [{"properties": {"at": path}}, {"properties": {"text": {"type": "string"}}}]}),
            json!({"then": {"properties": {"at": path}}}),
            json!({"dependentSchemas": {"text": {"properties": {"at": path}}}}),
            json!({"patternProperties": {"^a": path}}),
            json!({"properties": {"text": {}}, "additionalProperties": path}),
            json!({"properties": {"text": {"type": "object", "properties": {"at": path}}}}),
            json!({"properties": {"at": {"$ref": "https://elsewhere.example/schema.json"}}}),
            json!({"properties": {"at": {"$ref": "#/$defs/Missing"}}}),
        ];
        for schema in cases {
            assert_eq!(paths(&schema, &["at", "text"]), ["at"], "{schema}");
        }
    }

    #[test]
    fn a_schema_that_cannot_be_read_to_its_end_makes_every_argument_a_possible_path() {
        let many: Vec<Value> = (0..VISITS_MAX + 1)
            .map(|_| json!({"type": "string"}))
            .collect();
        for schema in [
            json!({"properties": {"at": {"anyOf": many}}}),
            json!({"$ref": "https://elsewhere.example/schema.json"}),
            json!({"patternProperties": {"(?=a)": {"format": "path"}}}),
        ] {
            assert_eq!(paths(&schema, &["at", "text"]), ["at", "text"]);
        }
    }

    #[test]
    fn schemas_that_refer_to_themselves_are_walked_once() {
        let schema = json!({
            "properties": {"node": {"$ref": "#"}, "next": {"$ref": "#/properties/node"}, "at": {"format": "path"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            "allOf": [{"$ref": "#/$defs/a"}]
        });
        assert_eq!(paths(&schema, &["at", "next", "node", "text"]), ["at"]);
    }

    #[test]
    fn values_in_a_schema_are_no_schemas() {
        let schema = json!({"properties": {
            "text": {"default": {"format": "path"}, "enum": [{"format": "path"}], "title": "format: path"},
            "format": {"type": "string"}
        }});
        assert_eq!(paths(&schema, &["text", "format"]), Vec::<String>::new());
    }

    #[test]
    fn a_tool_that_is_listed_twice_has_the_paths_of_both_definitions() {
        let mut schemas = PathSchemas::default();
        schemas.learn("t", &json!({"properties": {"at": {"format": "path"}}}));
        schemas.learn(
            "t",
            &json!({"properties": {"at": {}, "to_do": {"format": "path"}}}),
        );
        assert!(schemas.says_path("t", "at"));
        assert!(schemas.says_path("t", "to_do"));
        schemas.learn(
            "t",
            &json!({"properties": {"text": {}}, "additionalProperties": {"format": "path"}}),
        );
        assert!(schemas.says_path("t", "other"));
        assert!(!schemas.says_path("t", "text"));
        schemas.forget();
        assert!(!schemas.has("t"));
        assert!(!schemas.says_path("t", "at"));
    }
}
