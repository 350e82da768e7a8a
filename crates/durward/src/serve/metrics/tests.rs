use super::*;
use gate::admit::Tallied;
use toolkit::breaker::BreakerEvent;

fn text_of_two_gates() -> String {
    let tallied = Tallied {
        decisions: vec![("allow", "", 3), ("deny", "policy", 1)],
        outcomes: vec![("Success", 3)],
        times: std::array::from_fn(|class| u64::from(class == 0 || class == 12)),
        time_us: 40_000_000,
    };
    written(Scrape {
        tallied: vec![tallied.clone(), tallied],
        control: vec![vec![("list", 2)]],
        breakers: vec![(
            "files".into(),
            BreakerEvent::ALL.map(|event| (event, u64::from(event == BreakerEvent::Opened))),
        )],
        models: vec![models::Counted {
            provider: "a".into(),
            attempts: vec![("served", 2)],
            tokens: vec![("input", 3)],
        }],
        measures: vec![
            Measure::new(
                "mcp_ssh_commands",
                "Commands",
                &[("host", "a\"b\nc")],
                Measured::Count(2),
            ),
            Measure::new(
                "mcp_ssh_command_duration_seconds",
                "Times",
                &[("host", "a")],
                Measured::Times {
                    sum_s: 0.5,
                    classes: vec![(0.1, 1), (f64::INFINITY, 1)],
                },
            ),
            Measure::new("mcp_pool_hits", "Hits", &[], Measured::Count(3)),
        ],
        failed: false,
        sessions: 1,
        servers: 1,
        approvals_waiting: 1,
        limits: Some([3_000, 600]),
    })
    .unwrap()
}

/// The rules of <https://prometheus.io/docs/specs/om/open_metrics_spec/> that scrapers enforce.
#[test]
fn the_exposition_is_valid() {
    let text = text_of_two_gates();
    let (body, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    let mut families: Vec<&str> = Vec::new();
    let mut helped = "";
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped = rest.split(' ').next().unwrap();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let family = rest.split(' ').next().unwrap();
            assert_eq!(family, helped, "the help comes before the type");
            assert!(!families.contains(&family), "{family} comes twice");
            families.push(family);
        } else if !line.starts_with("# UNIT ") {
            let family = families.last().unwrap();
            assert!(line.starts_with(family), "{line} stands below {family}");
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        }
    }
    assert_eq!(families.len(), 17, "{families:?}");
    for line in [
        "mcp_ssh_commands_total{host=\"a\\\"b\\nc\"} 2",
        "mcp_ssh_command_duration_seconds_bucket{le=\"+Inf\",host=\"a\"} 2",
        "mcp_pool_hits_total 3",
        "durward_limit_requests_per_minute 3000",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let opened = r#"durward_breaker_events_total{target="files",event="opened"} 1"#;
    assert!(text.contains(opened), "{text}");
}

#[test]
fn the_last_class_of_times_has_no_end() {
    let text = text_of_two_gates();
    let ends: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("durward_call_time_seconds_bucket{le=\""))
        .collect();
    assert_eq!(ends.first(), Some(&"0.00005\"} 2"));
    assert_eq!(ends.last(), Some(&"+Inf\"} 4"));
    assert!(
        text.contains("durward_call_time_seconds_count 4\n"),
        "{text}"
    );
}
