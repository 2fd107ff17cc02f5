//! The kinds Cleat reads and writes, and what makes them valid; no client.
