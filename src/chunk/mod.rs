//! Documents in, chunks out.
