//! Revisioned keys.
