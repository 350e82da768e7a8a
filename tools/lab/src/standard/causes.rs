//! Causes of a missed budget: the variant's own stages, the largest first, and the place of each.

use crate::journal::StageTimes;
use crate::overhead::{ArmFigures, OverheadAnalysis};

/// Stages below this mean are left out, in microseconds.
const SAID_US_MIN: f64 = 0.1;

/// Returns the description of a stage, or the place of its code.
fn place(stage: &str) -> &'static str {
    match stage {
        "edge" => "crates/wire, and the face that reads the frame: crates/mcp",
        "identity" => "crates/gate/src/identity",
        "limits" => "crates/gate/src/limits",
        "policy" => "crates/gate/src/policy and paths",
        "approval" => "crates/gate/src/approval",
        "journal" => "crates/gate/src/journal over crates/state/src/log",
        "upstream" => "the server itself and the way to it: crates/mcp upstream, crates/net",
        _ => "the client's own way to it, wake-ups, and what the variant does outside its stages",
    }
}

/// Returns the stages of a variant with the largest first, or why there are none.
pub(super) fn of_arm(arm: &ArmFigures) -> String {
    let Some(found) = &arm.stages else {
        let why = arm.stages_missing.as_deref();
        return why.unwrap_or("the variant keeps no journal").to_owned();
    };
    let stages = found.stages.iter();
    let mut parts: Vec<(&str, f64)> = stages
        .map(|stage| (stage.name.trim_end_matches("_us"), stage.us.point))
        .collect();
    parts.push(("unexplained", found.unexplained_us.point));
    format!(
        "of {:.1} µs in the mean: {}",
        found.outside_us.point,
        list_causes(parts)
    )
}

/// What of a call grew from one variant to another, the largest first.
pub(super) fn between(before: &ArmFigures, after: &ArmFigures) -> String {
    let (Some(one), Some(other)) = (&before.stages, &after.stages) else {
        return of_arm(after);
    };
    let pairs = one.stages.iter().zip(&other.stages);
    let mut parts: Vec<(&str, f64)> = pairs
        .map(|(a, b)| (a.name.trim_end_matches("_us"), b.us.point - a.us.point))
        .collect();
    let rest = other.unexplained_us.point - one.unexplained_us.point;
    parts.push(("unexplained", rest));
    format!("more than without: {}", list_causes(parts))
}

/// Returns the named variant of a measurement.
pub(super) fn in_analysis(analysis: &OverheadAnalysis, arm: &str) -> Option<String> {
    let mut arms = analysis.arms.iter();
    arms.find(|known| known.arm.name == arm).map(of_arm)
}

fn list_causes(mut parts: Vec<(&str, f64)>) -> String {
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let said: Vec<String> = parts
        .into_iter()
        .filter(|(_, us)| *us >= SAID_US_MIN)
        .map(|(name, us)| format!("{name} {us:.1}"))
        .collect();
    match said.is_empty() {
        true => "nothing that a stage shows".into(),
        false => said.join(", "),
    }
}

/// Rows with the same ground as one, in the order of the first of each.
pub(super) fn group_rows(rows: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (what, why) in rows {
        match found.iter_mut().find(|(_, known)| *known == why) {
            Some((all, _)) => {
                all.push_str("; ");
                all.push_str(&what);
            }
            None => found.push((what, why)),
        }
    }
    found
}

/// Where each stage lies, once for all rows.
pub(super) fn legend() -> String {
    let names = StageTimes::NAMES.map(|name| name.trim_end_matches("_us"));
    let all = names.iter().chain(&["unexplained"]);
    let said: Vec<String> = all.map(|name| format!("{name}: {}", place(name))).collect();
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_part_comes_first() {
        let parts = vec![
            ("edge", 6.4),
            ("limits", 0.04),
            ("journal", 6.5),
            ("unexplained", 14.0),
        ];
        let said = list_causes(parts);
        assert_eq!(said, "unexplained 14.0, journal 6.5, edge 6.4");
        assert_eq!(
            list_causes(vec![("edge", -1.0)]),
            "nothing that a stage shows"
        );
    }

    #[test]
    fn every_stage_of_a_journal_has_a_place() {
        for name in StageTimes::NAMES {
            let place = place(name.trim_end_matches("_us"));
            assert!(place.contains("crates/"), "{name}: {place}");
        }
        assert!(legend().contains("policy: crates/gate/src/policy"));
    }

    #[test]
    fn rows_of_one_ground_stand_together() {
        let row = |what: &str, why: &str| (what.to_owned(), why.to_owned());
        let rows = vec![row("p50", "x"), row("rate", "y"), row("p99", "x")];
        assert_eq!(group_rows(rows), [row("p50; p99", "x"), row("rate", "y")]);
    }
}
