//! The file of a study.

use std::path::{Path, PathBuf};

use super::super::failure::CommandFailure;
use super::node::{DocumentNode, NodeMembers};
use crate::regimen::Regimen;
use crate::run::OspVersion;

/// Largest file of a study, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most arms, and most fits.
const ITEMS_MAX: usize = 1_000;
/// Longest name of an arm or fit, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Names of an arm and of a fit.
const ARM_NAMES: [&str; 11] = [
    "name",
    "model",
    "regimen",
    "parameters",
    "outputs",
    "units",
    "population",
    "data",
    "sheet",
    "dv",
    "estimates",
];
const FIT_NAMES: [&str; 7] = ["name", "arm", "vary", "error", "starts", "seed", "interval"];

/// A study.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StudyFile {
    /// Heading of its report.
    pub(super) name: Option<String>,
    /// Release of OSP that all runs follow.
    pub(super) osp_version: Option<String>,
    pub(super) arms: Vec<StudyArm>,
    pub(super) fits: Vec<StudyFit>,
}

/// A model with doses, values, people and data.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StudyArm {
    pub(super) name: String,
    pub(super) model: PathBuf,
    /// Regimens in the notation of `--dose`.
    pub(super) regimen: Vec<String>,
    pub(super) parameters: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) units: Vec<String>,
    pub(super) population: Option<PathBuf>,
    pub(super) data: Option<PathBuf>,
    pub(super) sheet: Option<String>,
    pub(super) dv: Vec<String>,
    /// The fit from which it takes estimates.
    pub(super) estimates: Option<String>,
}

/// A fit to the data of an arm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StudyFit {
    pub(super) name: String,
    pub(super) arm: String,
    pub(super) vary: Vec<String>,
    pub(super) error: Option<String>,
    pub(super) starts: Option<String>,
    pub(super) seed: Option<String>,
    pub(super) interval: Option<String>,
}

impl StudyArm {
    fn read(node: &DocumentNode, number: usize) -> Result<Self, String> {
        let members = NodeMembers::new(node, &format!("arm {number}"), &ARM_NAMES)?;
        let file = |name| Ok::<_, String>(members.text(name)?.map(PathBuf::from));
        let regimen = members.list("regimen")?.iter().map(regimen_text);
        Ok(Self {
            name: members.needed("name")?,
            model: members.needed("model")?.into(),
            regimen: regimen.collect::<Result<_, _>>()?,
            parameters: members.texts("parameters")?,
            outputs: members.texts("outputs")?,
            units: members.texts("units")?,
            population: file("population")?,
            data: file("data")?,
            sheet: members.text("sheet")?,
            dv: members.texts("dv")?,
            estimates: members.text("estimates")?,
        })
    }
}

impl StudyFit {
    fn read(node: &DocumentNode, number: usize) -> Result<Self, String> {
        let members = NodeMembers::new(node, &format!("fit {number}"), &FIT_NAMES)?;
        Ok(Self {
            name: members.needed("name")?,
            arm: members.needed("arm")?,
            vary: members.texts("vary")?,
            error: members.text("error")?,
            starts: members.text("starts")?,
            seed: members.text("seed")?,
            interval: members.text("interval")?,
        })
    }
}

/// Returns a regimen in the notation of `--dose`: as it is, or from names with values.
fn regimen_text(node: &DocumentNode) -> Result<String, String> {
    match node {
        DocumentNode::Text(text) => Ok(text.clone()),
        DocumentNode::Map(members) => {
            let pair = |(name, value): &(String, DocumentNode)| {
                let value = value.text().map(str::to_owned);
                let value = value.ok_or_else(|| format!("regimen: {name} has to be a text"))?;
                Ok((name.clone(), value))
            };
            let pairs: Result<Vec<(String, String)>, String> = members.iter().map(pair).collect();
            let pairs = pairs?;
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            Regimen::notation(pairs).map_err(|error| error.to_string())
        }
        DocumentNode::List(_) => Err("a regimen is a text or names with values".to_owned()),
    }
}

impl StudyFile {
    /// Reads and checks a study.
    pub(super) fn read(file: &Path) -> Result<Self, CommandFailure> {
        let name = file.display();
        let failed =
            |e: std::io::Error| CommandFailure::failure(format!("cannot read {name}: {e}"));
        if std::fs::metadata(file).map_err(failed)?.len() > FILE_BYTES_MAX {
            let message = format!("{name} has more than {FILE_BYTES_MAX} bytes");
            return Err(CommandFailure::misuse(message));
        }
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let read = Self::parse(&text).and_then(|read| read.check().map(|()| read));
        read.map_err(|what| CommandFailure::misuse(format!("{name}: {what}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let document = DocumentNode::parse(text)?;
        let names = ["name", "osp_version", "arms", "fits"];
        let members = NodeMembers::new(&document, "the study", &names)?;
        let arms = members.list("arms")?.iter().zip(1..);
        let fits = members.list("fits")?.iter().zip(1..);
        Ok(Self {
            name: members.text("name")?,
            osp_version: members.text("osp_version")?,
            arms: arms
                .map(|(node, number)| StudyArm::read(node, number))
                .collect::<Result<_, _>>()?,
            fits: fits
                .map(|(node, number)| StudyFit::read(node, number))
                .collect::<Result<_, _>>()?,
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.arms.is_empty() {
            return Err("a study has at least one arm".to_owned());
        }
        if self.arms.len() > ITEMS_MAX || self.fits.len() > ITEMS_MAX {
            return Err(format!("more than {ITEMS_MAX} arms or fits"));
        }
        if let Some(release) = &self.osp_version {
            let known: Result<OspVersion, _> = release.parse();
            known.map_err(|e| e.to_string())?;
        }
        check_names("arm", self.arms.iter().map(|arm| arm.name.as_str()))?;
        check_names("fit", self.fits.iter().map(|fit| fit.name.as_str()))?;
        for arm in &self.arms {
            for entry in &arm.regimen {
                let parsed: Result<Regimen, _> = entry.parse();
                parsed.map_err(|e| format!("arm '{}': {e}", arm.name))?;
            }
            if let Some(fit) = &arm.estimates
                && !self.fits.iter().any(|known| known.name == *fit)
            {
                return Err(format!("arm '{}': there is no fit '{fit}'", arm.name));
            }
        }
        for fit in &self.fits {
            if !self.arms.iter().any(|arm| arm.name == fit.arm) {
                return Err(format!("fit '{}': there is no arm '{}'", fit.name, fit.arm));
            }
        }
        Ok(())
    }

    /// Returns the arm of this name.
    pub(super) fn arm(&self, name: &str) -> Result<&StudyArm, CommandFailure> {
        let found = self.arms.iter().find(|arm| arm.name == name);
        found.ok_or_else(|| CommandFailure::misuse(format!("there is no arm '{name}'")))
    }
}

/// Checks that names can be those of folders, and that each occurs once.
fn check_names<'n>(kind: &str, names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut known = std::collections::HashSet::new();
    for name in names {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(fits) {
            return Err(format!(
                "{kind} '{name}': a name has 1 to {NAME_CHARS_MAX} letters, digits, _ and -"
            ));
        }
        if !known.insert(name) {
            return Err(format!("{kind} '{name}' occurs twice"));
        }
    }
    Ok(())
}

/// Reads what a fit has printed.
pub(super) fn fit_document(file: &Path) -> Result<DocumentNode, CommandFailure> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|e| CommandFailure::failure(format!("cannot read {name}: {e}")))?;
    DocumentNode::parse(&text).map_err(|e| CommandFailure::failure(format!("{name}: {e}")))
}

/// Returns the estimates that a fit has printed, by path in base units.
pub(super) fn estimates(file: &Path) -> Result<Vec<(String, f64)>, CommandFailure> {
    let document = fit_document(file)?;
    let entries = document.items("parameters").iter();
    let entry = |entry: &DocumentNode| {
        let path = entry.get("path")?.text()?;
        Some((path.to_owned(), entry.number("value")?))
    };
    Ok(entries.filter_map(entry).collect())
}
