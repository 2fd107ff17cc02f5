//! Which of a work's `manifestConfigs` speak for an object.
//!
//! Group and resource must be equal; name and namespace may be patterns with `*`. Nothing here
//! knows what a configuration says, only whom it is about.

use crate::id::Id;

/// Whether a configuration's identifier means this object. An absent field is an empty one.
pub fn means(identifier: &Id, object: &Id) -> bool {
    identifier.group == object.group
        && identifier.resource == object.resource
        && fits(&identifier.name, &object.name)
        && fits(&identifier.namespace, &object.namespace)
}

/// The setting of the first configuration about this object that has that setting. Update strategy,
/// feedback rules and condition rules are each found so, independently of each other.
pub fn first<'a, C, T>(
    configs: &'a [C],
    object: &Id,
    identifier: impl Fn(&C) -> Id,
    setting: impl Fn(&'a C) -> Option<T>,
) -> Option<T> {
    configs.iter().filter(|config| means(&identifier(config), object)).find_map(setting)
}

/// The setting of the last such configuration, as the scrape type has it.
pub fn last<'a, C, T>(
    configs: &'a [C],
    object: &Id,
    identifier: impl Fn(&C) -> Id,
    setting: impl Fn(&'a C) -> Option<T>,
) -> Option<T> {
    configs.iter().rev().filter(|config| means(&identifier(config), object)).find_map(setting)
}

/// Whether `text` is `pattern`, in which `*` stands for any text, also none.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|head| text.strip_prefix(head)) else {
        return false;
    };
    let Some(tail) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The earliest place leaves the most for the parts after it.
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(group: &str, resource: &str, namespace: &str, name: &str) -> Id {
        Id {
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "abc", true),
            ("a*", "ba", false),
            ("*c", "abc", true),
            ("*c", "abcd", false),
            ("a*c", "ac", true),
            ("a*c", "a", false),
            ("a*a", "a", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("**", "x", true),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("a.c", "abc", false),
            ("web-*-db", "web-1-db-2-db", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn identifiers() {
        let object = id("apps", "deployments", "web", "front");
        for (identifier, expected) in [
            (id("apps", "deployments", "web", "front"), true),
            (id("apps", "deployments", "*", "f*"), true),
            (id("apps", "deployments", "", "front"), false),
            (id("*", "deployments", "web", "front"), false),
            (id("apps", "*", "web", "front"), false),
            (id("", "deployments", "web", "front"), false),
        ] {
            assert_eq!(means(&identifier, &object), expected, "{identifier}");
        }
        assert!(means(&id("", "nodes", "*", "n"), &id("", "nodes", "", "n")));
    }

    #[test]
    fn each_setting_is_found_for_itself() {
        let all = id("", "configmaps", "*", "*");
        let one = id("", "configmaps", "a", "b");
        let configs = [
            (id("", "secrets", "*", "*"), Some(1), Some(1)),
            (all.clone(), None, Some(2)),
            (one.clone(), Some(3), Some(3)),
            (all, Some(4), None),
        ];
        let name = |config: &(Id, Option<i32>, Option<i32>)| config.0.clone();
        assert_eq!(first(&configs, &one, name, |config| config.1), Some(3));
        assert_eq!(first(&configs, &one, name, |config| config.2), Some(2));
        assert_eq!(last(&configs, &one, name, |config| config.2), Some(3));
        assert_eq!(last(&configs, &id("", "pods", "a", "b"), name, |config| config.1), None);
    }
}
