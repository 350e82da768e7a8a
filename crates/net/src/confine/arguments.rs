//! How a confinement travels to the hidden commands: as arguments, which any user may read. Places are no
//! secrets.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::{Confine, Confinement, Sandbox};

const CONFINE: &str = "--confine";
const COVER: &str = "--cover";
const READ_ONLY: &str = "--read-only";
const SANDBOX: &str = "--sandbox";
const READ: &str = "--read";
const WRITE: &str = "--write";
const EXEC: &str = "--exec";
const NO_NETWORK: &str = "--no-network";

impl Confinement {
    /// As arguments, each an option with a value.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut out: Vec<OsString> = vec![CONFINE.into(), self.confine.label().into()];
        if self.is_off() {
            return out;
        }
        let mut all = |option: &str, places: &[PathBuf]| {
            for place in places {
                out.extend([option.into(), place.into()]);
            }
        };
        all(COVER, &self.covered);
        all(READ_ONLY, &self.read_only);
        if let Some(sandbox) = &self.sandbox {
            all(READ, &sandbox.read);
            all(WRITE, &sandbox.write);
            all(EXEC, &sandbox.exec);
            let network = if sandbox.no_network { NO_NETWORK } else { "-" };
            out.extend([SANDBOX.into(), network.into()]);
        }
        out
    }

    fn listed(&mut self) -> &mut Sandbox {
        self.sandbox.get_or_insert_with(Sandbox::default)
    }

    /// Takes one option; `false` where it is none of these.
    pub(crate) fn take_argument(&mut self, option: &OsStr, value: &OsStr) -> bool {
        let place = || PathBuf::from(value);
        let Some(option) = option.to_str() else {
            return false;
        };
        match option {
            CONFINE => match Confine::ALL.into_iter().find(|c| value == c.label()) {
                Some(confine) => self.confine = confine,
                None => return false,
            },
            COVER => self.covered.push(place()),
            READ_ONLY => self.read_only.push(place()),
            READ => self.listed().read.push(place()),
            WRITE => self.listed().write.push(place()),
            EXEC => self.listed().exec.push(place()),
            SANDBOX => self.listed().no_network = value == NO_NETWORK,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confinement_survives_its_arguments() {
        let places = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let sandbox = Sandbox {
            read: places(&["/a b", "/c"]),
            write: places(&["/w"]),
            exec: places(&["/x"]),
            no_network: true,
        };
        for (confine, sandbox) in [
            (Confine::Auto, None),
            (Confine::Require, Some(sandbox)),
            (Confine::Auto, Some(Sandbox::default())),
        ] {
            let before = Confinement {
                confine,
                covered: places(&["/state", "/--cover"]),
                read_only: places(&["/bin/durward"]),
                sandbox,
            };
            let mut after = Confinement::default();
            for pair in before.to_arguments().chunks(2) {
                assert!(after.take_argument(&pair[0], &pair[1]), "{pair:?}");
            }
            assert_eq!(after, before);
        }
        let off = Confinement {
            confine: Confine::Off,
            ..Confinement::default()
        };
        assert_eq!(off.to_arguments(), ["--confine", "off"]);
        assert!(!Confinement::default().take_argument("--confine".as_ref(), "on".as_ref()));
        assert!(!Confinement::default().take_argument("--else".as_ref(), "x".as_ref()));
    }
}
