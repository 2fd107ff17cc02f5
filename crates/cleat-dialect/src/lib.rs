//! How Go and client-go write things that users of Kubernetes see: JSONPath, quoting, `%v`, YAML,
//! patterns of names, differences of texts, and what becomes of the fields of built-in objects.
//!
//! It also holds the one engine for CEL. Pure text in, pure text out. The API server and the planners both need it, and neither may
//! depend on the other.

pub mod cel;
pub mod difflib;
pub mod filepath;
pub mod gotypes;
pub mod jsonpath;
pub mod quote;
pub mod regexp;
pub mod yaml;
