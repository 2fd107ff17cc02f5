//! Services and what carries traffic to them.

use serde_json::Value;

use super::Tables;
use super::cell::{
    Cell, Row, age, at, first_few, int_or_string, list_at, name, number_at, text, text_at, wide,
};
use crate::status::GroupResource;

pub(super) const CORE: Tables = &[
    (
        "services",
        &[
            name(),
            text("Type", Cell::Text("spec.type", "")),
            text("Cluster-IP", Cell::Made(cluster_ip, "The address inside the cluster.")),
            text("External-IP", Cell::Made(external_ip, "Addresses outside the cluster.")),
            text("Port(s)", Cell::Made(service_ports, "Ports, node ports and protocols.")),
            age(),
            wide("Selector", Cell::Made(|row| row.labels("spec.selector"), "Labels of its pods.")),
        ],
    ),
    (
        "endpoints",
        &[name(), text("Endpoints", Cell::Made(endpoints, "Addresses and ports.")), age()],
    ),
];

pub(super) const NETWORKING: Tables = &[
    (
        "ingresses",
        &[
            name(),
            text("Class", Cell::Text("spec.ingressClassName", "<none>")),
            text("Hosts", Cell::Made(hosts, "The hosts of its rules.")),
            text("Address", Cell::Made(|row| load_balancer(row).into(), "Where it is reached.")),
            text("Ports", Cell::Made(ingress_ports, "The ports it listens on.")),
            age(),
        ],
    ),
    (
        "ingressclasses",
        &[
            text("Name", Cell::Made(ingress_class_name, "The class, and whether it is default.")),
            text("Controller", Cell::Text("spec.controller", "")),
            text("Parameters", Cell::Made(parameters, "The object that configures it.")),
            age(),
        ],
    ),
    (
        "networkpolicies",
        &[
            name(),
            text(
                "Pod-Selector",
                Cell::Made(|row| row.selector("spec.podSelector"), "Labels of the pods concerned."),
            ),
            age(),
        ],
    ),
    ("servicecidrs", &[name(), text("CIDRs", Cell::Joined("spec.cidrs", "")), age()]),
    (
        "ipaddresses",
        &[name(), text("ParentRef", Cell::Made(parent, "The object that has the address."))],
    ),
];

pub(super) const DISCOVERY: Tables = &[(
    "endpointslices",
    &[
        name(),
        text("AddressType", Cell::Text("addressType", "")),
        text("Ports", Cell::Made(slice_ports, "Its ports.")),
        text("Endpoints", Cell::Made(slice_endpoints, "Its addresses.")),
        age(),
    ],
)];

fn cluster_ip(row: &Row<'_>) -> Value {
    let first = row.list("spec.clusterIPs").first().and_then(Value::as_str);
    Value::from(first.unwrap_or_else(|| row.text_or("spec.clusterIP", "<none>")))
}

fn external_ip(row: &Row<'_>) -> Value {
    let mut addresses: Vec<&str> =
        row.list("spec.externalIPs").iter().filter_map(Value::as_str).collect();
    let balancer = load_balancer(row);
    let absent = match row.text("spec.type") {
        "ClusterIP" | "NodePort" => "<none>",
        "LoadBalancer" => {
            if !balancer.is_empty() {
                addresses.insert(0, &balancer);
            }
            "<pending>"
        }
        "ExternalName" => return Value::from(row.text("spec.externalName")),
        _ => return Value::from("<unknown>"),
    };
    Value::from(if addresses.is_empty() { absent.to_owned() } else { addresses.join(",") })
}

/// Addresses or names of a load balancer, each once and in order.
fn load_balancer(row: &Row<'_>) -> String {
    let mut addresses: Vec<&str> = row
        .list("status.loadBalancer.ingress")
        .iter()
        .map(|one| match text_at(one, "ip") {
            "" => text_at(one, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

fn service_ports(row: &Row<'_>) -> Value {
    let ports: Vec<String> = row
        .list("spec.ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (number_at(port, "port"), text_at(port, "protocol"));
            match number_at(port, "nodePort") {
                ..=0 => format!("{number}/{protocol}"),
                node_port => format!("{number}:{node_port}/{protocol}"),
            }
        })
        .collect();
    Value::from(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") })
}

fn endpoints(row: &Row<'_>) -> Value {
    let subsets = row.list("subsets");
    if subsets.is_empty() {
        return Value::from("<none>");
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = list_at(subset, "addresses").iter().map(|one| text_at(one, "ip"));
        let ports = list_at(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in ports {
            let port = number_at(port, "port");
            all.extend(addresses.clone().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    Value::from(first_few(&all, 3, ","))
}

/// What follows the third rule is counted, with or without a host.
fn hosts(row: &Row<'_>) -> Value {
    let rules = row.list("spec.rules");
    let hosts: Vec<&str> =
        rules.iter().map(|rule| text_at(rule, "host")).filter(|host| !host.is_empty()).collect();
    let shown = hosts.get(..3).unwrap_or(&hosts).join(",");
    let third =
        rules.iter().enumerate().filter(|(_, rule)| !text_at(rule, "host").is_empty()).nth(2);
    Value::from(match third {
        _ if hosts.is_empty() => "*".to_owned(),
        Some((index, _)) if index + 1 < rules.len() => {
            format!("{shown} + {} more...", rules.len() - 3)
        }
        _ => shown,
    })
}

fn ingress_ports(row: &Row<'_>) -> Value {
    Value::from(if row.list("spec.tls").is_empty() { "80" } else { "80, 443" })
}

fn ingress_class_name(row: &Row<'_>) -> Value {
    let name = row.text("metadata.name");
    let default = row.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
    Value::from(if default { format!("{name} (default)") } else { name.to_owned() })
}

fn parameters(row: &Row<'_>) -> Value {
    let Some(reference) = row.at("spec.parameters") else { return Value::from("<none>") };
    let (kind, name) = (text_at(reference, "kind"), text_at(reference, "name"));
    Value::from(match at(reference, "apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    })
}

fn parent(row: &Row<'_>) -> Value {
    let Some(reference) = row.at("spec.parentRef") else { return Value::from("<none>") };
    let what = GroupResource {
        group: text_at(reference, "group"),
        resource: text_at(reference, "resource"),
    };
    let what = what.to_string().to_lowercase();
    let name = text_at(reference, "name");
    Value::from(match text_at(reference, "namespace") {
        "" => format!("{what}/{name}"),
        namespace => format!("{what}/{namespace}/{name}"),
    })
}

fn slice_ports(row: &Row<'_>) -> Value {
    let ports = row.list("ports").iter().map(|port| match at(port, "port") {
        Some(number) => int_or_string(Some(number), "*"),
        None => int_or_string(at(port, "name"), "*"),
    });
    or_unset(&ports.collect::<Vec<_>>())
}

fn slice_endpoints(row: &Row<'_>) -> Value {
    let addresses = row.list("endpoints").iter().flat_map(|one| list_at(one, "addresses"));
    or_unset(&addresses.map(|one| int_or_string(Some(one), "")).collect::<Vec<_>>())
}

fn or_unset(all: &[String]) -> Value {
    Value::from(match first_few(all, 3, ",") {
        text if text.is_empty() => "<unset>".to_owned(),
        text => text,
    })
}
