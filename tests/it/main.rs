//! All integration tests, linked once.
