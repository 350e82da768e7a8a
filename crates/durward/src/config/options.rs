//! Options of a built-in server, read against the table that the server declares.

use toolkit::options::{OptionDef, OptionKind, OptionValue, Options};

use super::fault::Fault;
use super::section::Section;
use super::values::{Size, Span};

/// Reads the options that a section gives; where it gives none, what was `found` elsewhere holds.
///
/// # Errors
/// A [`Fault`] where a value is not of its kind, is out of bounds, or a required one is not given.
pub fn read(section: &Section<'_>, known: &[OptionDef], found: &Options) -> Result<Options, Fault> {
    let mut options = Options::default();
    for option in known {
        let given = value(section, option)?;
        match given.or_else(|| found.get(option.name).cloned()) {
            Some(value) => options.set(option.name, value),
            None if option.required => {
                let missing = format!("needs {}: {}", option.name, option.about);
                return Err(section.own_fault(missing));
            }
            None => {}
        }
    }
    Ok(options)
}

fn value(section: &Section<'_>, option: &OptionDef) -> Result<Option<OptionValue>, Fault> {
    let name = option.name;
    Ok(match &option.kind {
        OptionKind::Text => section
            .text(name)?
            .map(|text| OptionValue::Text(text.value.value)),
        OptionKind::Texts => section.list(name)?.map(|list| {
            OptionValue::Texts(list.value.into_iter().map(|text| text.value).collect())
        }),
        OptionKind::Path | OptionKind::File => section
            .path(name)?
            .map(|path| OptionValue::Path(path.value)),
        OptionKind::Paths => match section.member(name) {
            Some(_) => Some(OptionValue::Paths(section.paths(name)?)),
            None => None,
        },
        OptionKind::Number(bounds) => section
            .number(name, bounds.clone())?
            .map(|number| OptionValue::Number(number.value)),
        OptionKind::SpanMs(bounds) => section
            .within(name, Span(*bounds.start())..=Span(*bounds.end()))?
            .map(|span| OptionValue::Number(span.value.0)),
        OptionKind::Bytes(bounds) => section
            .within(name, Size(*bounds.start())..=Size(*bounds.end()))?
            .map(|size| OptionValue::Number(size.value.0)),
        OptionKind::Word(words) => section
            .read(name, |text| match words.contains(&text) {
                true => Ok(OptionValue::Text(text.to_owned())),
                false => Err(format!("is not one of {}", words.join(", "))),
            })?
            .map(|word| word.value),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::node;
    use super::super::section::Reader;
    use super::*;

    const TABLE: &[OptionDef] = &[
        OptionDef::required("models", OptionKind::Paths, "folders with models"),
        OptionDef::new("hosts", OptionKind::File, "", "the hosts"),
        OptionDef::new("workers", OptionKind::Number(1..=32), "2", "runs at once"),
        OptionDef::new("longest", OptionKind::SpanMs(1_000..=60_000), "5s", "a run"),
        OptionDef::new("room", OptionKind::Bytes(1..=1 << 20), "1MiB", "results"),
        OptionDef::new("engine", OptionKind::Word(&["own", "other"]), "own", "it"),
    ];

    fn read_text(text: &str) -> Result<Options, String> {
        let root = node::parse(text).map_err(|fault| fault.to_string())?;
        let reader = Reader {
            variable: &|_| None,
            base: Path::new("/etc/durward"),
            home: None,
        };
        let section = Section::map_of(&reader, &root, "servers.sim");
        read(&section, TABLE, &Options::default()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn each_kind_is_read_and_paths_are_whole() {
        let text = "models: [m, /srv/m]\nhosts: h.yaml\nworkers: 4\nlongest: 10s\nroom: 64KiB\nengine: other\n";
        let options = read_text(text).unwrap();
        let models = [Path::new("/etc/durward/m"), Path::new("/srv/m")];
        assert_eq!(options.paths("models"), models);
        assert_eq!(
            options.path("hosts"),
            Some(Path::new("/etc/durward/h.yaml"))
        );
        assert_eq!(options.number("workers"), Some(4));
        assert_eq!(options.number("longest"), Some(10_000));
        assert_eq!(options.number("room"), Some(65_536));
        assert_eq!(options.text("engine"), Some("other"));
        let least = read_text("models: []\n").unwrap();
        assert_eq!(least.number("workers"), None);
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_place() {
        let cases = [
            (
                "workers: 2\n",
                "line 1, column 1: servers.sim needs models: folders with models",
            ),
            (
                "models: m\n",
                "line 1, column 9: servers.sim.models is a single value; it must be a list\n  hint: write models: [one, two]",
            ),
            (
                "models: []\nworkers: 33\n",
                "line 2, column 10: servers.sim.workers: \"33\" is outside of 1 to 32",
            ),
            (
                "models: []\nlongest: 10\n",
                "line 2, column 10: servers.sim.longest: \"10\" has no unit; write 10s for seconds",
            ),
            (
                "models: []\nroom: 2MiB\n",
                "line 2, column 7: servers.sim.room: \"2MiB\" is outside of 1B to 1MiB",
            ),
            (
                "models: []\nengine: matlab\n",
                "line 2, column 9: servers.sim.engine: \"matlab\" is not one of own, other",
            ),
        ];
        for (text, wrong) in cases {
            assert_eq!(read_text(text).unwrap_err(), wrong);
        }
    }
}
