//! Reading what a server answers.

use std::io;

/// What is left of an answer.
pub(super) struct Reading<'a>(pub &'a [u8]);

impl<'a> Reading<'a> {
    pub fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(io::ErrorKind::InvalidData)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn byte(&mut self) -> io::Result<u8> {
        self.take(1)?
            .first()
            .copied()
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub fn number(&mut self) -> io::Result<u32> {
        let bytes: [u8; 4] = self
            .take(4)?
            .try_into()
            .map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(u32::from_be_bytes(bytes))
    }

    pub fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| io::ErrorKind::InvalidData)?;
        self.take(length)
    }
}

impl Reading<'_> {
    pub fn long(&mut self) -> io::Result<u64> {
        let high = u64::from(self.number()?);
        Ok(high << 32 | u64::from(self.number()?))
    }

    /// A text, as far as it is UTF-8.
    pub fn text(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

/// A field with its length before it.
pub(super) fn field(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut field = super::length(bytes.len())?.to_be_bytes().to_vec();
    field.extend(bytes);
    Ok(field)
}
