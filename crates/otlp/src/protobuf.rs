//! The three wire types of protobuf that OTLP is made of: varint, 64 bits, and bytes with their length.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

/// A message as it is written. Fields of value zero are left out, as proto3 has it, unless `always` is in the name.
#[derive(Debug, Default)]
pub struct WireMessage(Vec<u8>);

impl WireMessage {
    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.raw_varint(u64::from((field << 3) | wire));
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// A whole number.
    pub fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint_always(field, value);
        }
    }

    /// A whole number of a choice (`oneof`), where zero is a value as well.
    pub fn varint_always(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.raw_varint(value);
    }

    /// A `fixed64` or `sfixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.fixed64_always(field, value);
        }
    }

    /// A `fixed64` of a choice.
    pub fn fixed64_always(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A `double`, zero included.
    pub fn double_always(&mut self, field: u32, value: f64) {
        self.fixed64_always(field, value.to_bits());
    }

    /// Text or bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.bytes_always(field, value);
        }
    }

    /// Text or bytes of a choice.
    pub fn bytes_always(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A message within this one, empty ones included.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut WireMessage)) {
        let mut inner = WireMessage::default();
        write(&mut inner);
        self.bytes_always(field, &inner.0);
    }

    /// A packed list of 64-bit values.
    pub fn packed64(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_encoding_guide() {
        let mut message = WireMessage::default();
        message.varint(1, 150);
        message.varint(7, 0);
        message.bytes(2, b"testing");
        message.message(3, |inner| inner.varint(1, 150));
        let expect = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.into_bytes(), expect);
    }

    #[test]
    fn values_of_64_bits() {
        let mut message = WireMessage::default();
        message.fixed64(1, 0);
        message.double_always(4, 1.0);
        message.packed64(6, [1, 2].into_iter());
        message.packed64(7, [].into_iter());
        let mut expect = vec![0x21];
        expect.extend(1.0_f64.to_le_bytes());
        expect.extend([0x32, 16, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.into_bytes(), expect);
    }

    #[test]
    fn the_largest_number_takes_ten_bytes() {
        let mut message = WireMessage::default();
        message.varint(1, u64::MAX);
        assert_eq!(message.into_bytes().len(), 11);
    }
}
