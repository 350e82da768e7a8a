//! Lists that are given a page at a time.

use serde_json::Value;
use toolkit::server::Args;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPage {
    page: u64,
    limit: u64,
    asked: bool,
}

impl ListPage {
    /// Returns the arguments `page` (from 1) and `limit`; the first page of `usual` by default.
    pub(super) fn of(args: Args<'_>, usual: u64) -> Self {
        let (page, limit) = (args.count("page").ok(), args.count("limit").ok());
        Self {
            page: page.unwrap_or(1).max(1),
            limit: limit.unwrap_or(usual).max(1),
            asked: page.is_some() || limit.is_some(),
        }
    }

    pub(super) fn was_asked(&self) -> bool {
        self.asked
    }

    /// Returns the members of the page.
    pub(super) fn of_list<T>(&self, all: Vec<T>) -> Vec<T> {
        let skip = (self.page - 1).saturating_mul(self.limit);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        all.into_iter().skip(skip).take(take).collect()
    }

    /// Says which page an answer is, and of how many members.
    pub(super) fn tell(&self, answer: &mut Value, total: usize) {
        if let Some(members) = answer.as_object_mut() {
            members.insert("page".into(), self.page.into());
            members.insert("limit".into(), self.limit.into());
            members.insert("total".into(), total.into());
        }
    }
}
