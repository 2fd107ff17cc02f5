//! A policy's template from the text or object it is written in to the object it means.
//!
//! The object is first written as YAML, because that is what upstream runs templates on: quotes
//! around a template that gives a number are dropped there, and `autoindent` learns how deep it
//! is. What comes out is read as YAML again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value as Json;

use crate::context::Context;
use crate::encrypt::{self, Encryption, EncryptionError};
use crate::exec::MissingKey;
use crate::limits::{Budget, Limits};
use crate::lookup::{LookupError, Lookups, Query};
use crate::policy::{self, ClusterScoped, Reach, Traces};
use crate::render::{self, Delimiters, RenderError, RenderOptions};
use crate::sprig::{self, Escape};
use crate::value::{Numbers, from_json};
use crate::yaml;

/// Where the templates are.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// An object; its strings may hold templates.
    Object(&'a Json),
    /// YAML of which any part may be a template, as in `object-templates-raw`.
    Yaml(&'a str),
}

#[derive(Clone, Debug)]
pub struct ResolveOptions {
    pub delimiters: Delimiters,
    pub now: Timestamp,
    pub limits: Limits,
    pub encryption: Encryption,
    /// If not empty, only this namespace may be read, and cluster-scoped objects only if allowed.
    pub lookup_namespace: String,
    pub cluster_scoped: Vec<ClusterScoped>,
    /// Functions that may not be used, besides those that never may.
    pub denied: Vec<String>,
    /// Spaces that the result will be indented by later.
    pub additional_indentation: usize,
    /// Whether `skipObject` exists.
    pub skip_object: bool,
    /// What random choices follow from, besides the template itself. Whoever knows both can make
    /// them as well, so there are none in a template that makes a Secret.
    pub seed: Option<String>,
}

impl ResolveOptions {
    /// For templates on a managed cluster: `{{ }}`, all namespaces, no encryption.
    pub fn managed(now: Timestamp) -> Self {
        Self {
            delimiters: Delimiters::default(),
            now,
            limits: Limits::default(),
            encryption: Encryption::Off,
            lookup_namespace: String::new(),
            cluster_scoped: Vec::new(),
            denied: Vec::new(),
            additional_indentation: 0,
            skip_object: false,
            seed: None,
        }
    }

    /// For templates on the hub: `{{hub hub}}`, restricted to the policy's namespace.
    pub fn hub(now: Timestamp, namespace: &str) -> Self {
        Self {
            delimiters: Delimiters::hub(),
            lookup_namespace: namespace.to_owned(),
            ..Self::managed(now)
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    pub value: Json,
    /// Whether a Secret was read or an encrypted value decrypted: differences must not be shown.
    pub sensitive: bool,
    /// Whether the template asked for this object to be left alone. Then `value` is null.
    pub skip: bool,
    /// Everything that was looked up, found or not: when one of these changes, so may the result.
    pub used: BTreeSet<Query>,
}

/// Why a policy's template could not be resolved. [`TemplateError::message`] is what upstream
/// would say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    #[error("error validating EncryptionConfig")]
    Encryption(#[source] EncryptionError),
    #[error("decryption of {value} failed")]
    Decryption {
        value: String,
        #[source]
        source: EncryptionError,
    },
    #[error("failed to parse the template JSON string {template}")]
    Parse {
        template: String,
        #[source]
        source: RenderError,
    },
    #[error("failed to resolve the template {template}")]
    Execute {
        template: String,
        used: BTreeSet<Query>,
        #[source]
        source: RenderError,
    },
    #[error("failed to convert the resolved template to JSON: {0}")]
    Result(String),
}

impl TemplateError {
    /// The whole chain in one line, as conditions show it.
    pub fn message(&self) -> String {
        let mut message = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            message += &format!(": {error}");
            source = error.source();
        }
        message
    }

    /// What a condition says: where the trouble is with the key or the vector, it names the
    /// object to look at.
    pub fn condition(&self) -> String {
        match self {
            Self::Encryption(EncryptionError::KeyNotSet | EncryptionError::InvalidKey(_)) => {
                r#"The "policy-encryption-key" Secret contains an invalid AES key"#.to_owned()
            }
            Self::Encryption(EncryptionError::InvalidIv) => concat!(
                r#"The "policy.open-cluster-management.io/encryption-iv" annotation value "#,
                "is not a valid initialization vector"
            )
            .to_owned(),
            _ => self.message(),
        }
    }

    /// The question whose answer is needed before this can be resolved.
    pub fn unread(&self) -> Option<&Query> {
        match self.lookup()? {
            (query, LookupError::NotYetRead) => Some(query),
            _ => None,
        }
    }

    /// The lookup that stopped it, and why.
    pub fn lookup(&self) -> Option<(&Query, &LookupError)> {
        match self {
            Self::Execute { source: RenderError::Lookup { query, error, .. }, .. } => {
                Some((query, error))
            }
            _ => None,
        }
    }

    /// Whether trying again may help although nothing was changed: a read failed.
    pub fn is_transient(&self) -> bool {
        matches!(self.lookup(), Some((_, LookupError::Failed(_) | LookupError::NotYetRead)))
    }

    /// What was looked up before it failed.
    pub fn used(&self) -> Option<&BTreeSet<Query>> {
        match self {
            Self::Execute { used, .. } => Some(used),
            _ => None,
        }
    }
}

/// Whether a text has anything to resolve.
pub fn has_template(text: &str, delimiters: &Delimiters, encrypted: bool) -> bool {
    text.contains(&delimiters.left) || (encrypted && text.contains(encrypt::PREFIX))
}

/// Whether resolving a text would need a key to encrypt with.
pub fn uses_encryption(text: &str, delimiters: &Delimiters) -> bool {
    let (left, right) = (regex::escape(&delimiters.left), regex::escape(&delimiters.right));
    let s = "(?-u:\\s)";
    let pattern = format!(
        "{left}-?({s}*fromSecret{s}+.*|{s}*copySecretData{s}+.*|.*\\|{s}*protect{s}*)-?{right}"
    );
    Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(text))
}

/// Resolves all templates of `source`.
///
/// # Guarantees
/// Nothing is read but through `lookups`, and a read that failed never counts as empty: it fails
/// the resolution, unless `skipObject` was called before.
///
/// # Errors
/// See [`TemplateError`].
pub fn resolve(
    source: Source<'_>,
    context: &Context,
    lookups: &dyn Lookups,
    options: &ResolveOptions,
) -> Result<Resolution, TemplateError> {
    if let Encryption::Encrypt(keys) | Encryption::Decrypt(keys) = &options.encryption {
        keys.check().map_err(TemplateError::Encryption)?;
    }
    let original = match source {
        Source::Object(object) => {
            let value = from_json(object, Numbers::Int64);
            let budget = Budget::new(options.limits);
            sprig::json_encode(&value, Escape::Html, None, &budget).unwrap_or_default()
        }
        Source::Yaml(text) => text.to_owned(),
    };
    let mut text = match source {
        Source::Object(object) => yaml::emit(object),
        Source::Yaml(text) => text.to_owned(),
    };
    let mut plains = Vec::new();
    if let Encryption::Decrypt(keys) = &options.encryption {
        (text, plains) = keys
            .reveal(&text)
            .map_err(|(value, source)| TemplateError::Decryption { value, source })?;
    }
    let text = indented(&unquoted(&text, &options.delimiters), options);
    let reach = Reach {
        lookups,
        namespace: &options.lookup_namespace,
        allowed: &options.cluster_scoped,
        encryption: &options.encryption,
        additional_indentation: options.additional_indentation,
        traces: RefCell::new(Traces { sensitive: !plains.is_empty(), ..Traces::default() }),
    };
    let rendered = render::run(
        &text,
        context.value(),
        &policy::library(&reach, &options.denied, options.skip_object),
        &RenderOptions {
            name: "tmpl".to_owned(),
            delimiters: options.delimiters.clone(),
            missing_key: MissingKey::Invalid,
            limits: options.limits,
            now: options.now,
            seed: options.seed.clone().filter(|_| !makes_a_secret(&text)),
        },
    );
    let Traces { used, sensitive, skip } = reach.traces.into_inner();
    if skip {
        return Ok(Resolution { value: Json::Null, sensitive, skip, used });
    }
    let rendered = rendered.map_err(|source| failed(original, source, used.clone(), &plains))?;
    let value = read_yaml(&rendered).map_err(TemplateError::Result)?;
    Ok(Resolution { value, sensitive, skip, used })
}

/// Whether some object in it is a Secret, or may be one.
fn makes_a_secret(text: &str) -> bool {
    static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"(?m)\bkind['"]?\s*:\s*['"]?(?:Secret\b|[^\s,}]*\{\{|[|>&*!])"#).ok()
    });
    SECRET.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// A text without templates, read as one whose templates were resolved.
///
/// # Errors
/// What is wrong with it, for users.
pub fn read_yaml(text: &str) -> Result<Json, String> {
    let mut value = yaml::read(text)?;
    whole(&mut value);
    Ok(value)
}

/// A whole float is an integer once Go has written it as JSON.
fn whole(value: &mut Json) {
    match value {
        Json::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 9_223_372_036_854_775_807.0 {
                *value = Json::from(float as i64);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(whole),
        Json::Object(entries) => entries.values_mut().for_each(whole),
        _ => {}
    }
}

/// Go shows the piece of text where a template failed. What was decrypted into it stays out.
fn failed(
    template: String,
    source: RenderError,
    used: BTreeSet<Query>,
    plains: &[String],
) -> TemplateError {
    let hide = |text: String| {
        let secrets = plains.iter().filter(|plain| !plain.is_empty());
        secrets.fold(text, |text, plain| text.replace(plain.as_str(), "[decrypted]"))
    };
    match source {
        RenderError::Parse(text) => {
            TemplateError::Parse { template, source: RenderError::Parse(hide(text)) }
        }
        RenderError::Execute(text) => {
            TemplateError::Execute { template, used, source: RenderError::Execute(hide(text)) }
        }
        source => TemplateError::Execute { template, used, source },
    }
}

/// What is looked for in a text before its templates run.
#[derive(Clone)]
struct Patterns {
    /// A quoted template that gives something other than a string.
    other_than_text: Option<Regex>,
    autoindent: Option<Regex>,
}

static MANAGED: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(&Delimiters::default()));
static HUB: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(&Delimiters::hub()));

impl Patterns {
    /// Compiling them costs more than resolving most policies, so it is done once.
    fn of(delimiters: &Delimiters) -> Self {
        if *delimiters == Delimiters::default() {
            MANAGED.clone()
        } else if *delimiters == Delimiters::hub() {
            HUB.clone()
        } else {
            Self::new(delimiters)
        }
    }

    fn new(delimiters: &Delimiters) -> Self {
        let (left, right) = (regex::escape(&delimiters.left), regex::escape(&delimiters.right));
        let s = r"(?-u:\s)";
        let converted = format!(
            r"(?:.*\|{s}*(?:toInt|toBool|toLiteral)|(?:.*(?:copyConfigMapData|copySecretData)))"
        );
        let other_than_text =
            format!(r":{s}+(?:[|>]-?{s}+)?(?:'?{s}*)({left}-?{converted}.*{right})(?:{s}*'?)");
        let autoindent = format!(r#"( *)(?:'|")?({left}.*\| *autoindent *-?{right})"#);
        Self {
            other_than_text: Regex::new(&other_than_text).ok(),
            autoindent: Regex::new(&autoindent).ok(),
        }
    }
}

/// Drops the quotes around a template that gives something other than a string.
fn unquoted(text: &str, delimiters: &Delimiters) -> String {
    match Patterns::of(delimiters).other_than_text {
        Some(pattern) => pattern.replace_all(text, ": $1").into_owned(),
        None => text.to_owned(),
    }
}

/// Tells every `autoindent` how many spaces there are before it.
fn indented(text: &str, options: &ResolveOptions) -> String {
    if !text.contains("autoindent") {
        return text.to_owned();
    }
    let Some(pattern) = Patterns::of(&options.delimiters).autoindent else {
        return text.to_owned();
    };
    let mut out = text.to_owned();
    for found in pattern.captures_iter(text) {
        let (Some(spaces), Some(action)) = (found.get(1), found.get(2)) else { continue };
        let spaces = i64::try_from(spaces.len()).unwrap_or(0);
        let depth = spaces - i64::try_from(options.additional_indentation).unwrap_or(0);
        let told = action.as_str().replacen("autoindent", &format!("indent {depth}"), 1);
        out = out.replacen(action.as_str(), &told, 1);
    }
    out
}
