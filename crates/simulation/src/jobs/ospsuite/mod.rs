//! Runs over R and its package `ospsuite`: one R process in each worker process, kept warm between runs. R cannot be
//! interrupted, so one with an unwanted run is killed, and the next run starts another one.

mod request;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::worker::{Frame, Worker};
use pbpk::watch::{Question, Watch};
use serde::{Deserialize, Serialize};

use super::engine::ASK_MS;
use crate::fault::{Fault, Kind};
pub use request::{IndividualCurves, IndividualRequest};

/// The program that R runs; it comes as the first frame.
const SCRIPT: &str = include_str!("worker.R");
/// Reads that frame and runs it.
const FIRST: &str = r#"input<-file("stdin","rb");invisible(readBin(input,"raw",1L));count<-readBin(input,"integer",2L,4L,endian="little")[[1L]];eval(parse(text=rawToChar(readBin(input,"raw",count)),encoding="UTF-8"),globalenv())"#;
/// To R: its program.
const PROGRAM: u8 = b'r';
/// To R: who it is.
const WHO: u8 = b't';
/// From R: who it is, a line each: R, the package's version, whether it is a stand-in, and a folder of its own.
const WHO_TOLD: u8 = b'T';
/// To R: a run.
const RUN: u8 = b'w';
/// From R: numbers.
const NUMBERS: u8 = b'n';
/// From R: why there are none, as a text.
const FAULT: u8 = b'f';
/// Prefix of the folders that R makes for itself.
const FOLDER: &str = "Rtmp";

/// How R is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspsuiteLauncher {
    /// The program `Rscript`: a whole path, or a name that is looked for in `/usr/local/bin`, `/usr/bin` and `/bin`.
    pub rscript: PathBuf,
    /// Folders with packages, before R's own.
    pub libraries: Vec<PathBuf>,
}

/// An R that has the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OspsuiteInfo {
    /// The version of R, as it says it.
    pub r: String,
    /// The version of the package.
    pub package: String,
    /// Whether the package is a stand-in for the genuine one.
    pub stands_in: bool,
    /// A folder that R removes when it ends by itself.
    folder: PathBuf,
}

impl OspsuiteInfo {
    /// Returns the name of the engine.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.stands_in {
            true => "ospsuite (stand-in)",
            false => "ospsuite",
        }
    }
}

/// An R process that has the package loaded.
#[derive(Debug)]
pub struct OspsuiteSession {
    worker: Worker,
    /// How it was started.
    pub how: OspsuiteLauncher,
    /// Who it is.
    pub told: OspsuiteInfo,
}

impl OspsuiteSession {
    /// Starts R and has it load the package.
    ///
    /// # Errors
    /// [`Kind::EnvironmentMissing`] where either cannot be had; the answer of `ask`.
    pub fn start(how: &OspsuiteLauncher, ask: Question<'_>) -> Result<Self, Fault> {
        let missing = |why: String| Fault::new(Kind::EnvironmentMissing, why);
        let libraries = std::env::join_paths(&how.libraries)
            .map_err(|error| missing(format!("r_libs: {error}")))?;
        let words = ["--vanilla", "-e", FIRST].map(OsStr::new);
        let variables = [
            ("PATH", OsStr::new("/usr/local/bin:/usr/bin:/bin")),
            ("LANG", OsStr::new("C.UTF-8")),
            ("HOME", OsStr::new("/")),
            ("R_LIBS", libraries.as_os_str()),
        ];
        let mut worker = Worker::start_as(&how.rscript, &words, &variables).map_err(|error| {
            missing(format!(
                "{} cannot be started: {error}",
                how.rscript.display()
            ))
        })?;
        let gone = |_| missing("R has ended before it said anything".to_owned());
        let speaker = worker.speaker();
        speaker.say(PROGRAM, SCRIPT.as_bytes()).map_err(gone)?;
        speaker.say(WHO, b"").map_err(gone)?;
        let told = match answer(&mut worker, ask)? {
            Some((WHO_TOLD, told)) => String::from_utf8_lossy(&told).into_owned(),
            Some((FAULT, why)) => return Err(missing(String::from_utf8_lossy(&why).into_owned())),
            _ => return Err(missing("R has ended before it had the package".to_owned())),
        };
        let lines: Vec<&str> = told.lines().collect();
        let [r, package, kind, folder] = lines.as_slice() else {
            return Err(missing(format!("R says {told:?} of itself")));
        };
        let told = OspsuiteInfo {
            r: (*r).to_owned(),
            package: (*package).to_owned(),
            stands_in: *kind == "stand-in",
            folder: PathBuf::from(folder),
        };
        Ok(Self {
            worker,
            how: how.clone(),
            told,
        })
    }

    /// Runs one individual. Where this fails for another reason than the run itself, the session is over.
    ///
    /// # Errors
    /// The answer of `ask`; [`Kind::InteropError`] where R has ended. Inside: why R could not run it.
    pub fn run(
        &mut self,
        request: &IndividualRequest<'_>,
        ask: Question<'_>,
    ) -> Result<Result<IndividualCurves, String>, Fault> {
        let gone = || Fault::new(Kind::InteropError, "R has ended in the middle of a run");
        let text = request.text()?;
        let speaker = self.worker.speaker();
        speaker.say(RUN, text.as_bytes()).map_err(|_| gone())?;
        match answer(&mut self.worker, ask)? {
            Some((NUMBERS, bytes)) => IndividualCurves::read(&bytes, request.outputs.len()).map(Ok),
            Some((FAULT, why)) => Ok(Err(String::from_utf8_lossy(&why).into_owned())),
            _ => Err(gone()),
        }
    }
}

impl Drop for OspsuiteSession {
    fn drop(&mut self) {
        net::worker::kill(self.worker.id());
        // One that is killed leaves its folder behind.
        let name = self.told.folder.file_name().and_then(OsStr::to_str);
        if name.is_some_and(|name| name.starts_with(FOLDER)) {
            let _ = std::fs::remove_dir_all(&self.told.folder);
        }
    }
}

/// Returns the next frame of a worker; `None` if it has ended. It is killed if `ask` says so.
fn answer(worker: &mut Worker, ask: Question<'_>) -> Result<Option<Frame>, Fault> {
    let (process, is_done) = (worker.id(), AtomicBool::new(false));
    let watch = Watch::new(Some(ask));
    let waiting = std::thread::current();
    std::thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let frame = worker.listen().ok();
            is_done.store(true, Ordering::Release);
            waiting.unpark();
            frame
        });
        let mut ended = Ok(());
        while !is_done.load(Ordering::Acquire) {
            if ended.is_ok()
                && let Err(cause) = watch.ask()
            {
                ended = Err(cause);
                net::worker::kill(process);
            }
            std::thread::park_timeout(Duration::from_millis(ASK_MS));
        }
        let frame = listening.join().unwrap_or_default();
        ended.map(|()| frame).map_err(Fault::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_r_it_is_said() {
        let how = |rscript: &str| OspsuiteLauncher {
            rscript: PathBuf::from(rscript),
            libraries: Vec::new(),
        };
        for (rscript, said) in [
            ("/nowhere/Rscript", "/nowhere/Rscript cannot be started"),
            ("/bin/true", "R has ended before it"),
        ] {
            let fault = OspsuiteSession::start(&how(rscript), &|| None).unwrap_err();
            assert_eq!(fault.kind, Kind::EnvironmentMissing);
            assert!(fault.message.contains(said), "{fault}");
        }
    }

    #[test]
    fn one_whose_run_is_not_wanted_is_killed_and_its_folder_goes_with_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = std::env::temp_dir().join(format!("ospsuite-killed-{}", std::process::id()));
        let folder = place.join("Rtmp-test");
        std::fs::create_dir_all(&folder).unwrap();
        let told = format!("R version 0\n0.0.1\nstand-in\n{}", folder.display());
        // Says who it is, and nothing more.
        let length: String = [told.len(), 0, 0, 0, 0, 0, 0, 0]
            .map(|byte| format!("\\{byte:03o}"))
            .concat();
        let script = format!("#!/bin/sh\nprintf 'T{length}%s' '{told}'\nexec sleep 600\n");
        let rscript = place.join("Rscript");
        std::fs::write(&rscript, script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&rscript, mode).unwrap();
        let how = OspsuiteLauncher {
            rscript,
            libraries: Vec::new(),
        };
        let mut session = OspsuiteSession::start(&how, &|| None).unwrap();
        assert_eq!(session.told.name(), "ospsuite (stand-in)");
        let request = IndividualRequest {
            file: &place,
            sha256: "",
            outputs: &[],
            parameters: &std::collections::BTreeMap::new(),
        };
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let ask = || {
            let cancelled = Some(pbpk::watch::Interrupt::Cancelled);
            cancelled.filter(|_| asked.fetch_add(1, Ordering::Relaxed) == 2)
        };
        let fault = session.run(&request, &ask).unwrap_err();
        assert_eq!(fault.kind, Kind::Cancelled);
        assert!(folder.exists());
        drop(session);
        assert!(!folder.exists());
        std::fs::remove_dir_all(&place).unwrap();
    }
}
