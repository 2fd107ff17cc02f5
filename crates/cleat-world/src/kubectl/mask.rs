//! What no two runs have in common: times, uids, versions of objects, addresses, keys.

use std::path::Path;

use anyhow::{Context as _, Result};
use regex::Regex;

/// In this order; later ones see what earlier ones left.
const MASKS: [(&str, &str); 19] = [
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (
        r"-----BEGIN CERTIFICATE-----(\\n|[A-Za-z0-9+/=])*-----END CERTIFICATE-----(\\n)?",
        "CERTIFICATE",
    ),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
    (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=HASH"),
    (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-NAME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r#"(resourceVersion"?: ?)"\d+""#, r#"$1"VERSION""#),
    (r"(Resource Version: +)\d+", "${1}VERSION"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"\b3[0-2]\d{3}/TCP", "PORT/TCP"),
    (r"(nodePort: )\d+", "${1}PORT"),
    (r"(^|\s)(\d+[smhd]){1,2}( ago)?(\s|$)", "${1}AGE${4}"),
    (r"\b(web|once)-[a-z0-9]{8,10}\b", "${1}-HASH"),
    (r"^([EWI])\d{4} [\d:.]+ +\d+ (\w+\.go):\d+\]", "$1 $2]"),
    (r"(ca\.crt: +)\d+ bytes", "${1}SOME bytes"),
    // Columns are as wide as their widest cell, which may have been masked.
    (r"(\S)\s{2,}", "$1  "),
];

pub(super) struct Masks {
    masks: Vec<(Regex, &'static str)>,
    dir: String,
    /// A line of a certificate or key in PEM.
    armour: Regex,
}

impl Masks {
    pub(super) fn new(dir: &Path) -> Result<Self> {
        let mut masks = Vec::new();
        for (pattern, replacement) in MASKS {
            let regex = Regex::new(pattern).with_context(|| format!("read the mask {pattern}"))?;
            masks.push((regex, replacement));
        }
        let armour = Regex::new(r"^\s*[A-Za-z0-9+/]{20,76}={0,2}$").context("read a mask")?;
        Ok(Self { masks, dir: dir.display().to_string(), armour })
    }

    /// The lines to compare of what `command` printed.
    pub(super) fn apply(&self, command: &str, said: &str) -> Vec<String> {
        // The texts that explain built-in kinds, and what all kinds have, are upstream's. Of those
        // only the shape they explain is compared.
        let shape_only = command.contains("explain ") && !command.contains("widget.");
        let lines = said.lines().filter(|line| !(self.armour.is_match(line) && line.len() > 40));
        let lines = lines.filter(|line| !(shape_only && is_prose(line)));
        lines.map(|line| self.line(line)).collect()
    }

    fn line(&self, line: &str) -> String {
        let mut line = line.replace(&self.dir, "DIR");
        for (mask, replacement) in &self.masks {
            line = mask.replace_all(&line, *replacement).into_owned();
        }
        line.trim_end().to_owned()
    }
}

fn is_prose(line: &str) -> bool {
    let text = line.trim_start();
    let field = line.contains("\t<") || text.starts_with("enum:");
    text.is_empty() || (line.starts_with("    ") && !field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_nature_is_hidden() {
        let masks = Masks::new(Path::new("/tmp/stage")).unwrap();
        let cases = [
            ("plain   2      13s", "plain  2  AGE"),
            ("plain   2      4m13s", "plain  2  AGE"),
            ("  resourceVersion: \"4711\"", "  resourceVersion: \"VERSION\""),
            ("  creationTimestamp: \"2026-01-02T03:04:05Z\"", "  creationTimestamp: \"TIME\""),
            ("svc   ClusterIP   10.0.0.17   <none>", "svc  ClusterIP  ADDRESS  <none>"),
            ("80:31234/TCP", "80:PORT/TCP"),
            ("error: /tmp/stage/x.yaml", "error: DIR/x.yaml"),
        ];
        for (line, expected) in cases {
            assert_eq!(masks.apply("kubectl get", line), [expected]);
        }
        let explained = "FIELDS:\n  data\t<map[string]string>\n    Upstream's words.\n\n";
        let shape = ["FIELDS:", "  data\t<map[string]string>"];
        assert_eq!(masks.apply("kubectl explain configmap", explained), shape);
        assert_eq!(masks.apply("kubectl explain widget.spec", explained).len(), 4);
    }
}
