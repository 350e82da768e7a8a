//! Generated spellings of generated paths: what a server opens is what was judged, wherever links, `..` and `/proc` lead.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::support::guarded::{LATEST, Place, end};

/// Opens what its only argument says, and tells where that was. It holds the secret folder open as descriptor 9.
const SERVER: &str = r#"
import json, os, sys
os.dup2(os.open(sys.argv[1], os.O_RDONLY), 9)
STRING = {"type": "string"}
TOOL = {"name": "read_file", "inputSchema": {"type": "object", "properties": {"path": STRING, "x": STRING}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"tools": [TOOL]}
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    if asked["method"] == "tools/call":
        try:
            opened = os.open(*asked["params"]["arguments"].values(), os.O_PATH)
            text = os.readlink(f"/proc/self/fd/{opened}")
            os.close(opened)
        except OSError:
            text = "nothing"
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

const FOLDERS: [&str; 6] = ["", "/open", "/open/a", "/secret", "/secret/k", "/mid"];
const CALLS: usize = 400;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }

    fn of<'t, T>(&mut self, these: &'t [T]) -> &'t T {
        &these[self.below(these.len())]
    }
}

struct Tree {
    root: String,
    /// Everything that is there, links included.
    all: Vec<String>,
}

impl Tree {
    fn new(root: String, random: &mut Random) -> Self {
        let mut all = Vec::new();
        for folder in FOLDERS {
            let folder = format!("{root}{folder}");
            fs::create_dir_all(&folder).unwrap();
            for name in [
                "f", "sp ace", "tab\tx", "é", "e\u{301}", "%2e%2e", "a,b", "c(d)",
            ] {
                fs::write(format!("{folder}/{name}"), "").unwrap();
                all.push(format!("{folder}/{name}"));
            }
            all.push(folder);
        }
        let mut tree = Self { root, all };
        for number in 0..40 {
            tree.link(&format!("l{number}"), random);
        }
        tree
    }

    /// Makes a link somewhere, or leads one elsewhere.
    fn link(&mut self, name: &str, random: &mut Random) {
        let place = format!("{}{}/{name}", self.root, random.of(&FOLDERS));
        let to = random.of(&self.all).clone();
        let to = match random.below(8) {
            0 => "/proc/self/fd/9".to_owned(),
            1 => format!("/proc/self/cwd/../secret/{name}"),
            2 => format!("/proc/thread-self/root{to}"),
            3 => format!("{to}/../secret"),
            4 => name.to_owned(),
            5 => format!("..{}", to.strip_prefix(&self.root).unwrap()),
            _ => to,
        };
        let _ = fs::remove_file(&place);
        symlink(to, &place).unwrap();
        self.all.push(place);
    }

    fn spelling(&self, random: &mut Random) -> String {
        let path = random.of(&self.all);
        let below = path.strip_prefix(&self.root).unwrap();
        let up = random.of(&["..", "./..", "../mid/.."]);
        match random.below(14) {
            0 => format!("/proc/self/cwd/..{below}"),
            1 => format!("/proc/self/attr/../cwd/{up}{below}"),
            2 => format!("/proc/self/fd/9/{up}{below}"),
            3 => format!("/proc/self/task/../fd/9/..{below}"),
            4 => format!("/proc/thread-self/root{path}"),
            5 => format!("/dev/fd/9/..{below}"),
            6 => format!("{path}/{up}/f"),
            7 => path.replace('/', "//./"),
            8 => format!("{path}/"),
            9 => format!("{}/open/../secret/..{below}", self.root),
            10 => path.replace('é', "e\u{301}"),
            11 | 12 => format!("{up}{below}"),
            _ => path.clone(),
        }
    }
}

/// Calls with these rules; how many were let through, and each of those that may not have been.
fn opened(rules: &str, may: impl Fn(&str) -> bool, seed: u64) -> (usize, Vec<String>) {
    let (place, mut random) = (Place::new(), Random(seed));
    let dir: PathBuf = place.path("tree");
    fs::create_dir(&dir).unwrap();
    let root = dir.canonicalize().unwrap().to_str().unwrap().to_owned();
    let mut tree = Tree::new(root.clone(), &mut random);
    fs::write(place.path("server.py"), SERVER).unwrap();
    place.write_policy(&rules.replace("ROOT", &root));
    let script = place.path("server.py").display().to_string();
    let words = json!({ "command": "python3", "args": [script, format!("{root}/secret")], "cwd": format!("{root}/mid") });
    let text = json!({ "servers": { "p": words } }).to_string();
    fs::write(place.path("durward.yaml"), text).unwrap();
    let mut client = place.guard_configured("durward.yaml", &[], "p");
    client.handshake(LATEST).unwrap();
    let (mut passed, mut wrong) = (0, Vec::new());
    for _ in 0..CALLS {
        if random.below(8) == 0 {
            let name = format!("l{}", random.below(40));
            tree.link(&name, &mut random);
        }
        let path = tree.spelling(&mut random);
        let key = *random.of(&["path", "path", "x"]);
        let reply = client.call_tool("read_file", json!({ key: path })).unwrap();
        if reply.is_tool_error() || reply.error().is_some() {
            continue;
        }
        let real = reply.text().unwrap();
        passed += usize::from(real != "nothing");
        let below = real.strip_prefix(&root).unwrap_or(real);
        if real != "nothing" && !may(below) {
            wrong.push(format!("{key} {path:?} is {real}"));
        }
    }
    end(client);
    (passed, wrong)
}

#[test]
fn what_a_server_opens_is_what_was_judged() {
    const ALL: &str = r#"{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}"#;
    let denying = format!(
        r#"{{"rules":[{ALL},{{"id":"no","effect":"deny","conditions":{{"path_pattern":"ROOT/secret/**"}}}}]}}"#
    );
    let allowing = r#"{"rules":[{"id":"some","effect":"allow","conditions":{"path_pattern":"ROOT/open/**"}}]}"#;
    let is_in = |folder: &str, place: &str| {
        let below = place.strip_prefix(folder);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    for seed in [1, 2] {
        let (passed, wrong) = opened(&denying, |place| !is_in("/secret", place), seed);
        assert!(
            passed > CALLS / 10 && wrong.is_empty(),
            "{seed} {passed}: {wrong:#?}"
        );
        let (passed, wrong) = opened(allowing, |place| is_in("/open", place), seed);
        assert!(
            passed > CALLS / 40 && wrong.is_empty(),
            "{seed} {passed}: {wrong:#?}"
        );
    }
}
