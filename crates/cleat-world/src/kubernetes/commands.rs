//! The command lines of etcd, kube-apiserver and kube-controller-manager.
//!
//! Chosen for tests on loopback without nodes: nothing here is advice for a cluster that runs pods.

use std::path::Path;
use std::process::Command;

use super::Durability;
use super::binaries::Binaries;
use super::certificates::Files;

/// The controllers that have something to do without kubelets.
const CONTROLLERS: [&str; 17] = [
    "bootstrap-signer-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "token-cleaner-controller",
    "ttl-after-finished-controller",
];

pub(crate) struct EtcdPorts {
    pub(crate) client: u16,
    pub(crate) peer: u16,
}

pub(crate) fn etcd(
    binaries: &Binaries,
    data: &Path,
    ports: &EtcdPorts,
    durability: Durability,
) -> Command {
    let client = format!("http://127.0.0.1:{}", ports.client);
    let peer = format!("http://127.0.0.1:{}", ports.peer);
    let mut command = Command::new(binaries.program("etcd"));
    command
        .arg("--name=cleat")
        .arg(flag("--data-dir", data))
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=cleat={peer}"))
        .arg("--log-level=warn");
    if durability == Durability::Fast {
        command.arg("--unsafe-no-fsync");
    }
    command
}

pub(crate) fn apiserver(
    binaries: &Binaries,
    plane: &str,
    port: u16,
    etcd: &EtcdPorts,
    files: &Files,
) -> Command {
    let mut command = Command::new(binaries.program("kube-apiserver"));
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{}", etcd.client))
        .arg(format!("--etcd-prefix=/{plane}"))
        .arg("--bind-address=127.0.0.1")
        .arg("--advertise-address=127.0.0.1")
        .arg(format!("--secure-port={port}"))
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        // Endpoints of the `kubernetes` service cannot be on loopback, and nothing uses them.
        .arg("--endpoint-reconciler-type=none")
        .arg("--authorization-mode=RBAC")
        .arg("--allow-privileged=true")
        .arg("--enable-bootstrap-token-auth=true")
        .arg("--profiling=false")
        .arg(flag("--client-ca-file", &files.authority))
        .arg(flag("--tls-cert-file", &files.server))
        .arg(flag("--tls-private-key-file", &files.server_key))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(flag("--service-account-key-file", &files.service_account_public))
        .arg(flag("--service-account-signing-key-file", &files.service_account_private))
        .arg(flag("--requestheader-client-ca-file", &files.authority))
        .arg("--requestheader-allowed-names=front-proxy-client")
        .arg("--requestheader-username-headers=X-Remote-User")
        .arg("--requestheader-group-headers=X-Remote-Group")
        .arg("--requestheader-extra-headers-prefix=X-Remote-Extra-");
    command
}

pub(crate) fn controller_manager(binaries: &Binaries, kubeconfig: &Path, files: &Files) -> Command {
    let mut command = Command::new(binaries.program("kube-controller-manager"));
    command
        .arg(flag("--kubeconfig", kubeconfig))
        .arg("--leader-elect=false")
        .arg("--secure-port=0")
        .arg("--profiling=false")
        .arg(format!("--controllers={}", CONTROLLERS.join(",")))
        // Without credentials of their own, garbage collection hangs.
        .arg("--use-service-account-credentials=true")
        .arg(flag("--service-account-private-key-file", &files.service_account_private))
        .arg(flag("--root-ca-file", &files.authority))
        .arg(flag("--cluster-signing-cert-file", &files.authority))
        .arg(flag("--cluster-signing-key-file", &files.authority_key))
        // The defaults are meant for thousands of nodes; here a test waits for each step.
        .arg("--kube-api-qps=500")
        .arg("--kube-api-burst=1000")
        .arg("--namespace-sync-period=10s")
        .arg("--concurrent-namespace-syncs=20");
    command
}

fn flag(name: &str, path: &Path) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(name);
    flag.push("=");
    flag.push(path);
    flag
}
