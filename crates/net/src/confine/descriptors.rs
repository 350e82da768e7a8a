//! Descriptors that whoever started us left open must not reach a child.

/// The first descriptor beyond the standard streams.
const FIRST: std::os::fd::RawFd = 3;

/// Has everything but the standard streams closed when a program is executed.
pub(crate) fn close_inherited() {
    close_fds::set_fds_cloexec(FIRST, &[]);
}
