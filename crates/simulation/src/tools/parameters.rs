//! Reading and setting parameters.

use serde_json::{Value, json};
use toolkit::server::Args;

use super::page::ListPage;
use crate::fault::Fault;
use crate::options::BridgeVersion;
use crate::service::CallContext;
use crate::session::{UpdateMode, locked};

/// Most paths of one list.
const LIST_MAX: u64 = 500;

pub(super) fn list(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let pattern = args.text("searchPattern").unwrap_or("*");
    if pattern.trim().is_empty() || pattern.contains(['\0', '\n']) {
        let wrong = "searchPattern must not be blank and holds no NUL and no line feed";
        return Err(Fault::input("searchPattern", wrong).code("value_error"));
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let loaded = locked(&shared);
    let mut paths = loaded.parameters();
    paths.retain(|path| matches(&pattern, path));
    let page = ListPage::of(args, LIST_MAX);
    let total = paths.len();
    let shown = page.of_list(paths);
    let mut answer = json!({"parameters": shown});
    if page.was_asked() || total > shown.len() {
        page.tell(&mut answer, total);
    }
    Ok(answer)
}

pub(super) fn get(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let told = locked(&shared).parameter(path(args)?)?;
    Ok(json!({"parameter": told}))
}

pub(super) fn set(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let mode = args
        .text("updateMode")
        .unwrap_or("absolute")
        .trim()
        .to_ascii_lowercase();
    let mode = match (mode.as_str(), context.service.configured.bridge) {
        ("absolute", _) => UpdateMode::Absolute,
        ("relative", BridgeVersion::V0_4_3) => UpdateMode::Multiply,
        ("relative", BridgeVersion::V0_5_0) => UpdateMode::Add,
        _ => {
            let wrong = "updateMode is absolute or relative";
            return Err(Fault::input("updateMode", wrong).code("value_error"));
        }
    };
    let shared = context.simulation(args)?;
    let unit = args
        .text("unit")
        .ok()
        .filter(|unit| !unit.trim().is_empty());
    let value = args.number("value")?;
    let told = locked(&shared).set(path(args)?, value, unit, mode, context.now_ms)?;
    Ok(json!({"parameter": told}))
}

pub(super) fn reset(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let shared = context.simulation(args)?;
    let told = locked(&shared).reset(path(args)?)?;
    Ok(json!({"parameter": told}))
}

fn path<'a>(args: Args<'a>) -> Result<&'a str, Fault> {
    let path = args.text("parameterPath")?.trim();
    if path.is_empty() {
        let wrong = "parameterPath must not be blank";
        return Err(Fault::input("parameterPath", wrong).code("value_error"));
    }
    Ok(path)
}

/// Returns whether the whole text matches: `*` is any characters, `?` is one.
pub(super) fn matches(pattern: &[char], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(t) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some('?') => (p, t) = (p + 1, t + 1),
            Some(same) if same == c => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_go_over_whole_paths() {
        for (pattern, path, expect) in [
            ("*", "a|b", true),
            ("*Weight*", "Organism|Weight", true),
            ("Organism|*", "Organism|Liver|Volume", true),
            ("**|Volume", "Organism|Liver|Volume", true),
            ("Organism|Weigh?", "Organism|Weight", true),
            ("Weight", "Organism|Weight", false),
            ("Organism", "Organism|Weight", false),
            ("*a*b*c", "xaxbxcxc", true),
            ("?", "", false),
        ] {
            let pattern: Vec<char> = pattern.chars().collect();
            assert_eq!(super::matches(&pattern, path), expect, "{pattern:?} {path}");
        }
    }
}
