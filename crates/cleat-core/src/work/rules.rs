use super::observed::Finding;
use alloc::vec::Vec;
pub fn aggregate(_: &[cleat_api::manifestwork::ManifestCondition]) -> Vec<Finding> {
    Vec::new()
}
pub fn evaluate(
    _: &serde_json::Value,
    _: &[cleat_api::manifestwork::ConditionRule],
) -> Vec<Finding> {
    Vec::new()
}
