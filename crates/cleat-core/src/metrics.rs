//! How policies stand, as numbers for dashboards: the text that Prometheus reads, under the names that
//! dashboards for Open Cluster Management use.

use alloc::string::String;
use core::fmt::{Display, Write as _};

/// A root policy on the hub, or a copy of one.
#[derive(Clone, Copy, Debug)]
pub struct OnHub<'a> {
    /// Of the root.
    pub namespace: &'a str,
    pub policy: &'a str,
    /// Whose copy it is; none of the root itself.
    pub cluster: Option<&'a str>,
    pub compliant: Option<&'a str>,
}

/// A ConfigurationPolicy on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct OnCluster<'a> {
    pub namespace: &'a str,
    pub policy: &'a str,
    pub severity: &'a str,
    pub compliant: Option<&'a str>,
    /// How often it was evaluated since the process began, and how many seconds that took.
    pub evaluations: u64,
    pub seconds: f64,
}

pub fn of_hub<'a>(all: impl IntoIterator<Item = OnHub<'a>>) -> String {
    let name = "policy_governance_info";
    let mut page = Page::default();
    page.head(name, "gauge", "How policies stand: 0 compliant, 1 noncompliant, -1 neither");
    for OnHub { namespace, policy, cluster, compliant } in all {
        let kind = if cluster.is_some() { "propagated" } else { "root" };
        let labels = [
            ("cluster_namespace", cluster.unwrap_or("<null>")),
            ("policy", policy),
            ("policy_namespace", namespace),
            ("type", kind),
        ];
        page.sample(name, &labels, standing(compliant));
    }
    page.text
}

pub fn of_cluster(all: &[OnCluster<'_>]) -> String {
    let mut page = Page::default();
    let name = "cluster_policy_governance_info";
    page.head(name, "gauge", "How policies stand: 0 compliant, 1 noncompliant, -1 neither");
    for one in all {
        let labels = [
            ("kind", "ConfigurationPolicy"),
            ("policy", one.policy),
            ("policy_namespace", one.namespace),
            ("severity", one.severity),
        ];
        page.sample(name, &labels, standing(one.compliant));
    }
    let name = "config_policy_evaluation_total";
    page.head(name, "counter", "How often a policy was evaluated");
    for one in all {
        page.sample(name, &[("name", one.policy)], one.evaluations);
    }
    let name = "config_policy_evaluation_seconds_total";
    page.head(name, "counter", "How long evaluations of a policy took");
    for one in all {
        page.sample(name, &[("name", one.policy)], one.seconds);
    }
    page.text
}

fn standing(compliant: Option<&str>) -> i8 {
    match compliant {
        Some("Compliant") => 0,
        Some("NonCompliant") => 1,
        _ => -1,
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a text cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            for c in text.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        let _ = writeln!(self.text, "}} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_and_copies_are_told_apart() {
        let root = OnHub { namespace: "team", policy: "p", cluster: None, compliant: None };
        let copy = OnHub { cluster: Some("c1"), compliant: Some("NonCompliant"), ..root };
        let well = OnHub { cluster: Some("c2"), compliant: Some("Compliant"), ..root };
        let text = of_hub([root, copy, well]);
        let expected = "\
# HELP policy_governance_info How policies stand: 0 compliant, 1 noncompliant, -1 neither
# TYPE policy_governance_info gauge
policy_governance_info{cluster_namespace=\"<null>\",policy=\"p\",policy_namespace=\"team\",type=\"root\"} -1
policy_governance_info{cluster_namespace=\"c1\",policy=\"p\",policy_namespace=\"team\",type=\"propagated\"} 1
policy_governance_info{cluster_namespace=\"c2\",policy=\"p\",policy_namespace=\"team\",type=\"propagated\"} 0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn evaluations_are_counted_for_each_policy() {
        let one = OnCluster {
            namespace: "c1",
            policy: "p",
            severity: "hi\"gh\\",
            compliant: Some("Terminating"),
            evaluations: 3,
            seconds: 0.25,
        };
        let text = of_cluster(&[one]);
        assert!(text.contains(r#"policy_namespace="c1",severity="hi\"gh\\"} -1"#), "{text}");
        assert!(text.contains("config_policy_evaluation_total{name=\"p\"} 3\n"), "{text}");
        assert!(
            text.contains("config_policy_evaluation_seconds_total{name=\"p\"} 0.25\n"),
            "{text}"
        );
    }
}
