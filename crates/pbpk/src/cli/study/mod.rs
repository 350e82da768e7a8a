//! `sim study run`: fits, runs, kinetics, plots and populations that one file describes.
//!
//! A step is a command of this program with its files. Its key is a digest of its words, of the content of its input
//! files and of this program; a step with the key of the last time is not repeated.

mod file;
mod node;
mod report;
mod step;

use std::io::Write;
use std::path::{Path, PathBuf};

use super::args::{ReportArgs, StudyRunArgs};
use super::failure::CommandFailure;
use super::{is_stopped, model};
use file::{StudyArm, StudyFile, StudyFit};
use step::StudyStep;

/// Percentiles of a population.
const PERCENTILES: &str = "5,50,95";

/// A study with its folders.
struct StudyRun {
    file: StudyFile,
    /// Folder of the file, to which its paths are relative.
    base: PathBuf,
    out: PathBuf,
}

pub(super) fn run(
    args: &StudyRunArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let study = StudyRun::open(args)?;
    study.carry_out(err)?;
    Ok(writeln!(out, "{}", study.out.display())?)
}

pub(super) fn report(
    args: &ReportArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let study = StudyRun::open(&args.study)?;
    study.carry_out(err)?;
    let text = report::html(&study)?;
    let beside = study.out.join("report.html");
    let file = args.file.as_ref().unwrap_or(&beside);
    model::to_file(file, &args.study.study, out, |w| {
        w.write_all(text.as_bytes())
    })?;
    match file.as_os_str() == "-" {
        true => Ok(()),
        false => Ok(writeln!(out, "{}", file.display())?),
    }
}

impl StudyRun {
    fn open(args: &StudyRunArgs) -> Result<Self, CommandFailure> {
        let file = StudyFile::read(&args.study)?;
        let base = args.study.parent().unwrap_or(Path::new("")).to_path_buf();
        let stem = args.study.file_stem().unwrap_or_default();
        let out = match &args.out {
            Some(out) => out.clone(),
            None => base.join(stem),
        };
        Ok(Self { file, base, out })
    }

    /// Carries out all steps that are not done yet, fits first.
    fn carry_out(&self, err: &mut (dyn Write + Send)) -> Result<(), CommandFailure> {
        for fit in &self.file.fits {
            self.fit_step(fit)?.carry_out(err)?;
            self.stop_if_asked()?;
        }
        for arm in &self.file.arms {
            for step in self.arm_steps(arm)? {
                step.carry_out(err)?;
                self.stop_if_asked()?;
            }
        }
        Ok(())
    }

    fn stop_if_asked(&self) -> Result<(), CommandFailure> {
        match is_stopped() {
            true => Err(CommandFailure::failure("cancelled".to_owned())
                .with_hint("the same command goes on where it stopped")),
            false => Ok(()),
        }
    }

    fn path(&self, file: &Path) -> PathBuf {
        self.base.join(file)
    }

    /// Returns the words that choose and change the model of an arm.
    fn model_words(&self, arm: &StudyArm) -> Vec<String> {
        let mut words = vec![self.path(&arm.model).display().to_string()];
        for regimen in &arm.regimen {
            words.extend(["--dose".to_owned(), regimen.clone()]);
        }
        for parameter in &arm.parameters {
            words.extend(["--param".to_owned(), parameter.clone()]);
        }
        if let Some(release) = &self.file.osp_version {
            words.extend(["--osp-version".to_owned(), release.clone()]);
        }
        words
    }

    fn data_words(arm: &StudyArm) -> Vec<String> {
        let mut words = Vec::new();
        for dv in &arm.dv {
            words.extend(["--dv".to_owned(), dv.clone()]);
        }
        if let Some(sheet) = &arm.sheet {
            words.extend(["--sheet".to_owned(), sheet.clone()]);
        }
        words
    }

    fn fit_folder(&self, name: &str) -> PathBuf {
        self.out.join("fits").join(name)
    }

    fn arm_folder(&self, name: &str) -> PathBuf {
        self.out.join("arms").join(name)
    }

    fn fit_step(&self, fit: &StudyFit) -> Result<StudyStep, CommandFailure> {
        let arm = self.file.arm(&fit.arm)?;
        let Some(data) = &arm.data else {
            return Err(CommandFailure::misuse(format!(
                "fit '{}': its arm '{}' has no data",
                fit.name, fit.arm
            )));
        };
        let (model, data, folder) = (
            self.path(&arm.model),
            self.path(data),
            self.fit_folder(&fit.name),
        );
        let mut words = vec!["fit".to_owned()];
        words.extend(self.model_words(arm));
        words.insert(2, data.display().to_string());
        for vary in &fit.vary {
            words.extend(["--vary".to_owned(), vary.clone()]);
        }
        let options = [
            ("--error", fit.error.clone()),
            ("--starts", fit.starts.clone()),
            ("--seed", fit.seed.clone()),
            ("--interval", fit.interval.clone()),
        ];
        for (name, value) in options {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        words.extend(Self::data_words(arm));
        let files = [folder.join("fitted.csv"), folder.join("fitted.svg")];
        for (name, file) in ["--csv", "--svg"].into_iter().zip(&files) {
            words.extend([name.to_owned(), file.display().to_string()]);
        }
        words.push("--json".to_owned());
        let [csv, svg] = files;
        Ok(StudyStep {
            name: format!("fit-{}", fit.name),
            words,
            inputs: vec![model, data],
            outputs: vec![csv, svg],
            printed: Some(folder.join("fit.json")),
            out: self.out.clone(),
        })
    }

    fn arm_steps(&self, arm: &StudyArm) -> Result<Vec<StudyStep>, CommandFailure> {
        let folder = self.arm_folder(&arm.name);
        let mut common = self.model_words(arm);
        if let Some(name) = &arm.estimates {
            let fit = self.fit_folder(name).join("fit.json");
            for (path, value) in file::estimates(&fit)? {
                common.extend(["--param".to_owned(), format!("{path}={value:?}")]);
            }
        }
        for output in &arm.outputs {
            common.extend(["--output".to_owned(), output.clone()]);
        }
        let units: Vec<String> = arm
            .units
            .iter()
            .flat_map(|unit| ["--unit".to_owned(), unit.clone()])
            .collect();
        let model = self.path(&arm.model);
        let step = |kind: &str, more: Vec<String>, inputs: Vec<PathBuf>, output: PathBuf| {
            let mut words = vec![kind.to_owned()];
            words.extend(common.iter().cloned().chain(more));
            let mut all = vec![model.clone()];
            all.extend(inputs);
            StudyStep {
                name: format!("arm-{}-{kind}", arm.name),
                words,
                inputs: all,
                outputs: vec![output],
                printed: None,
                out: self.out.clone(),
            }
        };
        let file = |option: &str, file: &Path| vec![option.to_owned(), file.display().to_string()];
        let (curves, kinetics, picture) = (
            folder.join("curves.csv"),
            folder.join("pk.csv"),
            folder.join("curves.svg"),
        );
        let mut run = file("--csv", &curves);
        run.extend(units.clone());
        let mut plot = file("--svg", &picture);
        plot.extend(units);
        plot.extend(["--title".to_owned(), arm.name.clone()]);
        let mut plotted = Vec::new();
        if let Some(data) = &arm.data {
            let data = self.path(data);
            plot.extend(file("--observed", &data));
            plot.extend(Self::data_words(arm));
            plotted.push(data);
        }
        let mut steps = vec![
            step("run", run, Vec::new(), curves.clone()),
            step("pk", file("--csv", &kinetics), Vec::new(), kinetics.clone()),
            step("plot", plot, plotted, picture.clone()),
        ];
        if let Some(people) = &arm.population {
            let (people, out) = (self.path(people), folder.join("population"));
            let mut more = file("--out", &out);
            more.extend(["--percentiles", PERCENTILES, "--bands", "--pk"].map(str::to_owned));
            let output = out.join("percentiles.csv");
            let mut population = step("population", more, vec![people.clone()], output);
            population.words.insert(2, people.display().to_string());
            steps.push(population);
        }
        Ok(steps)
    }
}
