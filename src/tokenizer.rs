//! Byte-level BPE: train, load, encode with offsets, count.
