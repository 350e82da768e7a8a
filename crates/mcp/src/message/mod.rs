//! What a message is: its method, its names, its reply, and the frames that are ours to write.

pub mod announced;
pub mod batch;
pub mod bridged;
pub mod era;
pub mod frames;
pub mod method;
pub mod mirrored;
pub mod refusal;
pub mod reply;
pub mod request;
pub mod shapes;
pub mod splice;
