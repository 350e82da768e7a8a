//! What is known of the URLs of a call.

use std::borrow::Cow;

use super::{Fact, FactId, Facts, Value};
use crate::urls::{AddressClass, UrlReading, default_port};

/// The facts of URLs.
pub(crate) const URL_FACTS: [FactId; 7] = [
    FactId::Urls,
    FactId::UrlScheme,
    FactId::UrlHost,
    FactId::UrlPort,
    FactId::UrlPath,
    FactId::UrlAddressClass,
    FactId::UrlUserinfo,
];

impl Facts {
    /// Returns a fact of the call's URLs, every reading of each, in the order in which they were found. A rule that
    /// allows sees none that is nested in another one.
    pub(crate) fn of_urls(&self, id: FactId, with_nested: bool) -> Fact<Vec<Cow<'_, str>>> {
        let urls = &self.reach.urls;
        if self.paths.is_unknown() || urls.is_unread() || self.reach.unread {
            return Fact::Unknown;
        }
        let mut list = urls.list().iter();
        if list.any(|url| url.readings.is_empty()) {
            return Fact::Unknown;
        }
        let mut readings = urls.readings(with_nested).peekable();
        if readings.peek().is_none() {
            return Fact::Absent;
        }
        if id == FactId::UrlUserinfo {
            let has_any = readings.any(|reading| reading.has_userinfo);
            return Fact::Known(vec![Cow::Borrowed(if has_any { "yes" } else { "no" })]);
        }
        let mut out: Vec<Cow<'_, str>> = Vec::new();
        for text in readings.flat_map(|reading| texts(reading, id)) {
            if !out.contains(&text) {
                out.push(text);
            }
        }
        Fact::Known(out)
    }

    /// Returns the same as a value, nested ones included.
    pub(super) fn url_value(&self, id: FactId) -> Fact<Value<'_>> {
        match self.of_urls(id, true) {
            Fact::Known(texts) => match id {
                FactId::UrlUserinfo => Fact::Known(Value::Text(
                    texts.into_iter().next().unwrap_or(Cow::Borrowed("no")),
                )),
                _ => Fact::Known(Value::Made(texts)),
            },
            Fact::Unknown => Fact::Unknown,
            Fact::Absent => Fact::Absent,
        }
    }
}

/// Returns what a reading adds to a fact.
fn texts(reading: &UrlReading, id: FactId) -> Vec<Cow<'_, str>> {
    match id {
        FactId::Urls => reading.texts().map(Cow::Owned).collect(),
        FactId::UrlScheme => vec![Cow::Borrowed(reading.scheme.as_str())],
        FactId::UrlHost if reading.host.is_empty() => Vec::new(),
        FactId::UrlHost => vec![Cow::Borrowed(reading.host.as_str())],
        FactId::UrlPort => {
            let port = reading.port.or_else(|| default_port(&reading.scheme));
            port.map(|port| Cow::Owned(port.to_string()))
                .into_iter()
                .collect()
        }
        FactId::UrlPath => reading
            .paths
            .iter()
            .map(|path| Cow::Borrowed(path.as_str()))
            .collect(),
        FactId::UrlAddressClass => {
            let class = reading.class.map(AddressClass::label);
            class.map(Cow::Borrowed).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
