//! `models.cache`: how whole replies of models are remembered.

use ::models::{CacheOptions, CachePer};

use super::fault::Fault;
use super::rows::{Row, row};
use super::section::Section;
use super::settings::Setting;
use super::values::{self, Size, Span};

/// How long a reply may be remembered.
const TTL_MS: std::ops::RangeInclusive<Span> = super::models::WINDOW_MS;
/// How much may be.
const CACHE_BYTES: std::ops::RangeInclusive<Size> = Size(64 * 1024)..=Size(4 * 1024 * 1024 * 1024);

/// How replies are remembered.
#[derive(Debug, Clone)]
pub struct Cache {
    ttl: Setting<Span>,
    bytes: Setting<Size>,
    /// Who shares them.
    per: Setting<CachePer>,
}

impl PartialEq for Cache {
    /// Where it stands in the file does not count.
    fn eq(&self, other: &Self) -> bool {
        self.options() == other.options()
    }
}

impl Cache {
    /// As the cache takes it.
    pub fn options(&self) -> CacheOptions {
        CacheOptions {
            ttl_ms: self.ttl.value.0,
            bytes_max: self.bytes.value.0,
            per: self.per.value,
        }
    }

    pub fn rows(&self) -> [Row; 3] {
        [
            row("models.cache.ttl", &self.ttl, ToString::to_string),
            row("models.cache.bytes", &self.bytes, ToString::to_string),
            row("models.cache.per", &self.per, |per| {
                values::word(*per).to_owned()
            }),
        ]
    }
}

/// Reads the section.
pub fn read(section: &Section<'_>) -> Result<Cache, Fault> {
    let usual = CacheOptions::default();
    let ttl = section.within("ttl", TTL_MS)?;
    let bytes = section.within("bytes", CACHE_BYTES)?;
    let per = section.choice("per")?;
    Ok(Cache {
        ttl: ttl.unwrap_or_else(|| Setting::default(Span(usual.ttl_ms))),
        bytes: bytes.unwrap_or_else(|| Setting::default(Size(usual.bytes_max))),
        per: per.unwrap_or_else(|| Setting::default(usual.per)),
    })
}
