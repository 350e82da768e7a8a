//! A correct answer with a gap for its id: an equal one needs no second reading.

use super::answer::RpcEnvelope;

/// The text of a good answer before and behind its id.
#[derive(Debug, Default)]
pub(super) struct AnswerTemplate {
    known: bool,
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl AnswerTemplate {
    /// Returns the id of an answer that is the known one, byte for byte, but for its id.
    pub(super) fn id_of(&self, text: &[u8]) -> Option<u64> {
        if !self.known {
            return None;
        }
        let digits = text
            .strip_prefix(self.before.as_slice())?
            .strip_suffix(self.behind.as_slice())?;
        let canonical = matches!(digits, [b'1'..=b'9', ..]) && digits.len() < 20;
        if !canonical {
            return None;
        }
        digits.iter().try_fold(0_u64, |id, digit| match digit {
            b'0'..=b'9' => id.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
            _ => None,
        })
    }

    /// Keeps an answer that was judged good. Nothing is kept of what is no message with an id.
    pub(super) fn learn(&mut self, text: &[u8]) {
        let place = RpcEnvelope::read(text)
            .ok()
            .and_then(|e| e.place_of_id(text));
        let Some((before, behind)) =
            place.and_then(|at| Some((text.get(..at.start)?, text.get(at.end..)?)))
        else {
            return;
        };
        self.known = true;
        self.before.clear();
        self.before.extend_from_slice(before);
        self.behind.clear();
        self.behind.extend_from_slice(behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_may_differ() {
        let mut template = AnswerTemplate::default();
        assert_eq!(template.id_of(br#"{"id":7,"result":{"id":7}}"#), None);
        template.learn(br#"{"id":7,"result":{"id":7}}"#);
        let check =
            |text: &str, expect| assert_eq!(template.id_of(text.as_bytes()), expect, "{text}");
        check(r#"{"id":7,"result":{"id":7}}"#, Some(7));
        check(r#"{"id":1234567,"result":{"id":7}}"#, Some(1_234_567));
        for other in [
            r#"{"id":7,"result":{"id":8}}"#,
            r#"{"id":07,"result":{"id":7}}"#,
            r#"{"id":"7","result":{"id":7}}"#,
            r#"{"id":,"result":{"id":7}}"#,
            r#"{"id":99999999999999999999,"result":{"id":7}}"#,
            r#"{"id":7,"result":{"id":7}} "#,
            r#"{"id": 7,"result":{"id":7}}"#,
            r#"{"id":7}"#,
            "",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn what_is_no_answer_is_not_learnt() {
        let mut template = AnswerTemplate::default();
        for text in ["", "hello", r#"{"result":{}}"#] {
            template.learn(text.as_bytes());
            assert!(!template.known, "{text}");
        }
    }
}
