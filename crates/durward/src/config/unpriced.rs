//! Models without a price where a budget counts money: they cost nothing there, which is hardly meant.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ::models::Most;

use super::models::Models;
use super::values::ProviderKind;

/// Most models that are named one by one.
const NAMED_MAX: usize = 8;

/// What to warn of; nothing where no budget counts money.
pub(super) fn warnings(models: &Models) -> Vec<String> {
    let counts_money = |most: &Most| matches!(most, Most::Micros(_));
    let budget = models.budgets.iter().find(|own| counts_money(&own.most));
    let Some(budget) = budget else {
        return Vec::new();
    };
    let real = models.providers.iter();
    let real = real.filter(|own| own.kind != ProviderKind::Mock);
    let mut unpriced = BTreeSet::new();
    let mut warnings = Vec::new();
    for own in real {
        if own.models.is_empty() {
            warnings.push(format!(
                "the provider \"{}\" takes any name, and a model without a price costs nothing in the budget \"{}\"; list its models",
                own.name, budget.name
            ));
        }
        let mut names: BTreeSet<&str> = own.models.iter().map(String::as_str).collect();
        let tiers = models.aliases.iter().flat_map(|alias| &alias.tiers);
        for target in tiers.flatten() {
            let of_own = target
                .split_once('/')
                .filter(|(provider, _)| *provider == own.name);
            names.extend(of_own.map(|(_, model)| model));
        }
        let has_price = |model: &str| {
            let whole = format!("{}/{model}", own.name);
            models.prices.contains_key(&whole) || models.prices.contains_key(model)
        };
        let lack = names.into_iter().filter(|model| !has_price(model));
        unpriced.extend(lack.map(|model| format!("{}/{model}", own.name)));
    }
    if !unpriced.is_empty() {
        let more = unpriced.len().saturating_sub(NAMED_MAX);
        let named: Vec<String> = unpriced.into_iter().take(NAMED_MAX).collect();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        warnings.push(format!(
            "without a price in models.prices these cost nothing in the budget \"{}\": {}{more}",
            budget.name,
            named.join(", ")
        ));
    }
    if warnings.is_empty() && models.prices.is_empty() {
        warnings.push(format!(
            "models.prices is empty, so every call costs nothing in the budget \"{}\"; give the models prices",
            budget.name
        ));
    }
    warnings
}
