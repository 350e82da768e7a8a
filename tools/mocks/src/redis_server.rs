//! A real Redis server for tests: unprivileged, on a free port of this machine, with its data in a directory of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for the first answer.
const START: Duration = Duration::from_secs(20);
/// Time between two attempts to reach a server that starts.
const RETRY: Duration = Duration::from_millis(5);

/// Redis server that ends with this value.
#[derive(Debug)]
pub struct RedisProcess {
    child: Child,
    program: PathBuf,
    directory: PathBuf,
    arguments: Vec<String>,
    port: u16,
}

impl RedisProcess {
    /// Starts the server that `scripts/setup-tests` has unpacked into `cache`, and waits for its first answer. Returns
    /// `None` if it is not there.
    ///
    /// # Errors
    /// If it does not start or answer.
    pub fn start(cache: &Path, arguments: &[&str]) -> io::Result<Option<Self>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let program = cache.join("redis/usr/bin/redis-server");
        if !program.exists() {
            return Ok(None);
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("redis-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(&program, &directory, port, &arguments)?;
        let server = Self {
            child,
            program,
            directory,
            arguments,
            port,
        };
        server.wait()?;
        Ok(Some(server))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test waits for a server that starts; nothing else runs on its thread"
    )]
    fn wait(&self) -> io::Result<()> {
        let end = Instant::now() + START;
        loop {
            match self.ping() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => std::thread::sleep(RETRY),
            }
        }
    }

    fn ping(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        // A server with a password answers as well.
        let mut first = [0_u8; 1];
        stream.read_exact(&mut first)
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server; what it had in memory is lost.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills the server if it runs, and starts it again on the same port.
    ///
    /// # Errors
    /// If it does not start or answer.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        self.child = spawn(&self.program, &self.directory, self.port, &self.arguments)?;
        self.wait()
    }

    /// Stops the server's execution, or continues it.
    ///
    /// # Errors
    /// If the system does not send the signal.
    pub fn set_stopped(&self, is_stopped: bool) -> io::Result<()> {
        let signal = match is_stopped {
            true => Signal::STOP,
            false => Signal::CONT,
        };
        kill_process(Pid::from_child(&self.child), signal)?;
        Ok(())
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(program: &Path, directory: &Path, port: u16, arguments: &[String]) -> io::Result<Child> {
    let libraries = program.ancestors().nth(2).unwrap_or(Path::new("/"));
    let libraries = libraries.join("lib");
    let libraries = libraries.join(format!("{}-linux-gnu", std::env::consts::ARCH));
    Command::new(program)
        .env("LD_LIBRARY_PATH", libraries)
        .args(["--bind", "127.0.0.1", "--save", "", "--port"])
        .arg(port.to_string())
        .arg("--dir")
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
