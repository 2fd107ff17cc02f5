//! Numbers of things, as people write them.

use alloc::format;
use alloc::string::String;

/// `1 work`, `2 works`.
pub fn number(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
