//! What spans and metrics share: attributes, and the resource that they come from.

use std::borrow::Cow;

use crate::protobuf::WireMessage;

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// True or false.
    Bool(bool),
}

/// A named value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name.
    pub key: Cow<'static, str>,
    /// The value.
    pub value: AttributeValue,
}

impl Attribute {
    /// Returns a text.
    pub fn text(key: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Self {
        Self {
            key: key.into(),
            value: AttributeValue::Text(value.into()),
        }
    }

    /// Returns a whole number; one beyond what fits is the largest that does.
    pub fn int(key: impl Into<Cow<'static, str>>, value: u64) -> Self {
        Self {
            key: key.into(),
            value: AttributeValue::Int(i64::try_from(value).unwrap_or(i64::MAX)),
        }
    }
}

/// What all spans and metrics of one process come from.
#[derive(Debug, Clone, Default)]
pub struct ProcessResource {
    /// Its attributes, such as `service.name`.
    pub attributes: Vec<Attribute>,
    /// The program that measures, and its version.
    pub scope: (&'static str, &'static str),
}

impl ProcessResource {
    /// Writes field 1 of `ResourceSpans` or `ResourceMetrics`, and field 2 with the scope and what `write` adds.
    pub(crate) fn write(&self, out: &mut WireMessage, write: impl FnOnce(&mut WireMessage)) {
        out.message(1, |resource| {
            write_attributes(resource, 1, &self.attributes)
        });
        out.message(2, |scoped| {
            scoped.message(1, |scope| {
                scope.bytes(1, self.scope.0.as_bytes());
                scope.bytes(2, self.scope.1.as_bytes());
            });
            write(scoped);
        });
    }
}

pub(crate) fn write_attributes(out: &mut WireMessage, field: u32, attributes: &[Attribute]) {
    for attribute in attributes {
        out.message(field, |pair| {
            pair.bytes(1, attribute.key.as_bytes());
            pair.message(2, |value| match &attribute.value {
                AttributeValue::Text(text) => value.bytes_always(1, text.as_bytes()),
                AttributeValue::Bool(is) => value.varint_always(2, u64::from(*is)),
                AttributeValue::Int(number) => value.varint_always(3, number.cast_unsigned()),
                AttributeValue::Double(number) => value.double_always(4, *number),
            });
        });
    }
}
