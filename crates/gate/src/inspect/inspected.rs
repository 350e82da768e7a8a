//! The proof that a message was inspected.

use super::Finding;

/// A message after its inspection, and the finding.
///
/// [`crate::Gate::inspect`] makes one, and [`crate::Gate::admit`] takes nothing else: a face that forgets the inspection
/// does not compile.
///
/// ```compile_fail,E0451
/// # fn forge(message: Vec<u8>) -> gate::inspect::Inspected<Vec<u8>> {
/// gate::inspect::Inspected { message, finding: None }
/// # }
/// ```
#[must_use = "an inspected message that is dropped was inspected for nothing"]
#[derive(Debug)]
pub struct Inspected<T> {
    message: T,
    finding: Option<Box<Finding>>,
}

impl<T> Inspected<T> {
    pub(crate) fn new(message: T, finding: Option<Finding>) -> Self {
        Self {
            message,
            finding: finding.map(Box::new),
        }
    }

    /// The message with its matches masked.
    pub fn message(&self) -> &T {
        &self.message
    }

    pub(crate) fn message_mut(&mut self) -> &mut T {
        &mut self.message
    }

    /// Returns what was found; `None` if nothing was, or if no rule applies.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_deref()
    }

    /// Returns the message itself, for uses that no rule judges.
    pub fn into_message(self) -> T {
        self.message
    }

    /// Converts the message to another form, such as from parsed to bytes. `convert` must not add content.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Inspected<U> {
        Inspected {
            message: convert(self.message),
            finding: self.finding,
        }
    }

    /// As [`Self::map`], if that may fail.
    ///
    /// # Errors
    /// The error of `convert`.
    pub fn try_map<U, E>(self, convert: impl FnOnce(T) -> Result<U, E>) -> Result<Inspected<U>, E> {
        Ok(Inspected {
            message: convert(self.message)?,
            finding: self.finding,
        })
    }

    /// As [`Self::map`], of a message that stays: `convert` reads it again.
    ///
    /// # Errors
    /// The error of `convert`.
    pub fn try_map_ref<U, E>(
        &self,
        convert: impl FnOnce(&T) -> Result<U, E>,
    ) -> Result<Inspected<U>, E> {
        Ok(Inspected {
            message: convert(&self.message)?,
            finding: self.finding.clone(),
        })
    }

    /// Adds what a later inspection of the same message found, such as that of a checker.
    pub fn join(&mut self, finding: &Finding) {
        self.finding.get_or_insert_default().join(finding);
    }

    /// Replaces the message by what a later inspection left of it.
    pub fn replace(&mut self, message: T) {
        self.message = message;
    }
}
