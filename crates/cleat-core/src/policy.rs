//! ConfigurationPolicies: what objects of a cluster must be like, and what is done about it.

pub mod compare;
