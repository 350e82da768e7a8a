//! The lab as a process, and places for what it writes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long something may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the program of the lab.
pub fn lab_path() -> String {
    env!("CARGO_BIN_EXE_durward-lab").to_owned()
}

pub fn lab(args: &[&str]) -> Output {
    Command::new(lab_path()).args(args).output().unwrap()
}

/// The same, left running, its standard error for the caller.
pub fn begun(args: &[&str]) -> Child {
    Command::new(lab_path())
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn mock(args: &str) -> String {
    format!("'{}' mock {args}", lab_path())
}

/// The document of a measurement that succeeded.
#[track_caller]
pub fn measured(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    document(output)
}

/// A failure: its code, a line for people, and under `--json` a document that says the same.
#[track_caller]
pub fn refused(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(part), "{}", stderr(output));
    // With --json a failure is a document, and without it nothing.
    if !output.stdout.is_empty() {
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["exit_code"], code);
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one document on standard output.
#[track_caller]
pub fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            stderr(output)
        )
    })
}

/// A failure under `--json`: its code, one document that says the same, and a line for people.
#[track_caller]
pub fn failed(output: &Output, code: i32, kind: &str, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(part), "{}", stderr(output));
    let told = document(output);
    assert_eq!(told["format"], "durward-lab-error/1");
    assert_eq!(
        (&told["kind"], &told["exit_code"]),
        (&kind.into(), &code.into())
    );
    assert!(told["error"].as_str().unwrap().contains(part), "{told}");
}

pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits for a condition, with a bound.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A directory that is gone afterwards.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let test = std::env::current_exe().unwrap();
        let name = test.file_stem().unwrap().to_string_lossy().into_owned();
        let path = std::env::temp_dir().join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// The only run below `runs`, once there is one.
    pub fn run(&self) -> PathBuf {
        let mut runs = std::fs::read_dir(self.0.join("runs")).unwrap();
        runs.next().unwrap().unwrap().path()
    }

    /// A server in the shell that answers so many calls, ends, and does not start again.
    pub fn mortal(&self, calls: usize) -> String {
        let (script, grave) = (self.0.join("mortal.sh"), self.0.join("grave"));
        let text = format!(
            r#"[ -e '{grave}' ] && exit 3
left={calls}
while read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in
    *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"m","version":"1"}}}}}}' ;;
    *'"tools/call"'*)
      [ $left -eq 0 ] && {{ : > '{grave}'; exit 3; }}
      left=$((left - 1))
      echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"content":[]}}}}' ;;
  esac
done
"#,
            grave = grave.display()
        );
        std::fs::write(&script, text).unwrap();
        format!("sh '{}'", script.display())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines of a file; none where it is not there.
pub fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}
