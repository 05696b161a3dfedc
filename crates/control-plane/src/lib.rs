//! A real control plane for tests and benchmarks.
