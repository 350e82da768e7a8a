//! Numbers as bytes and back, with one description for both ways: the same pass writes and reads.

/// Why bytes are not what a pass wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamagedBytes;

/// Bytes that are written, or read from a place on.
pub(crate) struct WordBuffer {
    bytes: Vec<u8>,
    /// Position of reading; `None` while writing.
    at: Option<usize>,
}

impl WordBuffer {
    /// Returns an empty text to write to.
    pub(crate) fn to_write() -> Self {
        Self {
            bytes: Vec::new(),
            at: None,
        }
    }

    /// Returns a text to read.
    pub(crate) fn to_read(bytes: Vec<u8>) -> Self {
        Self { bytes, at: Some(0) }
    }

    /// Returns whether values are read.
    pub(crate) fn reads(&self) -> bool {
        self.at.is_some()
    }

    /// Returns the written bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns whether everything was read.
    pub(crate) fn is_read(&self) -> bool {
        self.at == Some(self.bytes.len())
    }

    /// These bytes, or those that were written in their place.
    fn some<const N: usize>(&mut self, bytes: [u8; N]) -> Result<[u8; N], DamagedBytes> {
        let Some(at) = self.at else {
            self.bytes.extend(bytes);
            return Ok(bytes);
        };
        let rest = self.bytes.get(at..).ok_or(DamagedBytes)?;
        self.at = Some(at + N);
        rest.first_chunk().copied().ok_or(DamagedBytes)
    }

    /// Eight bytes.
    pub(crate) fn word(&mut self, word: &mut u64) -> Result<(), DamagedBytes> {
        *word = u64::from_le_bytes(self.some(word.to_le_bytes())?);
        Ok(())
    }

    /// A number, bit by bit.
    pub(crate) fn number(&mut self, number: &mut f64) -> Result<(), DamagedBytes> {
        let mut word = number.to_bits();
        self.word(&mut word)?;
        *number = f64::from_bits(word);
        Ok(())
    }

    /// Numbers, as many as there are.
    pub(crate) fn numbers(&mut self, numbers: &mut [f64]) -> Result<(), DamagedBytes> {
        numbers.iter_mut().try_for_each(|n| self.number(n))
    }

    /// A count below a bound.
    pub(crate) fn count(&mut self, count: &mut usize, below: usize) -> Result<(), DamagedBytes> {
        let mut word = *count as u64;
        self.word(&mut word)?;
        *count = usize::try_from(word).map_err(|_| DamagedBytes)?;
        if *count < below {
            Ok(())
        } else {
            Err(DamagedBytes)
        }
    }

    /// A truth.
    pub(crate) fn flag(&mut self, flag: &mut bool) -> Result<(), DamagedBytes> {
        match self.some([u8::from(*flag)])? {
            [byte @ (0 | 1)] => *flag = byte == 1,
            _ => return Err(DamagedBytes),
        }
        Ok(())
    }

    /// Truths, as many as there are.
    pub(crate) fn flags(&mut self, flags: &mut [bool]) -> Result<(), DamagedBytes> {
        flags.iter_mut().try_for_each(|f| self.flag(f))
    }

    /// A text.
    #[cfg(feature = "cli")]
    pub(crate) fn text(&mut self, text: &mut String) -> Result<(), DamagedBytes> {
        let mut length = text.len();
        self.count(&mut length, usize::MAX)?;
        let Some(at) = self.at else {
            self.bytes.extend_from_slice(text.as_bytes());
            return Ok(());
        };
        let to = at.checked_add(length).ok_or(DamagedBytes)?;
        let bytes = self.bytes.get(at..to).ok_or(DamagedBytes)?;
        *text = std::str::from_utf8(bytes)
            .map_err(|_| DamagedBytes)?
            .to_owned();
        self.at = Some(to);
        Ok(())
    }

    /// Passes an optional value; `pass` writes or reads it if it is there.
    pub(crate) fn maybe<T: Default>(
        &mut self,
        value: &mut Option<T>,
        pass: impl FnOnce(&mut Self, &mut T) -> Result<(), DamagedBytes>,
    ) -> Result<(), DamagedBytes> {
        let mut there = value.is_some();
        self.flag(&mut there)?;
        if there {
            pass(self, value.get_or_insert_with(T::default))
        } else {
            *value = None;
            Ok(())
        }
    }

    /// Passes items, at most `most`; `pass` writes or reads each.
    pub(crate) fn list<T: Default>(
        &mut self,
        list: &mut Vec<T>,
        most: usize,
        mut pass: impl FnMut(&mut Self, &mut T) -> Result<(), DamagedBytes>,
    ) -> Result<(), DamagedBytes> {
        let mut length = list.len();
        self.count(&mut length, most.saturating_add(1))?;
        list.resize_with(length, T::default);
        list.iter_mut().try_for_each(|item| pass(self, item))
    }
}
