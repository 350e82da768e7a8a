//! Nothing of its own: the tests compare the solver of `pbpk` with an independent one.
