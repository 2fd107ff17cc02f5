//! Jobs and CronJobs.
//!
//! Left out: pod failure policies beyond their actions, success policies, limits of indexed Jobs.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::check::{Errors, IMMUTABLE, picks, shown_map};
use super::{cron, pod};
use crate::names;
use crate::rules::read::Read;

pub(super) fn job(errors: &mut Errors, object: &Value) {
    generated_selector(errors, object);
    job_with_selector(errors, object);
}

fn job_with_selector(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    job_spec(errors, "spec", spec);
    let selector = spec.at("selector");
    if selector.is_null() {
        errors.required("spec.selector", "");
    } else {
        errors.selector("spec.selector", selector);
    }
    let labels = spec.path(&["template", "metadata", "labels"]);
    if picks(selector, labels) == Some(false) {
        let why = "`selector` does not match template `labels`";
        errors.invalid("spec.template.metadata.labels", shown_map(labels), why);
    }
}

pub(super) fn job_update(errors: &mut Errors, old: &Value, new: &Value) {
    job_with_selector(errors, new);
    let (before, spec) = (old.at("spec"), new.at("spec"));
    if spec.text("completionMode") != "Indexed" {
        errors.immutable("spec", before, spec, &["completions"]);
    } else if before.at("completions") != spec.at("completions")
        && spec.at("completions") != spec.at("parallelism")
    {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.invalid("spec.completions", spec.at("completions").clone(), why);
    }
    errors.immutable("spec", before, spec, &["selector"]);
    // While a Job is suspended and has not begun, its pods may still be directed elsewhere.
    let idle = before.flag("suspend") && !old.at("status").has("startTime");
    let template = |spec: &Value| pod::template_for_comparison(spec.at("template"), idle);
    if template(before) != template(spec) {
        errors.invalid("spec.template", spec.at("template").clone(), IMMUTABLE);
    }
    let fixed = [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    errors.immutable("spec", before, spec, &fixed);
}

pub(super) fn cron_job(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = object.at("spec");
    let schedule = spec.text("schedule");
    if schedule.is_empty() {
        errors.required("spec.schedule", "");
    } else {
        if let Err(why) = cron::check(schedule) {
            errors.invalid("spec.schedule", schedule, why);
        }
        let had_zone = old.is_some_and(|old| old.at("spec").text("schedule").contains("TZ"));
        if schedule.contains("TZ") && !had_zone {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.invalid("spec.schedule", schedule, why);
        } else if schedule.contains("TZ") && spec.has("timeZone") {
            let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            errors.invalid("spec.schedule", schedule, why);
        }
    }
    errors.not_negative("spec", spec, &["startingDeadlineSeconds"]);
    if old.is_none_or(|old| old.at("spec").at("timeZone") != spec.at("timeZone")) {
        time_zone(errors, spec.at("timeZone"));
    }
    let policies = ["Allow", "Forbid", "Replace"];
    errors.one_of("spec.concurrencyPolicy", spec.text("concurrencyPolicy"), &policies);
    let template = spec.at("jobTemplate").at("spec");
    job_spec(errors, "spec.jobTemplate.spec", template);
    if template.has("selector") {
        let why = "`selector` will be auto-generated";
        errors.invalid("spec.jobTemplate.spec.selector", template.at("selector").clone(), why);
    }
    if template.flag("manualSelector") {
        errors.not_supported("spec.jobTemplate.spec.manualSelector", true, &["nil", "false"]);
    }
    errors.not_negative("spec", spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]);
    let name = object.at("metadata").text("name");
    if old.is_none() && name.len() > 52 {
        errors.invalid("metadata.name", name, "must be no more than 52 characters");
    }
}

fn time_zone(errors: &mut Errors, zone: &Value) {
    let Some(name) = zone.as_str() else { return };
    let odd = |part: &str| {
        let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-' | b'+');
        part.is_empty()
            || [".", ".."].contains(&part)
            || part.starts_with('-')
            || !part.bytes().all(plain)
    };
    if name.is_empty() {
        errors.invalid("spec.timeZone", name, "timeZone must be nil or non-empty string");
    } else if name.split('/').any(odd) {
        errors.invalid("spec.timeZone", name, format!("unknown time zone {name}"));
    } else {
        if name.eq_ignore_ascii_case("local") {
            let why = "timeZone must be an explicit time zone as defined in \
                       https://www.iana.org/time-zones";
            errors.invalid("spec.timeZone", name, why);
        }
        // Go knows its own zone by this name; all others by those of the database, to the letter.
        let known = TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name));
        if !known && name != "Local" {
            errors.invalid("spec.timeZone", name, format!("unknown time zone {name}"));
        }
    }
}

fn job_spec(errors: &mut Errors, path: &str, spec: &Value) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    errors.not_negative(path, spec, &counts);
    let mode = spec.at("completionMode");
    errors.maybe_one_of(format!("{path}.completionMode"), mode, &["NonIndexed", "Indexed"]);
    if mode == "Indexed" {
        if !spec.has("completions") {
            errors.required(format!("{path}.completions"), "when completion mode is Indexed");
        }
    } else {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = spec.number(field) {
                errors.invalid(
                    format!("{path}.{field}"),
                    number,
                    "requires indexed completion mode",
                );
            }
        }
    }
    let replacements = ["Failed", "TerminatingOrFailed"];
    let policy = spec.at("podReplacementPolicy");
    errors.maybe_one_of(format!("{path}.podReplacementPolicy"), policy, &replacements);
    for (index, rule) in spec.at("podFailurePolicy").list("rules").iter().enumerate() {
        let path = format!("{path}.podFailurePolicy.rules[{index}].action");
        errors.one_of(path, rule.text("action"), &["Count", "FailIndex", "FailJob", "Ignore"]);
    }
    let template = spec.at("template");
    let path = format!("{path}.template");
    pod::template(errors, &path, template);
    let policy = template.at("spec").text("restartPolicy");
    if policy.is_empty() || policy == "Always" {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.required(format!("{path}.spec.restartPolicy"), why);
    } else if !["OnFailure", "Never"].contains(&policy) {
        errors.not_supported(format!("{path}.spec.restartPolicy"), policy, &["OnFailure", "Never"]);
    }
}

fn generated_selector(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    if spec.flag("manualSelector") || !spec.has("selector") {
        return;
    }
    let (name, uid) = (object.at("metadata").text("name"), object.at("metadata").text("uid"));
    if uid.is_empty() {
        errors.required("metadata.uid", "");
    }
    let labels = spec.path(&["template", "metadata", "labels"]);
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    for (key, value) in expected {
        let found = labels.text(key);
        if found != value {
            let path = format!("spec.template.metadata.labels[{key}]");
            match found {
                "" => errors.required(path, &format!("must be '{value}'")),
                _ => errors.invalid(path, labels.clone(), format!("must be '{value}'")),
            }
        }
    }
    let all: serde_json::Map<String, Value> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    if picks(spec.at("selector"), &Value::Object(all)) == Some(false) {
        errors.invalid(
            "spec.selector",
            spec.at("selector").clone(),
            "`selector` not auto-generated",
        );
    }
    if spec.text("completionMode") == "Indexed"
        && let Some(last) = spec.number("completions").filter(|count| *count > 0)
    {
        let longest = format!("{name}-{}", last - 1);
        if !names::dns_label(&longest).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {longest}");
            errors.invalid("metadata.name", name, why);
        }
    }
}
