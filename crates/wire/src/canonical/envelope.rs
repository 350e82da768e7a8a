//! Members of a message that JSON-RPC does not know.

use super::Canonical;
use super::writer::{Name, Part, shift};
use crate::jsonrpc::Own;
use crate::scan::OwnPlaces;

impl Canonical {
    /// Writes a request or notification without the members that JSON-RPC does not know; leaves a
    /// response, which has no `method`, as it is. Those that are like a known one were refused.
    pub(super) fn drop_unknown_members(&mut self) {
        let is_known = |name: &Name| Own::of(self.name(name)).is_some();
        let members = &self.noted.notes.members;
        let has_method = members.iter().any(|(name, _)| self.name(name) == "method");
        if !has_method || members.iter().all(|(name, _)| is_known(name)) {
            return;
        }
        let known: Vec<bool> = members.iter().map(|(name, _)| is_known(name)).collect();
        let mut known = known.into_iter();
        self.noted
            .notes
            .members
            .retain(|_| known.next() == Some(true));
        self.rewrite();
    }

    /// Writes the message again with the members that are still noted.
    fn rewrite(&mut self) {
        let mut text = String::with_capacity(self.text.len());
        let mut members = std::mem::take(&mut self.noted.notes.members);
        for (name, value) in &mut members {
            text.push(if text.is_empty() { '{' } else { ',' });
            let from = name.at().start - 1;
            let by = from - text.len();
            text.push_str(self.text.get(from..value.end).unwrap_or_default());
            match self.name(name) {
                "params" => self.shift_params(by),
                "result" | "error" => shift_members(&mut self.noted.notes.reply, by),
                _ => {}
            }
            name.shift(by);
            shift(value, by);
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        self.noted.notes.members = members;
        self.text = text;
        self.find_own();
    }

    /// Notes anew which of the members are JSON-RPC's own.
    fn find_own(&mut self) {
        let mut found = OwnPlaces::default();
        for (at, (name, _)) in self.noted.notes.members.iter().enumerate() {
            let own = Own::of(self.name(name));
            if let Some(place) = own.and_then(|own| found.get_mut(own as usize)) {
                *place = Some(at);
            }
        }
        self.noted.own = found;
    }

    fn shift_params(&mut self, by: usize) {
        shift_members(&mut self.noted.notes.params, by);
        for leaf in &mut self.noted.notes.leaves {
            leaf.key.shift(by);
            leaf.top.shift(by);
            shift(&mut leaf.value, by);
        }
    }
}

fn shift_members(members: &mut [(Name, Part)], by: usize) {
    for (name, value) in members {
        name.shift(by);
        shift(value, by);
    }
}
