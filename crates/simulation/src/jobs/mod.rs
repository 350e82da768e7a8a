//! Runs as jobs: what one is asked for, how it is carried out, and the threads that do it.

mod execute;
mod pool;
mod stop;
mod work;

pub use execute::individual;
pub use pool::{Keeper, Pool, Settings};
pub use stop::Stop;
pub use work::{KIND_POPULATION, KIND_RUN, Work};
