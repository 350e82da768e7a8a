//! `durward ssh replay`: checks the recording of a terminal, and plays it.

use std::io::{self, Read as _, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::ssh::recording::{self, Recording};
use clap::Args;
use toolkit::files::unreadable;

pub const HELP: &str = "\
Examples:
  durward ssh replay recording.cast                 check it, then play it
  durward ssh replay --check recording.cast         check it, and play nothing
  durward ssh replay --hash 8f0c… recording.cast    and compare its last hash with this one

The hash of a recording is part of the result of ssh_terminal_close. Without --hash a recording that was rewritten as a
whole is not recognised. Other asciicast players can play the file too, without checking it.

Exit codes: 0 the recording is unchanged; 1 it was changed: the line is printed, and nothing is played.";

/// Longest recording that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Arguments of `durward ssh replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check it, and play nothing
    #[arg(long)]
    check: bool,
    /// The last hash that it must have
    #[arg(long, value_name = "HEX")]
    hash: Option<String>,
    /// How fast it is played
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Longest pause, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=3600))]
    pause: u64,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: Option<f64> = text.parse().ok();
    let fits = speed.filter(|speed| (0.01..=1000.0).contains(speed));
    fits.ok_or_else(|| "must be a number from 0.01 to 1000".to_owned())
}

/// Checks and plays; whether the recording is as it was written.
pub fn run(
    args: &ReplayArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Result<bool, String>> {
    let recording = match read(args) {
        Ok(recording) => recording,
        Err(wrong) => return Ok(Err(format!("{}: {wrong}", args.file.display()))),
    };
    let other = args
        .hash
        .as_ref()
        .filter(|hash| **hash != recording.hash.to_string());
    let wrong = match (&recording.finding, other) {
        (Some(finding), _) => finding.to_string(),
        (None, Some(_)) => format!(
            "it ends with the hash {}: it is another recording, or was rewritten",
            recording.hash
        ),
        (None, None) => String::new(),
    };
    if !wrong.is_empty() {
        writeln!(err, "CHANGED  {}: {wrong}", args.file.display())?;
        return Ok(Ok(false));
    }
    let end = recording.end.as_deref().unwrap_or_default();
    writeln!(
        err,
        "UNCHANGED  {}, {} parts, {end}, hash {}",
        recording.title,
        recording.events.len(),
        recording.hash
    )?;
    if !args.check {
        play(&recording, args, out)?;
    }
    Ok(Ok(true))
}

fn read(args: &ReplayArgs) -> Result<Recording, String> {
    let file = std::fs::File::open(&args.file).map_err(|error| unreadable(&error))?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(&error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is longer than {FILE_BYTES_MAX} bytes"));
    }
    recording::read(&text)
}

fn play(recording: &Recording, args: &ReplayArgs, out: &mut dyn Write) -> io::Result<()> {
    let mut last = Duration::ZERO;
    for event in &recording.events {
        let pause = event.at.saturating_sub(last).as_secs_f64() / args.speed;
        let longest = Duration::from_secs(args.pause);
        wait(Duration::try_from_secs_f64(pause).map_or(longest, |pause| pause.min(longest)));
        last = event.at;
        out.write_all(event.text.as_bytes())?;
        out.flush()?;
    }
    // Colours and the like end with it.
    out.write_all(b"\x1b[0m\n")
}

fn wait(pause: Duration) {
    let until = Instant::now() + pause;
    while let Some(left) = until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
    {
        std::thread::park_timeout(left);
    }
}
