//! Any text as a path, and a path in any wrapping: no panic, tidy places, and a place that stands there is reached.
#![no_main]

use gate::paths::canonical::lexical;
use gate::paths::reach::{Reader, Text};
use gate::paths::view::Link;
use gate::paths::{PathArgument, PathView, Role, meanings};
use libfuzzer_sys::fuzz_target;

/// Most wrappings within one another.
const WRAPPINGS_MAX: usize = 2;

/// A machine with one link.
struct Machine;

impl PathView for Machine {
    fn home(&self) -> Option<String> {
        Some("/home/u".into())
    }

    fn current_dir(&self) -> Option<String> {
        Some("/srv/work".into())
    }

    fn read_link(&self, path: &str) -> Link {
        if path == "/tmp/l" { Link::To("/srv/x".into()) } else { Link::NotALink }
    }
}

/// Every place that a string may lead to.
fn reached(text: &str, is_path: bool) -> (Vec<String>, bool) {
    let meaning = meanings(text, Some(&Machine));
    let mut places = meaning.places.clone();
    let uncertain = meaning.uncertain;
    let argument = PathArgument {
        text: text.to_owned(),
        role: if is_path { Role::Path } else { Role::Shape },
        content: false,
        meaning,
    };
    let known = [argument];
    let mut reader = Reader::new(&known, Some(&Machine));
    reader.take(Text { text, key: if is_path { "path" } else { "x" }, is_path, is_content: false });
    let reach = reader.done(false);
    for place in &reach.places {
        assert!(place.starts_with('/'), "{place:?} of {text:?}");
        assert_eq!(lexical(place), *place, "of {text:?}");
    }
    places.extend(reach.every_place().map(str::to_owned));
    (places, uncertain || reach.unread)
}

/// The same place in another spelling.
fn wrapped(text: &str, how: u8) -> String {
    let quoted = || serde_json::Value::from(text).to_string();
    match how % 12 {
        0 => quoted(),
        1 => format!("[{}]", quoted()),
        2 => format!("{{\"a\":{}}}", quoted()),
        3 => format!("'{text}'"),
        4 => format!("--file={text}"),
        5 => format!("@{text}"),
        6 => format!("file://{text}"),
        7 => text.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        8 => format!(" {text}\n"),
        9 => format!("/srv/other\n{text}"),
        10 => format!("\u{200b}{text}"),
        _ => format!("x=1&url={text}"),
    }
}

/// A path of ordinary names below `/srv/secret`.
fn path(bytes: &[u8]) -> String {
    const PARTS: [&str; 8] = ["a", "b.txt", ".", "..", "", "secret", "x-1", ".k"];
    let mut path = String::from("/srv");
    for byte in bytes.iter().take(8) {
        path.push('/');
        path.push_str(PARTS[usize::from(*byte) % PARTS.len()]);
    }
    path + "/end"
}

fuzz_target!(|input: (bool, [u8; WRAPPINGS_MAX], u8, &str)| {
    let (is_path, wrappings, count, text) = input;
    assert_eq!(reached(text, is_path), reached(text, is_path));
    let remote = meanings(text, None);
    let is_plain = text.starts_with('/') && !text.contains('\0');
    if is_plain && !remote.uncertain {
        assert!(remote.places.contains(&lexical(text)), "{text:?}: {remote:?}");
    }

    let path = path(text.as_bytes());
    let count = usize::from(count) % (WRAPPINGS_MAX + 1);
    let spelled = wrappings
        .iter()
        .take(count)
        .fold(path.clone(), |text, how| wrapped(&text, *how));
    let (places, unread) = reached(&spelled, is_path);
    assert!(unread || places.contains(&lexical(&path)), "{spelled:?}: {places:?}");
});
