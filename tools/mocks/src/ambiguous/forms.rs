//! The forms: each makes one frame of a call.

use super::random::SeededRandom;

/// A call and what is hidden in it.
#[derive(Debug, Clone)]
pub struct HiddenCall {
    /// The id of the call.
    pub id: u64,
    /// The path that the policy allows.
    pub path: String,
    /// A path that the policy denies.
    pub denied: String,
}

impl HiddenCall {
    /// The tool that the policy allows.
    pub const TOOL: &'static str = "read_note";
    /// The tool that it denies.
    pub const DENIED_TOOL: &'static str = "delete_note";
    /// Below which paths are allowed.
    pub const ALLOWED: &'static str = "/notes/open";
    /// Below which they are denied.
    pub const DENIED: &'static str = "/notes/secret";

    pub(super) fn new(id: u64) -> Self {
        Self {
            id,
            path: format!("{}/{id}.txt", Self::ALLOWED),
            denied: format!("{}/{id}.txt", Self::DENIED),
        }
    }

    fn arguments(&self) -> String {
        format!(r#"{{"path":"{}"}}"#, self.path)
    }

    fn denied_arguments(&self) -> String {
        format!(r#"{{"path":"{}"}}"#, self.denied)
    }

    fn params(&self) -> String {
        params(Self::TOOL, &self.arguments())
    }

    fn denied_params(&self) -> String {
        params(Self::DENIED_TOOL, &self.denied_arguments())
    }

    /// Returns the whole call, with further members before and after its own.
    fn with(&self, before: &str, params: &str, after: &str) -> String {
        let id = self.id;
        format!(
            r#"{{{before}"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}{after}}}"#
        )
    }

    fn plain(&self, params: &str) -> String {
        self.with("", params, "")
    }

    /// Returns a call with other arguments.
    fn arguing(&self, arguments: &str) -> Vec<u8> {
        self.plain(&params(Self::TOOL, arguments)).into_bytes()
    }

    /// Returns the denied call as a message of its own.
    fn denied_call(&self) -> String {
        self.plain(&self.denied_params())
    }
}

fn params(tool: &str, arguments: &str) -> String {
    format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#)
}

/// Returns a spelling of `name` that a folding reader takes for it.
fn alike(name: &str, random: &mut SeededRandom) -> String {
    let upper = |c: char| c.to_uppercase().to_string();
    match random.below(5) {
        0 => name.to_uppercase(),
        1 => {
            let mut rest = name.chars();
            rest.next().map_or_else(String::new, upper) + rest.as_str()
        }
        2 if name.contains('s') => name.replacen('s', "\u{17f}", 1),
        2 if name.contains('k') => name.replacen('k', "\u{212a}", 1),
        3 => format!("_{name}"),
        _ => {
            let at = random.below(name.len());
            let spelled = name.char_indices();
            spelled
                .map(|(i, c)| if i == at { upper(c) } else { c.to_string() })
                .collect()
        }
    }
}

/// Returns a member that a folding reader takes for `name`, before or after the true one.
fn beside(call: &HiddenCall, name: &str, value: &str, random: &mut SeededRandom) -> Vec<u8> {
    let other = alike(name, random);
    if random.coin() {
        call.with(&format!(r#""{other}":{value},"#), &call.params(), "")
    } else {
        call.with("", &call.params(), &format!(r#","{other}":{value}"#))
    }
    .into_bytes()
}

/// As [`beside`], in `params`.
fn beside_param(call: &HiddenCall, name: &str, value: &str, random: &mut SeededRandom) -> Vec<u8> {
    let other = alike(name, random);
    let (tool, arguments) = (HiddenCall::TOOL, call.arguments());
    let params = if random.coin() {
        format!(r#"{{"{other}":{value},"name":"{tool}","arguments":{arguments}}}"#)
    } else {
        format!(r#"{{"name":"{tool}","arguments":{arguments},"{other}":{value}}}"#)
    };
    call.plain(&params).into_bytes()
}

/// Returns a control message of the protocol that hides the denied call.
fn ping(call: &HiddenCall, members: &str) -> Vec<u8> {
    let id = call.id;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"{members}}}"#).into_bytes()
}

/// Progress under a token that follows the name of the server `s`, with the denied call in it.
fn token(call: &HiddenCall, begin: &str, end: &str) -> Vec<u8> {
    let token = serde_json::Value::from(format!("s:{begin}{}{end}", call.denied_call()));
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
    )
    .into_bytes()
}

/// A form: its name, and what makes a frame of a call.
pub(super) type Form = (&'static str, fn(&HiddenCall, &mut SeededRandom) -> Vec<u8>);

fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

/// All forms. Those with the prefix `plain` hide nothing.
pub(super) const FORMS: &[Form] = &[
    ("plain", |c, _| c.plain(&c.params()).into_bytes()),
    ("plain, white space", |c, r| {
        super::dress::dress(&c.plain(&c.params()), r).into_bytes()
    }),
    ("plain, escapes", |c, r| {
        super::dress::dress(&c.plain(&c.params()), r).into_bytes()
    }),
    ("plain, carriage return at the end", |c, _| {
        (c.plain(&c.params()) + "\r").into_bytes()
    }),
    ("plain, params first", |c, _| {
        let (id, params) = (c.id, c.params());
        format!(r#"{{"params":{params},"method":"tools/call","id":{id},"jsonrpc":"2.0"}}"#)
            .into_bytes()
    }),
    ("plain, arguments first", |c, _| {
        let (tool, arguments) = (HiddenCall::TOOL, c.arguments());
        c.plain(&format!(r#"{{"arguments":{arguments},"name":"{tool}"}}"#))
            .into_bytes()
    }),
    ("plain, text id", |c, _| {
        c.plain(&c.params())
            .replacen(
                &format!(r#""id":{}"#, c.id),
                &format!(r#""id":"t-{}""#, c.id),
                1,
            )
            .into_bytes()
    }),
    ("plain, unknown member of the message", |c, r| {
        let value = r.of(&["1", "null", "{}", r#"{"method":"x"}"#, r#""y""#]);
        c.with(&format!(r#""vendor":{value},"#), &c.params(), "")
            .into_bytes()
    }),
    ("plain, progress token", |c, _| {
        let (tool, arguments, id) = (HiddenCall::TOOL, c.arguments(), c.id);
        c.plain(&format!(
            r#"{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":{id}}}}}"#
        ))
        .into_bytes()
    }),
    ("plain, vendor member of _meta", |c, _| {
        let (tool, arguments) = (HiddenCall::TOOL, c.arguments());
        c.plain(&format!(
            r#"{{"_meta":{{"vendor/x":[1]}},"name":"{tool}","arguments":{arguments}}}"#
        ))
        .into_bytes()
    }),
    ("plain, second argument", |c, r| {
        let value = r.of(&[
            "a",
            "é😀",
            "a\\nb\\tc",
            "\u{85}\u{2028}\u{2029}",
            "\\u2028",
            "a\\\\b\\\"c",
            "\u{7f}",
            "\\u0000",
        ]);
        c.arguing(&format!(r#"{{"text":"{value}","path":"{}"}}"#, c.path))
    }),
    ("plain, number argument", |c, r| {
        let value = r.of(&["1", "1.0", "-0", "1e2", "2.5E-3", "9007199254740993"]);
        c.arguing(&format!(r#"{{"path":"{}","count":{value}}}"#, c.path))
    }),
    ("plain, nested unknown argument", |c, _| {
        c.arguing(&format!(
            r#"{{"path":"{}","more":{{"a":[{{"b":1}},null,true]}}}}"#,
            c.path
        ))
    }),
    ("plain, line separators around an inner message", |c, _| {
        let inner = c.denied_call().replace('"', "\\\"");
        c.arguing(&format!(
            "{{\"path\":\"{}\",\"text\":\"\u{2028}{inner}\u{85}\"}}",
            c.path
        ))
    }),
    ("plain, name of the tool escaped", |c, _| {
        c.plain(&params(r"read\u005fnote", &c.arguments()))
            .into_bytes()
    }),
    ("method beside ping", |c, r| {
        let (other, name, params) = (alike("method", r), alike("params", r), c.denied_params());
        ping(
            c,
            &format!(r#","{other}":"tools/call","{name}":{params},"params":{params}"#),
        )
    }),
    ("method beside ping, params as they are", |c, r| {
        let other = alike("method", r);
        ping(
            c,
            &format!(r#","params":{},"{other}":"tools/call""#, c.denied_params()),
        )
    }),
    ("method beside", |c, r| {
        beside(c, "method", r#""tools/list""#, r)
    }),
    ("params beside", |c, r| {
        beside(c, "params", &c.denied_params(), r)
    }),
    ("id beside", |c, r| beside(c, "id", "3", r)),
    ("jsonrpc beside", |c, r| beside(c, "jsonrpc", r#""2.0""#, r)),
    ("result beside", |c, r| beside(c, "result", "{}", r)),
    ("tool beside", |c, r| {
        beside_param(c, "name", &quote(HiddenCall::DENIED_TOOL), r)
    }),
    ("arguments beside", |c, r| {
        beside_param(c, "arguments", &c.denied_arguments(), r)
    }),
    ("_meta beside", |c, r| {
        beside_param(c, "_meta", r#"{"progressToken":1}"#, r)
    }),
    ("path beside", |c, r| {
        let other = alike("path", r);
        let (path, denied) = (&c.path, &c.denied);
        c.arguing(&if r.coin() {
            format!(r#"{{"{other}":"{denied}","path":"{path}"}}"#)
        } else {
            format!(r#"{{"path":"{path}","{other}":"{denied}"}}"#)
        })
    }),
    ("path only alike", |c, r| {
        let other = alike("path", r);
        c.arguing(&format!(r#"{{"{other}":"{}"}}"#, c.denied))
    }),
    ("method twice", |c, _| {
        ping(
            c,
            &format!(r#","method":"tools/call","params":{}"#, c.denied_params()),
        )
    }),
    ("method twice, escaped", |c, _| {
        ping(
            c,
            &format!(
                r#","m\u0065thod":"tools/call","params":{}"#,
                c.denied_params()
            ),
        )
    }),
    ("params twice", |c, r| {
        let first = r.coin();
        let (a, b) = if first {
            (c.params(), c.denied_params())
        } else {
            (c.denied_params(), c.params())
        };
        c.with(&format!(r#""params":{a},"#), &b, "").into_bytes()
    }),
    ("tool twice", |c, _| {
        let (tool, denied, arguments) = (HiddenCall::TOOL, HiddenCall::DENIED_TOOL, c.arguments());
        c.plain(&format!(
            r#"{{"name":"{tool}","name":"{denied}","arguments":{arguments}}}"#
        ))
        .into_bytes()
    }),
    ("path twice", |c, _| {
        c.arguing(&format!(
            r#"{{"path":"{}","p\u0061th":"{}"}}"#,
            c.path, c.denied
        ))
    }),
    ("carriage returns around an inner call in a ping", |c, _| {
        ping(c, &format!(",\"params\":{{\"x\":\r{}\r}}", c.denied_call()))
    }),
    ("carriage returns around an inner call", |c, _| {
        let (tool, arguments, inner) = (HiddenCall::TOOL, c.arguments(), c.denied_call());
        c.plain(&format!(
            "{{\"name\":\"{tool}\",\"arguments\":{arguments},\"x\":\r{inner}\r}}"
        ))
        .into_bytes()
    }),
    ("carriage returns around an inner call in _meta", |c, r| {
        let blank = r.of(&["\r", "\r\r", "\r \r"]);
        ping(
            c,
            &format!(
                ",\"params\":{{\"_meta\":{{\"x\":{blank}{}{blank}}}}}",
                c.denied_call()
            ),
        )
    }),
    ("other line ends around an inner call", |c, r| {
        let end = r.of(&[
            "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}",
        ]);
        ping(
            c,
            &format!(",\"params\":{{\"x\":{end}{}{end}}}", c.denied_call()),
        )
    }),
    ("newline and a second call", |c, _| {
        (c.plain(&c.params()) + "\n" + &c.denied_call()).into_bytes()
    }),
    ("second call behind", |c, _| {
        (c.plain(&c.params()) + &c.denied_call()).into_bytes()
    }),
    ("batch", |c, _| {
        format!("[{},{}]", c.plain(&c.params()), c.denied_call()).into_bytes()
    }),
    ("byte order mark", |c, _| {
        format!("\u{feff}{}", c.denied_call()).into_bytes()
    }),
    ("nul behind", |c, _| {
        (c.plain(&c.params()) + "\0" + &c.denied_call()).into_bytes()
    }),
    ("comment", |c, _| {
        c.denied_call().replacen(',', "/*,*/,", 1).into_bytes()
    }),
    ("single quotes", |c, _| {
        c.denied_call().replace('"', "'").into_bytes()
    }),
    ("comma at the end", |c, _| {
        c.with("", &c.denied_params(), ",").into_bytes()
    }),
    ("not a number", |c, _| {
        c.arguing(&format!(r#"{{"path":"{}","x":NaN}}"#, c.denied))
    }),
    ("leading zero", |c, _| {
        c.denied_call()
            .replacen(r#""id":"#, r#""id":0"#, 1)
            .into_bytes()
    }),
    ("lone surrogate", |c, r| {
        let half = r.of(&["\\ud800", "\\udfff", "\\ud800\\u0041"]);
        c.arguing(&format!(r#"{{"path":"{}{half}"}}"#, c.denied))
    }),
    ("lone surrogate in a name", |c, _| {
        c.with(r#""\ud800method":"x","#, &c.denied_params(), "")
            .into_bytes()
    }),
    ("not utf-8", |c, _| {
        let call = c.denied_call();
        let (head, tail) = call.split_at(call.len() - 5);
        [head.as_bytes(), b"\xff\xc0\xaf", tail.as_bytes()].concat()
    }),
    ("control character in a string", |c, _| {
        c.arguing(&format!("{{\"path\":\"{}\u{1}\"}}", c.denied))
    }),
    ("denied tool", |c, _| c.denied_call().into_bytes()),
    ("denied path", |c, _| c.arguing(&c.denied_arguments())),
    ("denied path, up and down", |c, r| {
        let step = r.of(&[
            "/../secret/",
            "/./../secret/",
            "//..//secret/",
            "/x/../../secret/",
        ]);
        c.arguing(&format!(
            r#"{{"path":"{}{step}{}.txt"}}"#,
            HiddenCall::ALLOWED,
            c.id
        ))
    }),
    ("denied path in a list", |c, _| {
        c.arguing(&format!(r#"{{"path":["{}"]}}"#, c.denied))
    }),
    ("arguments as text", |c, _| {
        c.arguing(&quote(&c.denied_arguments().replace('"', "\\\"")))
    }),
    ("path as text of an object", |c, _| {
        c.arguing(&format!(
            r#"{{"path":"{}"}}"#,
            c.denied_arguments().replace('"', "\\\"")
        ))
    }),
    ("params as a list", |c, _| {
        c.plain(&format!("[{}]", c.denied_params())).into_bytes()
    }),
    ("call without an id", |c, _| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{}}}"#,
            c.denied_params()
        )
        .into_bytes()
    }),
    ("id null", |c, _| {
        c.denied_call()
            .replacen(&format!(r#""id":{}"#, c.id), r#""id":null"#, 1)
            .into_bytes()
    }),
    ("no jsonrpc", |c, _| {
        c.denied_call()
            .replacen(r#""jsonrpc":"2.0","#, "", 1)
            .into_bytes()
    }),
    ("other jsonrpc", |c, r| {
        let version = r.of(&["2.0", "\"2\"", "\"1.0\"", "null"]);
        c.denied_call().replacen("\"2.0\"", version, 1).into_bytes()
    }),
    ("method in other case", |c, r| {
        let method = r.of(&[
            "Tools/Call",
            "tools/Call",
            "tools/call ",
            "tools\\u0000/call",
            "tools//call",
        ]);
        c.denied_call()
            .replacen("tools/call", method, 1)
            .into_bytes()
    }),
    ("tool in other case", |c, r| {
        let tool = r.of(&[
            "Delete_Note",
            "delete_note ",
            "delete-note",
            "delete_note\\u0000",
        ]);
        c.plain(&params(tool, &c.denied_arguments())).into_bytes()
    }),
    ("token with a call between line feeds", |c, _| {
        token(c, "[\n", "\n]")
    }),
    ("token with a call between carriage returns", |c, _| {
        token(c, "[\r", "\r]")
    }),
    ("token with a call in it", |c, r| {
        let begin = r.of(&["\n", "1\n", "\"x\"\r\n", "[\u{85}", "{\"x\":\u{2028}"]);
        let end = match begin.chars().next() {
            Some('[') => "]",
            Some('{') => "}",
            _ => "",
        };
        token(c, begin, end)
    }),
    ("request and response", |c, _| {
        c.with(r#""result":{},"#, &c.denied_params(), "")
            .into_bytes()
    }),
];
