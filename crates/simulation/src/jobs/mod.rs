//! Runs as jobs: what one is asked for, how it is carried out, and the threads and processes that do it.

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

pub use compute::Piece;
pub use ended::Ended;
pub use ospsuite::{Ospsuite, Told};
pub use pool::{Keeper, Pool, Settings};
pub use probe::probe;
pub use stop::Stop;
pub use work::{KIND_POPULATION, KIND_RUN, Solution, Work};
pub use worker::{WORKER_COMMAND, work as work_for_another};
