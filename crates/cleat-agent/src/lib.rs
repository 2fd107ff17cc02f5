//! What runs for one managed cluster; dials out, never listens.
