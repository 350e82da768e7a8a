//! What the network of a host looks like: tools that run a few known commands and read their JSON.

mod compare;
mod definitions;

pub(super) use definitions::definitions;

use serde_json::{Map, Value, json};
use toolkit::server::{Answer, Args, Failure, Unfit};

use super::Tool;
use crate::end::End;
use crate::sessions::Session;
use crate::upstream::Ended;

/// Most characters of a packet filter's rules in an answer.
const RULES_CHARS_MAX: usize = 64 * 1024;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The commands of a call.
pub(super) fn argvs(tool: Tool, args: Args<'_>) -> Result<Vec<Vec<String>>, Unfit> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let interface = named(args, "interface", "@._-")?;
    Ok(match tool {
        Tool::Interfaces => {
            let mut all = vec![words(&["ip", "-j", "addr", "show"])];
            if args.is_set("include_stats") {
                all.push(words(&["ip", "-j", "-s", "link", "show"]));
            }
            for argv in &mut all {
                argv.extend(interface.map(str::to_owned));
            }
            all
        }
        Tool::Routes => {
            let table = named(args, "table", "._-")?.unwrap_or("main");
            let families = match text("family") {
                Some("inet") => &["-4"][..],
                Some("inet6") => &["-6"],
                _ => &["-4", "-6"],
            };
            let of = |family: &&str| words(&["ip", family, "-j", "route", "show", "table", table]);
            families.iter().map(of).collect()
        }
        Tool::Firewall => {
            let table = named(args, "table", "._-")?;
            let mut iptables = words(&["iptables"]);
            if let Some(table) = table {
                iptables.extend(words(&["-t", table]));
            }
            iptables.extend(words(&["-L", "-n", "-v"]));
            let nft = words(&["nft", "-j", "list", "ruleset"]);
            match text("format") {
                Some("nft") => vec![nft],
                Some("iptables") => vec![iptables],
                _ => vec![nft, iptables],
            }
        }
        Tool::Qdisc => {
            let mut argv = words(&["tc", "-j"]);
            if args.is_set("include_stats") {
                argv.push("-s".into());
            }
            argv.extend(words(&["qdisc", "show"]));
            argv.extend(interface.into_iter().flat_map(|name| words(&["dev", name])));
            vec![argv]
        }
        Tool::Connectivity => {
            let target = named(args, "target", ".-_:")?
                .ok_or_else(|| Unfit::member("target", "is required"))?;
            let (count, hops) = (
                args.count("ping_count")?.to_string(),
                args.count("traceroute_hops")?.to_string(),
            );
            let of = |test: &str| match test {
                "ping" => words(&["ping", "-c", &count, target]),
                "dns" => words(&["dig", "+short", target]),
                _ => words(&["traceroute", "-m", &hops, target]),
            };
            tests(args).into_iter().map(of).collect()
        }
        Tool::Compare => compare::argvs(scope(args)),
        _ => Vec::new(),
    })
}

fn tests(args: Args<'_>) -> Vec<&str> {
    let listed = args.get("tests").and_then(Value::as_array);
    let mut tests: Vec<&str> = Vec::new();
    for test in listed.into_iter().flatten().filter_map(Value::as_str) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    tests
}

fn scope(args: Args<'_>) -> &'static str {
    match args.get("scope").and_then(Value::as_str) {
        Some("interfaces") => "interfaces",
        Some("routes") => "routes",
        _ => "all",
    }
}

/// An argument that is a name, of letters, digits and these.
fn named<'a>(args: Args<'a>, member: &str, beside: &str) -> Result<Option<&'a str>, Unfit> {
    let Some(name) = args.get(member).and_then(Value::as_str) else {
        return Ok(None);
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || beside.contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        let wrong = format!("must be a name of letters, digits and {beside}");
        return Err(Unfit::member(member, wrong));
    }
    Ok(Some(name))
}

/// The answer of a tool, from what its commands came to, in their order.
pub(crate) fn answer(
    tool: Tool,
    args: Args<'_>,
    session: &Session,
    ended: Vec<Result<Ended, Failure>>,
) -> Result<Answer, Failure> {
    let mut all = ended.into_iter();
    let mut next = || {
        all.next()
            .unwrap_or_else(|| Err(Failure::new("internal", "a command is missing")))
    };
    let data = match tool {
        Tool::Interfaces => {
            let mut data = Map::from_iter([
                ("format".to_owned(), json!("json")),
                ("interfaces".to_owned(), read(&next()?)?),
            ]);
            if args.is_set("include_stats") {
                data.insert("stats".into(), read(&next()?)?);
            }
            Value::Object(data)
        }
        Tool::Routes => {
            let family = args.get("family").and_then(Value::as_str).unwrap_or("all");
            let mut routes = Map::new();
            for (wanted, name) in [("inet", "ipv4"), ("inet6", "ipv6")] {
                if family == wanted || family == "all" {
                    routes.insert(name.into(), read(&next()?)?);
                }
            }
            let table = args.get("table").cloned().unwrap_or_else(|| json!("main"));
            json!({"routes": routes, "table": table, "format": "json"})
        }
        Tool::Firewall => firewall(args, &mut next)?,
        Tool::Qdisc => json!({"format": "json", "qdiscs": read(&next()?)?}),
        Tool::Connectivity => {
            let results: Map<String, Value> = tests(args)
                .into_iter()
                .map(|test| (test.to_owned(), tested(next())))
                .collect();
            json!({"results": results, "target": args.get("target")})
        }
        Tool::Compare => {
            let read: Result<Vec<Value>, Failure> = compare::argvs(scope(args))
                .iter()
                .map(|_| read(&next()?))
                .collect();
            compare::compared(
                scope(args),
                args.is_set("save_baseline"),
                read?,
                &session.baselines,
            )
        }
        _ => {
            return Err(Failure::new(
                "internal",
                "this tool is not one of the network's",
            ));
        }
    };
    Ok(Answer::data(data))
}

fn firewall(
    args: Args<'_>,
    next: &mut impl FnMut() -> Result<Ended, Failure>,
) -> Result<Value, Failure> {
    let format = args.get("format").and_then(Value::as_str).unwrap_or("auto");
    let table = args.get("table").cloned().unwrap_or(Value::Null);
    let mut why = None;
    if format != "iptables" {
        match next().and_then(|ended| read(&ended)) {
            Ok(ruleset) => {
                let kept = of_table(ruleset, table.as_str());
                let has_table = count(&kept, "table") > 0;
                if format == "nft" || has_table {
                    let summary = json!({"tables": count(&kept, "table"), "chains": count(&kept, "chain"), "rules": count(&kept, "rule")});
                    if args.is_set("summary") {
                        return Ok(json!({"format": "nft", "table": table, "summary": summary}));
                    }
                    if kept.to_string().chars().count() > RULES_CHARS_MAX {
                        return Ok(
                            json!({"format": "nft", "table": table, "summary": summary, "truncated": true}),
                        );
                    }
                    return Ok(
                        json!({"format": "nft", "table": table, "summary": summary, "ruleset": kept}),
                    );
                }
            }
            Err(failure) if format == "nft" => return Err(failure),
            Err(failure) => why = Some(failure),
        }
    }
    let ended = next()?;
    if let Err(failure) = succeeded(&ended) {
        // Both are missing or forbidden: what was asked first says it.
        return Err(why.unwrap_or(failure));
    }
    let text = String::from_utf8_lossy(&ended.stdout.bytes);
    let chains = text
        .lines()
        .filter(|line| line.starts_with("Chain "))
        .count();
    let headed = text
        .lines()
        .filter(|line| line.trim_start().starts_with("pkts "))
        .count();
    let rules = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count()
        .saturating_sub(chains + headed);
    let mut data = json!({"format": "iptables", "table": table, "summary": {"chains": chains, "rules": rules}});
    if !args.is_set("summary")
        && let Some(members) = data.as_object_mut()
    {
        let kept: String = text.chars().take(RULES_CHARS_MAX).collect();
        members.insert("truncated".into(), (kept.len() < text.len()).into());
        members.insert("rules".into(), kept.into());
    }
    Ok(data)
}

/// The parts of a ruleset that belong to one table.
fn of_table(mut ruleset: Value, table: Option<&str>) -> Value {
    if let (Some(table), Some(parts)) = (
        table,
        ruleset.get_mut("nftables").and_then(Value::as_array_mut),
    ) {
        parts.retain(|part| {
            let about = part.as_object().and_then(|part| part.iter().next());
            about.is_some_and(|(kind, about)| {
                let named = if kind == "table" {
                    about.get("name")
                } else {
                    about.get("table")
                };
                kind == "metainfo" || named.and_then(Value::as_str) == Some(table)
            })
        });
    }
    ruleset
}

fn count(ruleset: &Value, kind: &str) -> usize {
    let parts = ruleset.get("nftables").and_then(Value::as_array);
    parts.map_or(0, |parts| {
        parts.iter().filter(|part| part.get(kind).is_some()).count()
    })
}

fn tested(ended: Result<Ended, Failure>) -> Value {
    let ended = match ended {
        Ok(ended) => ended,
        Err(failure) => return json!({"error": failure.message}),
    };
    match (&ended.end, succeeded(&ended)) {
        (End::Exited(127), Err(failure)) => json!({"error": failure.message}),
        (End::Exited(code), _) => {
            let output = String::from_utf8_lossy(&ended.stdout.bytes)
                + String::from_utf8_lossy(&ended.stderr.bytes);
            json!({"output": output, "success": u8::from(*code == 0 && ended.stdout.length > 0)})
        }
        (_, Err(failure)) => json!({"error": failure.message}),
        (_, Ok(())) => json!({"error": "the server did not say how the command ended"}),
    }
}

/// The JSON that a command printed.
fn read(ended: &Ended) -> Result<Value, Failure> {
    succeeded(ended)?;
    let text = String::from_utf8_lossy(&ended.stdout.bytes);
    if text.trim().is_empty() {
        return Ok(json!([]));
    }
    serde_json::from_str(&text).map_err(|_| {
        Failure::new(
            "no_json",
            "the host's program prints no JSON; run the command itself with ssh_run_command",
        )
    })
}

/// Whether a command did well, else why not.
fn succeeded(ended: &Ended) -> Result<(), Failure> {
    super::run::answer(ended)?;
    let told = String::from_utf8_lossy(&ended.stderr.bytes)
        .trim()
        .to_owned();
    let has = |text: &str| told.to_lowercase().contains(text);
    match &ended.end {
        End::Exited(0) => match ended.missing {
            None => Ok(()),
            Some(missing) => Err(Failure::new(
                "output_incomplete",
                format!("not all output has come: {}", missing.about()),
            )
            .retryable()),
        },
        End::Exited(127) => Err(Failure::new(
            "no_such_program",
            format!("the program is not on this login's PATH, which may lack sbin: {told}"),
        )),
        _ if has("not permitted") || has("permission denied") || has("must be root") => {
            Err(Failure::new(
                "no_privilege",
                format!("this login has no privilege for it: {told}"),
            ))
        }
        _ => Err(Failure::new(
            "command_failed",
            format!("the command failed: {told}"),
        )),
    }
}
