use toolkit::measure::Measured;

use super::*;

fn list_counts(metrics: &CallMetrics) -> Vec<(&'static str, Vec<String>, Option<u64>)> {
    let all = metrics.measures().into_iter();
    all.map(|measure| {
        let labels = measure.labels.iter();
        let labels = labels.map(|(name, value)| format!("{name}={value}"));
        let number = match measure.value {
            Measured::Count(number) | Measured::Level(number) => Some(number),
            Measured::Times { .. } => None,
        };
        (measure.name, labels.collect(), number)
    })
    .collect()
}

#[test]
fn what_ends_is_counted_once_and_what_is_dropped_too() {
    let metrics = CallMetrics::default();
    metrics.tool("get_results").end(true);
    metrics.tool("get_results").end(true);
    drop(metrics.tool("get_results"));
    let under_way = metrics.tool("get_results");
    metrics.request("GET", "/openapi.json").end_with_status(200);
    let of = |labels: &[&str]| labels.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (good, bad) = (
        of(&["tool=get_results", "status=success"]),
        of(&["tool=get_results", "status=error"]),
    );
    let route = of(&["method=GET", "route=/openapi.json", "status_code=200"]);
    assert_eq!(
        list_counts(&metrics),
        [
            (
                "mcp_tool_invocations_in_progress",
                of(&["tool=get_results"]),
                Some(1)
            ),
            ("mcp_tool_invocations", good.clone(), Some(2)),
            ("mcp_tool_invocations", bad.clone(), Some(1)),
            ("mcp_tool_duration_seconds", good, None),
            ("mcp_tool_duration_seconds", bad, None),
            (
                "mcp_http_requests_in_progress",
                of(&["method=GET", "route=/openapi.json"]),
                Some(0)
            ),
            ("mcp_http_requests", route.clone(), Some(1)),
            ("mcp_http_request_duration_seconds", route, None),
        ]
    );
    drop(under_way);
}
