//! Releases of the OSP solver, and the rules in which they differ.

use std::fmt;
use std::str::FromStr;

/// Release that a run follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OspVersion {
    /// Release 12.4.3: events are tested once at 0, the row at 0 is always stored, switch times before 0 are ignored.
    #[default]
    V12_4_3,
    /// The development build of July 2026 (SimModel 5.0.0.80): events are tested twice at 0 if that is a switch time or
    /// a restart of a table, the row at 0 is stored if it is an output time, and a run starts at its earliest switch
    /// time before 0, without a row at 0.
    Dev13,
}

impl OspVersion {
    /// All releases, the default first.
    pub const ALL: [Self; 2] = [Self::V12_4_3, Self::Dev13];

    /// Returns the name by which a release is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V12_4_3 => "12.4.3",
            Self::Dev13 => "13-dev",
        }
    }

    /// Returns whether the row at 0 is stored even if 0 is no output time of the file.
    pub(super) fn always_stores_start(self) -> bool {
        self == Self::V12_4_3
    }

    /// Returns whether events are tested a second time at a start that is also a switch time or a restart of a table.
    pub(super) fn tests_start_again(self) -> bool {
        self == Self::Dev13
    }

    /// Returns whether a run starts at the earliest switch time before 0.
    pub(super) fn starts_early(self) -> bool {
        self == Self::Dev13
    }
}

impl fmt::Display for OspVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The release asked for is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRelease {
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = OspVersion::ALL.map(OspVersion::name).join(" or ");
        write!(
            f,
            "'{}' is not a known release of OSP: give {names}",
            self.name
        )
    }
}

impl std::error::Error for UnknownRelease {}

impl FromStr for OspVersion {
    type Err = UnknownRelease;

    fn from_str(name: &str) -> Result<Self, UnknownRelease> {
        let found = Self::ALL.into_iter().find(|release| release.name() == name);
        found.ok_or_else(|| UnknownRelease {
            name: name.to_owned(),
        })
    }
}
