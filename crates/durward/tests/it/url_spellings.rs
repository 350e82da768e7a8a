//! Spellings of one address: each that some library opens has the verdict of the plain one, whichever rule it is, and the
//! fetch server from PyPI fetches none of them behind a rule that refuses the address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{LATEST, Place, end};
use crate::support::web::{Request, Then, Web, Wire, send};

/// Opens each URL of a JSON list on standard input; prints the list of those that have the page.
const READER: &str = r#"
import json, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor
import httpx

def with_httpx(url):
    return httpx.get(url, timeout=3, follow_redirects=True).text

def with_urllib(url):
    with urllib.request.urlopen(url, timeout=3) as page:
        return page.read().decode()

def opens(url):
    try:
        return "THE-PAGE" in {"httpx": with_httpx, "urllib": with_urllib}[sys.argv[1]](url)
    except Exception:
        return False

urls = json.load(sys.stdin)
with ThreadPoolExecutor(8) as pool:
    found = [url for url, is_open in zip(urls, pool.map(opens, urls)) if is_open]
print(json.dumps(found))
"#;

/// The same for undici, Node's fetch.
const UNDICI: &str = r#"
const urls = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const open = async url => {
	try {
		return (await (await fetch(url, { signal: AbortSignal.timeout(3000) })).text()).includes('THE-PAGE');
	} catch {
		return false;
	}
};
(async () => {
	const found = [];
	for (const url of urls) if (await open(url)) found.push(url);
	console.log(JSON.stringify(found));
})();
"#;

/// Takes any call.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    result = {"content": [{"type": "text", "text": "RECEIVED"}]}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"url": {"type": "string"}}}
        result = {"tools": [{"name": n, "description": "d", "inputSchema": schema} for n in ["deny", "allow", "other", "class"]]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
"#;

const HOSTS: [&str; 32] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0x7f.0.1",
    "017700000001",
    "0177.0.0.1",
    "0177.0.1",
    "0177.0x0.1",
    "00177.00.00.01",
    "127.000.000.001",
    "0",
    "0.0.0.0",
    "127.0.0.1.",
    "127.1.",
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "local%68ost",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "ｌｏｃａｌｈｏｓｔ",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
];
/// `H` is a host, `P` the port; a tab and a line end are written as they are.
const FORMS: [&str; 26] = [
    "HTTP://H:P/public/x",
    "hTTp://H:P/public/x",
    "http://u@H:P/public/x",
    "http://u:p@H:P/public/x",
    "http://x@y@H:P/public/x",
    "http://:@H:P/public/x",
    "http://H:0P/public/x",
    "http://H:000P/public/x",
    "http:/H:P/public/x",
    "http:H:P/public/x",
    "http:///H:P/public/x",
    r"http:\\H:P\public\x",
    r"http:/\H:P/public/x",
    r"http://H:P\public\x",
    "ht\ttp://H:P/public/x",
    "http://\tH:P/public/x",
    "http://H\n:P/public/x",
    " http://H:P/public/x",
    "http://H:P/public/x\n",
    "http://H:P/public/./x",
    "http://H:P/public/../public/x",
    "http://H:P/a/%2e%2e/public/x",
    "http://H:P//public/x",
    "http://H:P/%70ublic/x",
    "http://H:P/public/x?@other.example/",
    "http://H:P/public/x#@other.example/",
];

/// Generated spellings of one address.
fn spellings(port: u16) -> Vec<String> {
    let mut all = Vec::new();
    let forms = ["http://H:P/public/x", FORMS[0], FORMS[3], FORMS[6]];
    let few = ["127.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]"];
    let pairs = HOSTS
        .iter()
        .flat_map(|host| forms.map(|form| (*host, form)));
    let more = FORMS.iter().flat_map(|form| few.map(|host| (host, *form)));
    for (host, form) in pairs.chain(more) {
        let port = port.to_string();
        // The scheme has the letters of the marks in some forms.
        let (scheme, rest) = form.split_once(':').unwrap();
        let rest = rest.replace('P', &port).replace('H', host);
        all.push(format!("{scheme}:{rest}"));
    }
    all.sort();
    all.dedup();
    all
}

fn page(_: &Request, wire: &mut dyn Wire) -> io::Result<Then> {
    send(
        wire,
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nTHE-PAGE",
        Then::Close,
    )
}

/// Runs a reader on these URLs; returns those that it opened.
fn opened_by(program: &Path, words: &[&str], urls: &[String]) -> Vec<String> {
    let mut child = Command::new(program)
        .args(words)
        .env_remove("http_proxy")
        .env_remove("HTTP_PROXY")
        .env_remove("all_proxy")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(json!(urls).to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn opened_by_curl(urls: &[String]) -> Vec<String> {
    let opens = |url: &&String| {
        let output = Command::new("curl")
            .args(["--silent", "--noproxy", "*", "--max-time", "3", "--", url])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).contains("THE-PAGE")
    };
    urls.iter().filter(opens).cloned().collect()
}

/// Which libraries open which spelling. One that is missing is named; continuous integration has them all.
fn readers(place: &Place, urls: &[String]) -> BTreeMap<&'static str, Vec<String>> {
    let mut found = BTreeMap::new();
    fs::write(place.path("reader.py"), READER).unwrap();
    let script = place.path("reader.py").display().to_string();
    if let Some(python) = components::fetch_python() {
        found.insert("httpx", opened_by(&python, &[&script, "httpx"], urls));
        found.insert("urllib", opened_by(&python, &[&script, "urllib"], urls));
    }
    if let Some(node) = components::node() {
        found.insert("undici", opened_by(&node, &["-e", UNDICI], urls));
    }
    if let Some(go) = components::go_fetcher(&place.path("fetcher")) {
        found.insert("net/http", opened_by(&go, &[], urls));
    }
    if components::installed("/usr/bin/curl") {
        found.insert("curl", opened_by_curl(urls));
    }
    found
}

/// Returns whether the rules let a call of this tool with this URL pass.
fn passes(client: &mut Client, tool: &str, url: &str) -> bool {
    let answer = client.call_tool(tool, json!({ "url": url })).unwrap();
    answer.line().contains("RECEIVED")
}

#[test]
fn each_spelling_that_a_library_opens_has_one_verdict() {
    let web = Web::start(page);
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = Place::new();
    let urls = spellings(web.port);
    assert!(urls.len() >= 100, "{}", urls.len());
    let found = readers(&place, &urls);
    let mut opened: BTreeSet<&String> = BTreeSet::new();
    for (reader, urls) in &found {
        eprintln!("{reader} opens {} of the spellings", urls.len());
        opened.extend(urls);
    }
    eprintln!("{} spellings, {} are opened", urls.len(), opened.len());
    let address = format!("http://127.0.0.1:{}", web.port);
    let rule = |id: &str, effect: &str, conditions: Value| {
        let mut conditions = conditions;
        conditions["tool_name"] = json!(id);
        json!({"id": id, "effect": effect, "conditions": conditions})
    };
    fs::write(place.path("server.py"), SERVER).unwrap();
    let python = python.display().to_string();
    let script = place.path("server.py").display().to_string();
    let guard = |rules: &Value| {
        let policy = json!({"version": "1", "default_action": "deny", "rules": rules});
        place.write_policy(&policy.to_string());
        let mut client = place.guard_command(&[], &[&python, &script]);
        client.handshake(LATEST).unwrap();
        client
    };
    // Programs from before the conditions on URLs read these rules too.
    let mut client = guard(&json!([
        rule("deny", "deny", json!({"path_pattern": format!("{address}/**")})),
        {"id": "any", "effect": "allow", "conditions": {"tool_name": "deny"}},
    ]));
    assert!(passes(&mut client, "deny", "http://good.example/x"));
    let by_path: Vec<&&String> = opened
        .iter()
        .filter(|url| passes(&mut client, "deny", url))
        .collect();
    assert!(by_path.is_empty(), "{by_path:?}");
    end(client);
    let rules = json!([
        rule("deny", "deny", json!({"url_pattern": format!("{address}/**")})),
        rule("class", "deny", json!({"address_class": ["loopback"]})),
        rule("allow", "allow", json!({"url_pattern": format!("{address}/public/**")})),
        rule("other", "allow", json!({"url_pattern": "http://good.example/**"})),
        {"id": "any", "effect": "allow", "conditions": {"tool_name": ["deny", "class"]}},
    ]);
    let mut client = guard(&rules);
    let plain = format!("{address}/public/x");
    assert!(passes(&mut client, "allow", &plain));
    assert!(passes(&mut client, "deny", "http://good.example/x"));
    let mut passed = Vec::new();
    for tool in ["deny", "class", "other"] {
        for url in &opened {
            if passes(&mut client, tool, url) {
                passed.push(format!("{tool} {url:?}"));
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
    // An allow rule takes the spellings that each library reads alike. A name is another address, octal digits are
    // decimal to some, and what a library opens only after it has mended it may be something else to another one.
    let is_plain = |url: &str| {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or_default();
        let is_web = scheme.eq_ignore_ascii_case("http") && path == "public/x";
        let is_octal = host.starts_with('0') && !host.starts_with("0x") && !host.starts_with("0X");
        let is_name = host.to_ascii_lowercase().contains("localhost");
        let is_mended = host.contains(['%', '@', '\\', '\t', '\n']);
        is_web && url.is_ascii() && !is_octal && !is_name && !is_mended
    };
    let (mut taken, mut refused) = (0, Vec::new());
    for url in &opened {
        match passes(&mut client, "allow", url) {
            true => taken += 1,
            false => refused.push(*url),
        }
    }
    eprintln!("an allow rule takes {taken} and refuses {}", refused.len());
    let plainly: Vec<&&String> = refused.iter().filter(|url| is_plain(url)).collect();
    assert!(plainly.is_empty(), "{plainly:?}");
    assert!(taken >= 60, "{taken}");
    end(client);
}

#[test]
fn the_fetch_server_fetches_no_spelling_of_a_refused_address() {
    let web = Web::start(page);
    let Some(python) = components::fetch_python() else {
        return;
    };
    let place = Place::new();
    let address = format!("http://127.0.0.1:{}/**", web.port);
    let rules = json!([
        {"id": "outside", "effect": "deny", "conditions": {"path_pattern": address}},
        {"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}},
    ]);
    let python = python.display().to_string();
    let server = [&python, "-m", "mcp_server_fetch", "--ignore-robots-txt"];
    place.write_policy(&json!({"version": "1", "rules": rules}).to_string());
    let urls = spellings(web.port);
    let mut guarded = place.guard_command(&[], &server);
    guarded.handshake(LATEST).unwrap();
    for url in &urls {
        let answer = guarded.call_tool("fetch", json!({ "url": url })).unwrap();
        let line = answer.line();
        assert!(!line.contains("THE-PAGE"), "{url:?}: {line}");
        assert_eq!(web.requests().len(), 0, "{url:?}: {line}");
    }
    end(guarded);
    let free = Place::new();
    let mut client = free.guard_command(&[], &server);
    client.handshake(LATEST).unwrap();
    let opens = |url: &&String| {
        let answer = client.call_tool("fetch", json!({ "url": url })).unwrap();
        answer.line().contains("THE-PAGE")
    };
    // Names that resolve to nothing take their time: the plain host in all forms is enough.
    let few = urls.iter().filter(|url| url.contains("127.0.0.1"));
    let opened = few.filter(opens).count();
    assert!(opened >= 8, "without a rule it fetches {opened}");
    end(client);
}
