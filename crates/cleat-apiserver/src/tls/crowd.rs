//! How many connections each address has, so that one of them cannot have them all.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

#[derive(Clone, Default)]
pub(super) struct Crowd(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One connection of an address, until this is dropped.
pub(super) struct Place {
    crowd: Crowd,
    address: IpAddr,
}

impl Crowd {
    /// `None` if the address has `most` connections already.
    pub(super) fn admit(&self, address: IpAddr, most: usize) -> Option<Place> {
        let address = neighbourhood(address);
        let mut counts = self.counts();
        let count = counts.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Place { crowd: self.clone(), address })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.crowd.counts();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// What one client has to choose from: with IPv6 that is 64 bits of every address.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let crowd = Crowd::default();
        let admit = |address: &str| crowd.admit(address.parse().unwrap(), 2);
        let (first, second) = (admit("10.0.0.1"), admit("::ffff:10.0.0.1"));
        assert!(first.is_some() && second.is_some());
        assert!(admit("10.0.0.1").is_none());
        let _other = admit("10.0.0.2").unwrap();
        drop(first);
        assert!(admit("10.0.0.1").is_some());
        drop(second);

        let neighbours = [admit("2001:db8::1"), admit("2001:db8::ffff:1")];
        assert!(neighbours.iter().all(Option::is_some));
        assert!(admit("2001:db8::2").is_none());
        assert!(admit("2001:db8:0:1::1").is_some());
        drop(neighbours);
        assert_eq!(crowd.counts().len(), 1, "nothing is kept of who is gone");
    }
}
