//! Addresses and ranges of addresses.

use std::net::IpAddr;

use serde_json::Value;

use super::check::Errors;
use crate::rules::read::Read;

pub(super) fn address(errors: &mut Errors, path: &str, text: &str) {
    if text.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.invalid(path, text, why);
    }
}

/// An address that something can be reached at.
pub(super) fn endpoint(errors: &mut Errors, path: &str, text: &str) {
    address(errors, path, text);
    let Ok(address) = text.parse::<IpAddr>() else {
        return errors.invalid(path, text, "must be a valid IP address");
    };
    if address.is_unspecified() {
        errors.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.invalid(path, text, why);
    }
    let (local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.segments().first().is_some_and(|s| s & 0xff0f == 0xff02),
        ),
    };
    if local {
        let why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.invalid(path, text, why);
    }
    if multicast {
        let why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.invalid(path, text, why);
    }
}

/// A range in CIDR notation.
pub(super) fn range(errors: &mut Errors, path: &str, text: &str) {
    if parse_range(text).is_none() {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.invalid(path, text, why);
    }
}

pub(super) fn parse_range(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (length <= most).then_some((address, length))
}

/// Whether `inner` lies within `outer` and is smaller.
pub(super) fn strictly_inside(inner: (IpAddr, u8), outer: (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    };
    let mask = |length: u8| match length {
        0 => 0,
        length => u128::MAX << (128 - u32::from(length.min(128))),
    };
    inner.0.is_ipv4() == outer.0.is_ipv4()
        && outer.1 < inner.1
        && bits(inner.0) & mask(outer.1) == bits(outer.0) & mask(outer.1)
}

/// Where a load balancer of the object's can be reached.
pub(super) fn load_balancer(errors: &mut Errors, path: &str, object: &Value) {
    let points = object.path(&["status", "loadBalancer"]).list("ingress");
    for (index, point) in points.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (ip, name) = (point.text("ip"), point.text("hostname"));
        if !ip.is_empty() {
            address(errors, &format!("{path}.ip"), ip);
        } else if point.has("ipMode") {
            let why = "may not be specified when `ip` is not set";
            errors.forbidden(format!("{path}.ipMode"), why);
        }
        if !name.is_empty() {
            let path = format!("{path}.hostname");
            errors.subdomain(&path, name);
            if name.parse::<IpAddr>().is_ok() {
                errors.invalid(path, name, "must be a DNS name, not an IP address");
            }
        }
    }
}
