//! Batches of the oldest revisions: how many messages one may have, and the one array of their answers.

use wire::jsonrpc::Kind;
use wire::{WireError, WireErrorKind};

/// Most messages in one batch.
pub const BATCH_MAX: usize = 256;

/// Whether a session may send this many messages at once. `has_batches`: whether its revision has them; `None` where no revision
/// is agreed on.
///
/// # Errors
/// What its client is told.
pub fn fits(has_batches: Option<bool>, length: usize) -> Result<(), WireError> {
    let fault = |kind, message| Err(WireError::new(kind, 0, message));
    match has_batches {
        None => {
            let message =
                "the agreed protocol revision has no batches; send the messages one by one";
            fault(WireErrorKind::BatchNotAllowed, message)
        }
        Some(false) => {
            let message =
                "the session's protocol revision has no batches; send the messages one by one";
            fault(WireErrorKind::BatchNotAllowed, message)
        }
        Some(true) if length == 0 || length > BATCH_MAX => {
            fault(WireErrorKind::TooMany, "a batch has 1 to 256 messages")
        }
        Some(true) => Ok(()),
    }
}

/// Whether a batch may hold this message: a handshake settles what the others mean, and stands alone.
///
/// # Errors
/// What its client is told.
pub fn may_hold(kind: &Kind<'_>) -> Result<(), WireError> {
    match kind {
        Kind::Request { method, .. } if method == "initialize" => {
            let message = "initialize must not be in a batch; send it alone and first";
            Err(WireError::new(WireErrorKind::BatchNotAllowed, 0, message))
        }
        _ => Ok(()),
    }
}

/// The array of the answers; `None` where there are none.
#[must_use]
pub fn joined(answers: &[Vec<u8>]) -> Option<Vec<u8>> {
    if answers.is_empty() {
        return None;
    }
    let mut frame = vec![b'['];
    frame.extend(answers.join(&b","[..]));
    frame.push(b']');
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_needs_a_revision_that_has_them_and_a_length() {
        let fault = |has, length| fits(has, length).map_err(|fault| fault.kind);
        assert_eq!(fault(None, 1), Err(WireErrorKind::BatchNotAllowed));
        assert_eq!(fault(Some(false), 1), Err(WireErrorKind::BatchNotAllowed));
        assert_eq!(fault(Some(true), 0), Err(WireErrorKind::TooMany));
        assert_eq!(fault(Some(true), BATCH_MAX), Ok(()));
        assert_eq!(
            fault(Some(true), BATCH_MAX + 1),
            Err(WireErrorKind::TooMany)
        );
    }

    #[test]
    fn answers_are_one_array_or_nothing() {
        assert_eq!(joined(&[]), None);
        assert_eq!(joined(&[b"1".to_vec()]).unwrap(), b"[1]");
        assert_eq!(joined(&[b"1".to_vec(), b"{}".to_vec()]).unwrap(), b"[1,{}]");
    }
}
