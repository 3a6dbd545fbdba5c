//! Vectors in, nearest rows out. Holds rows, never text.
