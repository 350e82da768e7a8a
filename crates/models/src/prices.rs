//! What models cost: prices as they are configured, and what a call costs by them.
//!
//! Prices are kept in millionths of a dollar for a million tokens, costs in millionths of a dollar, rounded up.

use std::collections::BTreeMap;

use dialects::{Endpoint, Tokens};

use crate::catalogue::Target;
use crate::request::ModelRequest;

/// What a million tokens cost, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// Tokens that the model reads.
    pub input: u64,
    /// Tokens that it writes.
    pub output: u64,
    /// Tokens that it reads from the provider's cache; as any other where absent.
    pub cached: Option<u64>,
    /// Tokens that are put into the provider's cache; as any other that is read where absent.
    pub written: Option<u64>,
    /// Tokens that it thinks with; as any other that it writes where absent.
    pub reasoning: Option<u64>,
}

impl Price {
    /// What was used costs, in millionths of a dollar.
    #[must_use]
    pub fn of(&self, used: Tokens) -> u64 {
        let (input, output) = (used.input.unwrap_or(0), used.output.unwrap_or(0));
        let cached = used.cached.unwrap_or(0).min(input);
        let written = used.written.unwrap_or(0).min(input - cached);
        let reasoning = used.reasoning.unwrap_or(0).min(output);
        let parts = [
            (input - cached - written, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written, self.written.unwrap_or(self.input)),
            (output - reasoning, self.output),
            (reasoning, self.reasoning.unwrap_or(self.output)),
        ];
        let cost = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum + u128::from(*tokens) * u128::from(*price)
        });
        u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The most that so many tokens can cost, in millionths of a dollar.
    #[must_use]
    pub fn at_most(&self, read: u64, wrote: u64) -> u64 {
        let dearest = Self {
            input: self.input.max(self.written.unwrap_or(0)),
            output: self.output.max(self.reasoning.unwrap_or(0)),
            ..Self::default()
        };
        dearest.of(Tokens {
            input: Some(read),
            output: Some(wrote),
            ..Tokens::default()
        })
    }
}

/// All prices, by `PROVIDER/MODEL` or by a model's own name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    prices: BTreeMap<String, Price>,
    /// What is reckoned with for a reply where the request names no most, in tokens.
    reply_tokens: u64,
}

impl Prices {
    /// These prices.
    #[must_use]
    pub fn new(prices: BTreeMap<String, Price>, reply_tokens: u64) -> Self {
        Self {
            prices,
            reply_tokens,
        }
    }

    /// The price of a target: of `PROVIDER/MODEL`, else of the model whoever has it, else of what else that is called;
    /// `None` where there is none.
    #[must_use]
    pub fn find(&self, target: &Target) -> Option<&Price> {
        if self.prices.is_empty() {
            return None;
        }
        target.names().find_map(|name| self.prices.get(&name))
    }

    /// The most that a request can cost at a target, in millionths of a dollar; `None` where nobody knows the
    /// price.
    #[must_use]
    pub fn estimate(&self, request: &ModelRequest, target: &Target) -> Option<u64> {
        let price = self.find(target)?;
        let (read, wrote) = most(request, self.reply_tokens);
        Some(price.at_most(read, wrote))
    }

    /// What a call has cost at a target, in millionths of a dollar; `None` where nobody knows the price.
    #[must_use]
    pub fn cost(&self, target: &Target, used: Tokens) -> Option<u64> {
        self.find(target).map(|price| price.of(used))
    }
}

/// The most tokens that a request can use: read and written. A token is at least one byte of the request.
pub(crate) fn most(request: &ModelRequest, reply_tokens: u64) -> (u64, u64) {
    let body = request.body();
    let read = u64::try_from(body.as_str().len()).unwrap_or(u64::MAX);
    match request.endpoint() {
        Endpoint::CountTokens => (0, 0),
        endpoint @ (Endpoint::Chat | Endpoint::Responses | Endpoint::Messages) => {
            let most = endpoint.max_tokens(body).unwrap_or(reply_tokens);
            match endpoint.replies(body) {
                Some(count) if !endpoint.has_unread_max(body) => (read, most.saturating_mul(count)),
                // Some take `"5000"` for a number, and -1 for no bound at all.
                _ => (read, u64::MAX),
            }
        }
        _ => (read, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 1_250_000,
        output: 10_000_000,
        cached: Some(125_000),
        written: Some(1_563_000),
        reasoning: None,
    };

    #[test]
    fn cached_written_and_reasoning_tokens_have_prices_of_their_own() {
        let used = |input, output, cached, written, reasoning| Tokens {
            input: Some(input),
            output: Some(output),
            cached: Some(cached),
            written: Some(written),
            reasoning: Some(reasoning),
            counted: None,
        };
        assert_eq!(PRICE.of(used(1_000_000, 0, 0, 0, 0)), 1_250_000);
        assert_eq!(PRICE.of(used(1_000_000, 0, 1_000_000, 0, 0)), 125_000);
        assert_eq!(PRICE.of(used(1_000, 100, 400, 500, 50)), 1_957);
        let thinks = Price {
            reasoning: Some(20_000_000),
            ..PRICE
        };
        assert_eq!(thinks.of(used(0, 100, 0, 0, 60)), 1_600);
        assert_eq!(PRICE.of(used(1, 0, 0, 0, 0)), 2, "rounded up");
        assert_eq!(PRICE.of(Tokens::default()), 0);
        // What is told may be odd; it never costs less than nothing.
        assert_eq!(PRICE.of(used(1, 1, 9, 9, 9)), 11);
        let dear = Price {
            input: u64::MAX,
            ..PRICE
        };
        assert_eq!(dear.of(used(u64::MAX, 0, 0, 0, 0)), u64::MAX);
    }

    #[test]
    fn the_most_is_reckoned_with_the_dearest_kind_of_token() {
        assert_eq!(PRICE.at_most(1_000, 100), 2_563);
        let used = Tokens {
            input: Some(1_000),
            output: Some(100),
            written: Some(1_000),
            ..Tokens::default()
        };
        assert!(PRICE.of(used) <= PRICE.at_most(1_000, 100));
    }
}
