//! Steps of a study.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::super::cache::FileStamp;
use super::super::failure::CommandFailure;
use super::super::{OK, batch, carry_out};

/// A command of this program with its files.
pub(super) struct StudyStep {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) inputs: Vec<PathBuf>,
    pub(super) outputs: Vec<PathBuf>,
    /// File for what the command prints.
    pub(super) printed: Option<PathBuf>,
    /// Folder of the study's results.
    pub(super) out: PathBuf,
}

impl StudyStep {
    fn record(&self, extension: &str) -> PathBuf {
        self.out
            .join("steps")
            .join(format!("{}.{extension}", self.name))
    }

    /// Digest of the words, of the content of the input files and of this program.
    fn key(&self) -> Result<String, CommandFailure> {
        let mut all = Sha256::new();
        let mut add = |piece: &[u8]| {
            all.update((piece.len() as u64).to_le_bytes());
            all.update(piece);
        };
        let program = std::env::current_exe().and_then(|exe| FileStamp::of(&exe));
        add(format!("{} {program:?}", env!("CARGO_PKG_VERSION")).as_bytes());
        for word in &self.words {
            add(word.as_bytes());
        }
        for input in &self.inputs {
            let name = input.display();
            let content = fs::read(input)
                .map_err(|e| CommandFailure::failure(format!("cannot read {name}: {e}")))?;
            add(&content);
        }
        let digest = all.finalize();
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Carries the step out, unless it is done.
    pub(super) fn carry_out(&self, err: &mut (dyn Write + Send)) -> Result<(), CommandFailure> {
        let key = self.key()?;
        let record = self.record("key");
        let is_done = fs::read_to_string(&record).is_ok_and(|known| known == key)
            && self
                .outputs
                .iter()
                .chain(&self.printed)
                .all(|file| file.is_file());
        if is_done {
            return Ok(writeln!(err, "{}: done before", self.name)?);
        }
        let parsed = batch::parse_words(self.words.clone());
        let args = parsed.map_err(|why| CommandFailure::misuse(format!("{}: {why}", self.name)))?;
        drop(fs::remove_file(&record));
        let files = [record.clone()];
        for file in self.outputs.iter().chain(&self.printed).chain(&files) {
            make_folder(file)?;
        }
        let (mut out, mut messages) = (Vec::new(), Vec::new());
        let code = carry_out(&args, &mut out, &mut messages);
        err.write_all(&messages)?;
        if code != OK {
            return Err(
                CommandFailure::failure(format!("the step {} failed", self.name))
                    .with_hint("the same command goes on with this step"),
            );
        }
        if let Some(file) = &self.printed {
            write(file, &out)?;
        }
        write(&self.record("log"), &messages)?;
        write(&record, key.as_bytes())?;
        Ok(writeln!(err, "{}: done", self.name)?)
    }

    /// Warnings of the step.
    pub(super) fn warnings(&self) -> Vec<String> {
        let log = fs::read_to_string(self.record("log")).unwrap_or_default();
        let warnings = log
            .lines()
            .filter_map(|line| line.strip_prefix("warning: "));
        warnings.map(str::to_owned).collect()
    }
}

fn make_folder(file: &Path) -> Result<(), CommandFailure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).map_err(|e| {
        CommandFailure::failure(format!("cannot make the folder {}: {e}", folder.display()))
    })
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    fs::write(file, bytes)
        .map_err(|e| CommandFailure::failure(format!("cannot write {}: {e}", file.display())))
}
