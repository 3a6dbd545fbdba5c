//! A folder, a file or the default corpus in; documents out.
