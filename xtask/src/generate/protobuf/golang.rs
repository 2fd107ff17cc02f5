//! The tags of Kubernetes' Go structs: what a protobuf field is called in JSON, and when it is
//! left out. Reads gofmt's layout line by line; it does not understand Go.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

/// What one struct field says about its JSON.
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) inline: bool,
    pub(super) pointer: bool,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
}

/// All tags in the package at `folder`, by struct name and protobuf field number.
pub(super) fn tags(folder: &Path) -> Result<BTreeMap<(String, u32), Tag>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let written_by_hand = name.ends_with(".go") && !name.contains("generated");
        if !written_by_hand || name.ends_with("_test.go") {
            continue;
        }
        let mut current = None;
        for line in std::fs::read_to_string(&path)?.lines() {
            if let Some(rest) = line.strip_prefix("type ") {
                current = rest.strip_suffix(" struct {").map(str::to_owned);
            } else if line == "}" {
                current = None;
            } else if let Some(message) = &current
                && let Some((number, tag)) = tag(line)
            {
                found.insert((message.clone(), number), tag);
            }
        }
    }
    Ok(found)
}

/// ``Name *Type `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"` ``
fn tag(line: &str) -> Option<(u32, Tag)> {
    let (declaration, tags) = line.split_once('`')?;
    let value = |key: &str| {
        let (_, rest) = tags.split_once(&format!("{key}:\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let number = value("protobuf")?.split(',').nth(1)?.parse().ok()?;
    let mut json = value("json")?.split(',');
    let name = json.next()?.to_owned();
    let options: Vec<&str> = json.collect();
    let tag = Tag {
        inline: name.is_empty(),
        name,
        pointer: declaration.split_whitespace().last().is_some_and(|kind| kind.starts_with('*')),
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
    };
    Some((number, tag))
}
