//! Runs as jobs: the work of one, its execution, and the threads and processes for it.

mod compute;
mod counted;
mod ended;
mod engine;
mod ospsuite;
mod pool;
mod population;
mod probe;
mod stop;
mod work;
mod worker;

pub use compute::WorkPiece;
pub use ended::EndedJobs;
pub use ospsuite::{OspsuiteInfo, OspsuiteLauncher};
pub use pool::{JobPool, PoolSettings, ResultKeeper};
pub use probe::probe;
pub use stop::StopSignal;
pub use work::{KIND_POPULATION, KIND_RUN, RunWork, SolutionInfo};
pub use worker::{WORKER_COMMAND, work as work_for_another};
