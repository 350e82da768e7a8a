//! From flags and settings to what is done about descriptions and definitions.

use gate::pins::{PinMode, PinOptions};
use mcp::descriptions::{Links, Options};

use crate::config::server::Server;
use crate::config::{Settings, values};
use crate::flags::{Pin, ScreeningArgs};
use crate::places::Places;

/// What is done about descriptions: flag, else setting.
pub fn descriptions(args: &ScreeningArgs, settings: &Settings) -> Options {
    let links = match settings.links.value {
        values::Links::Strip => Links::Strip,
        values::Links::Keep if args.strip_links => Links::Strip,
        values::Links::Keep => Links::Keep,
    };
    let length_max = match args.description_length {
        Some(chars) => Some(u64::from(chars)),
        None => settings.description_length_max.value,
    };
    Options {
        links,
        length_max: length_max.map(|chars| usize::try_from(chars).unwrap_or(usize::MAX)),
        ..Options::default()
    }
}

/// How definitions are pinned: flag, else what the server says, else what holds for all.
pub fn pins(
    args: &ScreeningArgs,
    settings: &Settings,
    server: Option<&Server>,
    places: &Places,
) -> PinOptions {
    let own = server.and_then(|server| server.pin.as_ref());
    let mode = match (args.pin, own.map_or(settings.pin.value, |pin| pin.value)) {
        (Some(Pin::Off), _) | (None, values::Pin::Off) => PinMode::Off,
        (Some(Pin::Warn), _) | (None, values::Pin::Warn) => PinMode::Warn,
        (Some(Pin::Enforce), _) | (None, values::Pin::Enforce) => PinMode::Enforce,
    };
    PinOptions {
        mode,
        directory: places.pins(),
    }
}
