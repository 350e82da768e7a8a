use std::path::Path;

use super::super::read::settings;
use super::super::section::Reader;

#[test]
fn a_model_without_a_price_is_warned_of_where_a_budget_counts_money() {
    let reader = Reader {
        variable: &|_| None,
        base: Path::new("/etc"),
        home: None,
    };
    let told = |text: &str| -> Vec<String> {
        let read = settings(text, &reader).unwrap();
        let warnings = read.warnings.iter().map(|own| own.message.clone());
        warnings
            .filter(|text| text.contains("costs nothing") || text.contains("cost nothing"))
            .collect()
    };
    let text = "models:\n  providers: { far: { kind: openai, models: [a, b] }, near: { kind: mock } }\n  aliases: { smart: { tiers: [far/a, near/x] } }\n";
    assert!(told(text).is_empty());
    let money = format!("{text}  budgets: {{ all: {{ cost: 5 }} }}\n");
    let warned = told(&money);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(
        warned[0].ends_with("budget \"all\": far/a, far/b"),
        "{warned:?}"
    );
    let priced = "  prices: { a: { input: 1, output: 1 }, far/b: { input: 1, output: 1 } }\n";
    assert!(told(&format!("{money}{priced}")).is_empty());
    let played =
        "models:\n  providers: { near: { kind: mock } }\n  budgets: { all: { cost: 5 } }\n";
    assert!(told(played)[0].starts_with("models.prices is empty"));
    let any = told(&money.replace("models: [a, b]", "ca: ca.pem"));
    assert!(any[0].contains("takes any name"), "{any:?}");
    assert!(any[1].ends_with("far/a"), "{any:?}");
}
