//! Acting as somebody else (`Impersonate-*` headers), as far as the real user may.
//!
//! Since 1.36 there are narrow permissions (`impersonate:MODE` on the person together with
//! `impersonate-on:MODE:VERB` on the deed) beside the old sweeping `impersonate`. All are tried,
//! first of all the one by which the user did it last; the refusal is that of the first that applies.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::refused;
use crate::{
    authz::{Attributes, Authorize, ResourceTarget, Target, forbidden},
    quote::quoted,
    status::Status,
    user::{
        ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, service_account_groups,
        split_node, split_service_account,
    },
};

const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA_PREFIX: &str = "impersonate-extra-";
/// From so many on, one check for all of them is tried first.
const MANY: usize = 4;

/// One way of being allowed to impersonate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// The plain verb `impersonate`.
    Legacy,
}

/// By which permission users last acted as somebody else. Says in which order permissions are tried,
/// and never which are enough.
#[derive(Debug, Default)]
pub struct Habits(Mutex<BTreeMap<String, Mode>>);

/// Of so many users is it remembered.
const REMEMBERED: usize = 10_000;

impl Habits {
    fn of(&self, user: &str) -> Option<Mode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(user).copied()
    }

    fn note(&self, user: &str, mode: Mode) {
        let mut habits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if habits.len() >= REMEMBERED && !habits.contains_key(user) {
            habits.clear();
        }
        habits.insert(user.to_owned(), mode);
    }
}

/// The user the request shall count as, or `None` when it does not ask for another.
pub fn impersonate(
    headers: &HeaderMap,
    requestor: &User,
    request: &Attributes<'_>,
    authorizer: &dyn Authorize,
    habits: &Habits,
) -> Result<Option<User>, Status> {
    let Some(wanted) = wanted_user(headers)? else { return Ok(None) };
    let habit = habits.of(&requestor.name);
    let others = [
        Mode::AssociatedNode,
        Mode::ArbitraryNode,
        Mode::ServiceAccount,
        Mode::UserInfo,
        Mode::Legacy,
    ];
    let others = others.into_iter().filter(|mode| Some(*mode) != habit);
    let mut first = None;
    for mode in habit.into_iter().chain(others) {
        if !mode.applies(&wanted, requestor) {
            continue;
        }
        let check = Check { mode, requestor, authorizer };
        match check.run(&wanted, request) {
            Ok(user) => {
                if Some(mode) != habit {
                    habits.note(&requestor.name, mode);
                }
                return Ok(Some(user));
            }
            Err(status) => first = first.or(Some(status)),
        }
    }
    Err(first.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

fn wanted_user(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let first = |name: &str| text_of(headers.get(name)).unwrap_or_default();
    let mut wanted =
        User { name: first("impersonate-user"), uid: first("impersonate-uid"), ..User::default() };
    let groups = headers.get_all("impersonate-group").iter();
    wanted.groups = groups.filter_map(|group| text_of(Some(group))).collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) else { continue };
        // Badly encoded keys are taken as they stand.
        let key = percent_decode_str(key)
            .decode_utf8()
            .map_or_else(|_| key.to_owned(), |key| key.into_owned());
        extra.entry(key).or_default().extend(text_of(Some(value)));
    }
    wanted.extra = extra;
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    Err(Status::bad_request(format!(
        "requested {} without impersonating a user name",
        go_syntax(&wanted)
    )))
}

fn text_of(value: Option<&http::HeaderValue>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// As Go's `%#v` shows the user.
fn go_syntax(user: &User) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        format!("{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => format!("[]string{}", list(groups)),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{}:[]string{}", quoted(key), list(values)))
            .collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quoted(&user.name),
        quoted(&user.uid)
    )
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn applies(self, wanted: &User, requestor: &User) -> bool {
        let only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = split_node(&wanted.name);
        let account = split_service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get("authentication.kubernetes.io/node-name");
                let own = own.and_then(|names| match names.as_slice() {
                    [one] => Some(one.as_str()),
                    _ => None,
                });
                only_name
                    && node.is_some()
                    && node == own
                    && split_service_account(&requestor.name).is_some()
            }
            Self::ArbitraryNode => only_name && node.is_some(),
            Self::ServiceAccount => only_name && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

struct Check<'a> {
    mode: Mode,
    requestor: &'a User,
    authorizer: &'a dyn Authorize,
}

impl Check<'_> {
    fn run(&self, wanted: &User, request: &Attributes<'_>) -> Result<User, Status> {
        let constrained = self.mode != Mode::Legacy;
        let verb = if constrained {
            let on = format!("impersonate-on:{}:{}", self.mode.name(), request.verb);
            self.may(&Attributes { verb: &on, target: request.target })?;
            format!("impersonate:{}", self.mode.name())
        } else {
            "impersonate".to_owned()
        };
        let mut user = wanted.clone();
        self.may_be(&verb, &mut user)?;
        if !wanted.uid.is_empty() {
            self.may_have(&verb, AUTHENTICATION, "uids", "", &wanted.uid)?;
        }
        self.may_join(&verb, &wanted.groups)?;
        self.may_bear(&verb, &wanted.extra)?;
        if user.name == ANONYMOUS {
            user.add_group(UNAUTHENTICATED);
        } else if !user.in_group(UNAUTHENTICATED) {
            user.add_group(AUTHENTICATED);
        }
        Ok(user)
    }

    /// The name. Nodes and service accounts have fixed groups.
    fn may_be(&self, verb: &str, user: &mut User) -> Result<(), Status> {
        let mut target = ResourceTarget {
            group: self.subject_group(),
            resource: "users",
            name: &user.name,
            ..ResourceTarget::default()
        };
        let mut groups = None;
        if self.mode != Mode::Legacy
            && let Some(name) = split_node(&user.name)
        {
            target.resource = "nodes";
            target.name = if self.mode == Mode::AssociatedNode { "*" } else { name };
            groups = Some(vec!["system:nodes".to_owned()]);
        }
        if let Some((namespace, name)) = split_service_account(&user.name) {
            target.resource = "serviceaccounts";
            target.namespace = namespace;
            target.name = name;
            if user.groups.is_empty() {
                groups = Some(service_account_groups(namespace));
            }
        }
        self.may(&Attributes { verb, target: Target::Resource(target) })?;
        if let Some(groups) = groups {
            user.groups = groups;
        }
        Ok(())
    }

    fn may_join(&self, verb: &str, groups: &[String]) -> Result<(), Status> {
        let group = self.subject_group();
        if self.mode != Mode::Legacy {
            let refuse = |name: &str, why: &str| {
                let target =
                    ResourceTarget { group, resource: "groups", name, ..ResourceTarget::default() };
                let attributes = Attributes { verb, target: Target::Resource(target) };
                Err(forbidden(self.requestor, &attributes, why))
            };
            if groups.iter().any(String::is_empty) {
                return refuse("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                return refuse(MASTERS, "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY && self.may_have(verb, group, "groups", "", "*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.may_have(verb, group, "groups", "", name))
    }

    fn may_bear(&self, verb: &str, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Status> {
        let resource = "userextras";
        if self.mode != Mode::Legacy && !extra.is_empty() {
            if let Some(why) = bad_extra(extra) {
                let attributes = Attributes::resource(verb, AUTHENTICATION, resource);
                return Err(forbidden(self.requestor, &attributes, &why));
            }
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.may_have(verb, AUTHENTICATION, resource, "*", "*").is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.may_have(verb, AUTHENTICATION, resource, key, value)?;
            }
        }
        Ok(())
    }

    fn may_have(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> Result<(), Status> {
        let target = ResourceTarget { group, resource, subresource, name, namespace: "" };
        self.may(&Attributes { verb, target: Target::Resource(target) })
    }

    fn may(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let decision = self.authorizer.authorize(self.requestor, attributes);
        if decision.allowed { Ok(()) } else { Err(refused(self.requestor, attributes, &decision)) }
    }

    /// Users and groups were in the core group before the narrow modes came.
    fn subject_group(&self) -> &'static str {
        if self.mode == Mode::Legacy { "" } else { AUTHENTICATION }
    }
}

fn bad_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        if *key != key.to_lowercase() {
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {}",
                quoted(key)
            ));
        }
        if values.is_empty() {
            return Some("impersonating empty values in extra is not allowed".to_owned());
        }
        if values.iter().any(String::is_empty) {
            return Some("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    None
}
