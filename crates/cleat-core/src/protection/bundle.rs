//! The authorities that an API server believes of a webhook, as a set.
//!
//! Replicas may have authorities of their own, or hear of a new one at different times. Each adds
//! what it needs and takes away only what has expired, so none of them unmakes another's work and no
//! certificate is shown that nobody vouches for.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhook;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A webhook that makes an authority at every start must not fill the configuration with them.
const MOST: usize = 16;

/// The certificates in a text, each as PEM, in order.
pub fn certificates(pem: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = pem;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let Some((body, after)) = after.split_once(END) else { break };
        let mut one = BEGIN.to_owned();
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            one.push('\n');
            one.push_str(line);
        }
        one.push('\n');
        one.push_str(END);
        one.push('\n');
        found.push(one);
        rest = after;
    }
    found
}

/// Whether all webhooks believe all certificates of a text.
pub fn believe(webhooks: &[ValidatingWebhook], pem: &str) -> bool {
    let wanted = certificates(pem);
    webhooks.iter().all(|webhook| {
        let believed = authorities(webhook);
        wanted.iter().all(|one| believed.contains(one))
    })
}

/// Lets wanted webhooks believe what live ones do, unless it is over.
pub fn share(
    wanted: &mut [ValidatingWebhook],
    live: &[ValidatingWebhook],
    is_over: impl Fn(&str) -> bool,
) {
    for webhook in wanted {
        // Without a bundle the server believes whom it knows by itself.
        let Some(ByteString(ours)) = &webhook.client_config.ca_bundle else { continue };
        let ours = certificates(&String::from_utf8_lossy(ours));
        let mut seen = BTreeSet::new();
        let known = live.iter().flat_map(authorities).filter(|one| !is_over(one));
        let mut all: Vec<String> =
            known.chain(ours.iter().cloned()).filter(|one| seen.insert(one.clone())).collect();
        while all.len() > MOST.max(ours.len()) {
            let Some(oldest) = all.iter().position(|one| !ours.contains(one)) else { break };
            all.remove(oldest);
        }
        if !all.is_empty() {
            webhook.client_config.ca_bundle = Some(ByteString(all.concat().into_bytes()));
        }
    }
}

fn authorities(webhook: &ValidatingWebhook) -> Vec<String> {
    let bundle = webhook.client_config.ca_bundle.as_ref();
    bundle.map(|ByteString(pem)| certificates(&String::from_utf8_lossy(pem))).unwrap_or_default()
}
