//! Cluster addresses and node ports: which are taken, and the next free one.
//!
//! What is taken follows from the stored Services, so nothing is remembered that a crash could
//! lose; two Services created at the same moment may draw the same address, as they differ only by
//! luck of the draw in a range of thousands.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

use crate::follow::Digest;
use crate::rules::Addresses;

/// Addresses in use, by Service.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    by_service: BTreeMap<Box<str>, (Vec<String>, Vec<u16>)>,
}

impl Taken {
    pub(crate) const BUCKET: &'static str = "/services";

    pub(crate) fn draw(&self) -> Draw {
        let all = self.by_service.values();
        Draw {
            ips: all.clone().flat_map(|(ips, _)| ips.iter().cloned()).collect(),
            ports: all.flat_map(|(_, ports)| ports.iter().copied()).collect(),
        }
    }
}

impl Digest for Taken {
    fn clear(&mut self) {
        self.by_service.clear();
    }

    fn take(&mut self, _bucket: &str, key: &str, value: Option<&[u8]>) {
        let service = value.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let Some(service) = service else {
            self.by_service.remove(key);
            return;
        };
        let list = |pointer: &str| service.pointer(pointer).and_then(Value::as_array);
        let ips = list("/spec/clusterIPs").into_iter().flatten();
        let ips = ips.filter_map(Value::as_str).map(str::to_owned).collect();
        let ports = list("/spec/ports").into_iter().flatten();
        let ports =
            ports.filter_map(|port| u16::try_from(port.get("nodePort")?.as_u64()?).ok()).collect();
        self.by_service.insert(key.into(), (ips, ports));
    }
}

/// A [`Draw`] that is made when somebody wants an address: of all writes few are of Services, and it
/// is a look at all Services there are.
pub(crate) struct Lazily<F> {
    make: F,
    draw: Option<Draw>,
}

impl<F: Fn() -> Draw> Lazily<F> {
    pub(crate) fn new(make: F) -> Self {
        Self { make, draw: None }
    }

    fn draw(&mut self) -> &mut Draw {
        self.draw.get_or_insert_with(&self.make)
    }
}

impl<F: Fn() -> Draw> Addresses for Lazily<F> {
    fn cluster_ip(&mut self) -> Option<String> {
        self.draw().cluster_ip()
    }

    fn node_port(&mut self) -> Option<u16> {
        self.draw().node_port()
    }
}

/// Hands out what is not taken.
pub(crate) struct Draw {
    ips: BTreeSet<String>,
    ports: BTreeSet<u16>,
}

impl Addresses for Draw {
    /// From 10.96.0.0/12; the first few hundred are left for those who choose their own.
    fn cluster_ip(&mut self) -> Option<String> {
        (0..1000).find_map(|_| {
            let dice = Uuid::new_v4().as_u128();
            let (b, c, d) = (96 + (dice % 16), (dice >> 8) % 256, 1 + (dice >> 16) % 254);
            let ip = format!("10.{b}.{c}.{d}");
            (c > 0 && self.ips.insert(ip.clone())).then_some(ip)
        })
    }

    fn node_port(&mut self) -> Option<u16> {
        (0..10_000).find_map(|_| {
            let port = 30_000 + u16::try_from(Uuid::new_v4().as_u128() % 2768).ok()?;
            self.ports.insert(port).then_some(port)
        })
    }
}
