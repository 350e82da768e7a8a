//! Thread on which stores talk to their servers, apart from the threads of calls.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use state::StoreUnavailable;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Thread with a runtime. Dropping it cancels all of its tasks and waits for the thread.
#[derive(Debug)]
pub struct StoreThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl StoreThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread or no poller left.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("durward-store".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
            })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the handle by which tasks are spawned on the thread.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a task on the thread. Dropping the future drops the result, not the task.
    pub(crate) fn run_detached<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        task: F,
    ) -> impl Future<Output = Result<T, StoreUnavailable>> + Send + use<T, F> {
        let (done, result) = oneshot::channel();
        self.handle.spawn(async move {
            let _ = done.send(task.await);
        });
        async { result.await.map_err(|_| StoreUnavailable::new("it ends")) }
    }

    /// Runs a task that can fail, as [`StoreThread::run_detached`].
    pub(crate) fn run<T: Send + 'static, F>(
        &self,
        task: F,
    ) -> impl Future<Output = Result<T, StoreUnavailable>> + Send + use<T, F>
    where
        F: Future<Output = Result<T, StoreUnavailable>> + Send + 'static,
    {
        let task = self.run_detached(task);
        async { task.await? }
    }

    /// Runs a task on the thread and waits for its result, at most for `wait` if there is one. Blocks; must not be called
    /// on a thread of a runtime. Returns `None` if there is no result in time.
    pub fn run_blocking<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
        wait: Option<Duration>,
    ) -> Option<T> {
        let (done, result) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = done.send(task.await);
        });
        match wait {
            Some(wait) => result.recv_timeout(wait).ok(),
            None => result.recv().ok(),
        }
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // The tasks release their files and sockets before this returns.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
