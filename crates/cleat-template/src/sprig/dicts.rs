//! Dictionaries. `set`, `unset` and the merges change the map they are given, as in Go; keys and
//! values come out sorted by key, where Go gives them in no order.

use std::rc::Rc;

use super::cast::{is_empty, to_text};
use crate::library::{Answer, Args, Env, Table, Ty, fixed, variadic};
use crate::limits::{Budget, Fault};
use crate::value::{Elem, Entries, Map, Value, contains_map};

const MAP: &[Ty] = &[Ty::Map];

pub(super) const TABLE: Table = &[
    ("dict", variadic(&[], Ty::Any, dict)),
    ("dig", variadic(&[], Ty::Any, dig)),
    ("get", fixed(&[Ty::Map, Ty::Text], get)),
    ("hasKey", fixed(&[Ty::Map, Ty::Text], has_key)),
    ("keys", variadic(&[], Ty::Map, keys)),
    ("merge", variadic(MAP, Ty::Map, |env, args| merge_all(env, args, false))),
    ("mergeOverwrite", variadic(MAP, Ty::Map, |env, args| merge_all(env, args, true))),
    ("mustMerge", variadic(MAP, Ty::Map, |env, args| merge_all(env, args, false))),
    ("mustMergeOverwrite", variadic(MAP, Ty::Map, |env, args| merge_all(env, args, true))),
    ("omit", variadic(MAP, Ty::Text, omit)),
    ("pick", variadic(MAP, Ty::Text, pick)),
    ("pluck", variadic(&[Ty::Text], Ty::Map, pluck)),
    ("set", fixed(&[Ty::Map, Ty::Text, Ty::Any], set)),
    ("unset", fixed(&[Ty::Map, Ty::Text], unset)),
    ("values", fixed(MAP, values)),
];

fn dict(env: &Env, args: &Args<'_>) -> Answer {
    let mut entries = Entries::new();
    for pair in args.from(0).chunks(2) {
        let (Some(key), value) = (pair.first(), pair.get(1)) else { continue };
        let key = to_text(key, &env.budget)?;
        entries.insert(key, value.cloned().unwrap_or_else(|| Value::text("")));
    }
    Ok(Value::map(entries))
}

fn get(_: &Env, args: &Args<'_>) -> Answer {
    Ok(args.map(0)?.get(args.text(1)?).unwrap_or_else(|| Value::text("")))
}

fn has_key(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(args.map(0)?.entries().contains_key(args.text(1)?)))
}

/// Puts `value` into `map` unless that would make a value that contains itself.
fn insert(map: &Rc<Map>, key: &str, value: Value, budget: &Budget) -> Result<(), Fault> {
    if map.nil {
        return Err(Fault::text("assignment to entry in nil map"));
    }
    if contains_map(&value, map, budget)? {
        return Err(Fault::text(format!("a dict cannot contain itself (key {key})")));
    }
    budget.charge(key.len() + 16)?;
    map.insert(key.to_owned(), value);
    Ok(())
}

fn set(env: &Env, args: &Args<'_>) -> Answer {
    insert(args.map(0)?, args.text(1)?, args.any(2).clone(), &env.budget)?;
    Ok(args.any(0).clone())
}

fn unset(_: &Env, args: &Args<'_>) -> Answer {
    args.map(0)?.remove(args.text(1)?);
    Ok(args.any(0).clone())
}

fn keys(env: &Env, args: &Args<'_>) -> Answer {
    let mut all = Vec::new();
    for index in 0..args.len() {
        let map = args.map(index)?;
        env.budget.steps(map.entries().len() as u64)?;
        all.extend(map.entries().keys().cloned());
    }
    Ok(Value::strings(all))
}

fn values(env: &Env, args: &Args<'_>) -> Answer {
    let map = args.map(0)?;
    env.budget.steps(map.entries().len() as u64)?;
    Ok(Value::list(map.entries().values().cloned().collect()))
}

fn pluck(_: &Env, args: &Args<'_>) -> Answer {
    let key = args.text(0)?;
    let mut found = Vec::new();
    for index in 1..args.len() {
        found.extend(args.map(index)?.get(key));
    }
    Ok(Value::list(found))
}

fn named<'a>(args: &'a Args<'_>) -> Result<Vec<&'a str>, Fault> {
    (1..args.len()).map(|index| args.text(index)).collect()
}

fn pick(_: &Env, args: &Args<'_>) -> Answer {
    let map = args.map(0)?;
    let picked = named(args)?.into_iter();
    Ok(Value::map(picked.filter_map(|key| Some((key.to_owned(), map.get(key)?))).collect()))
}

fn omit(env: &Env, args: &Args<'_>) -> Answer {
    let names = named(args)?;
    let map = args.map(0)?;
    env.budget.steps(map.entries().len() as u64)?;
    let kept = map.entries().clone().into_iter();
    Ok(Value::map(kept.filter(|(key, _)| !names.contains(&key.as_str())).collect()))
}

fn dig(_: &Env, args: &Args<'_>) -> Answer {
    let Some((keys, [default, dict])) = args.from(0).split_last_chunk::<2>() else {
        return Err(Fault::text("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(Fault::text("dig needs at least three arguments"));
    }
    let wrong = |value: &Value, wanted: &str| {
        let given = match value {
            Value::Nil => "nil".to_owned(),
            other => other.type_name(),
        };
        Fault::text(format!("interface conversion: interface {{}} is {given}, not {wanted}"))
    };
    let mut current = dict.clone();
    if !matches!(dict, Value::Map(map) if map.elem == Elem::Any) {
        return Err(wrong(dict, "map[string]interface {}"));
    }
    for key in keys {
        if key.string_bytes().is_none() {
            return Err(wrong(key, "string"));
        }
    }
    for key in keys {
        let (Value::Map(map), Value::Str(key)) = (&current, key) else {
            return Err(wrong(&current, "map[string]interface {}"));
        };
        if map.elem != Elem::Any {
            return Err(wrong(&current, "map[string]interface {}"));
        }
        match map.get(key) {
            Some(value) => current = value,
            None => return Ok(default.clone()),
        }
    }
    Ok(current)
}

fn merge_all(env: &Env, args: &Args<'_>, overwrite: bool) -> Answer {
    // Nothing can be written to a nil map, so a new one takes its place.
    let target = match args.any(0) {
        Value::Map(map) if map.nil && args.len() > 1 => Value::map(Entries::new()),
        other => other.clone(),
    };
    if let Value::Map(into) = &target {
        for index in 1..args.len() {
            merge(into, args.map(index)?, overwrite, &env.budget)?;
        }
    }
    Ok(target)
}

/// Fills what is missing or empty in `into`; with `overwrite`, everything that `from` has.
fn merge(into: &Rc<Map>, from: &Rc<Map>, overwrite: bool, budget: &Budget) -> Result<(), Fault> {
    let _level = budget.descend()?;
    if Rc::ptr_eq(into, from) {
        return Ok(());
    }
    let theirs: Vec<_> =
        from.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in theirs {
        budget.step()?;
        let ours = into.get(&key);
        match (&ours, &value) {
            (_, Value::Nil) => {
                if overwrite {
                    insert(into, &key, value, budget)?;
                }
                continue;
            }
            (Some(Value::Map(ours)), Value::Map(theirs)) => {
                merge(ours, theirs, overwrite, budget)?;
                if !ours.entries().is_empty() {
                    continue;
                }
            }
            _ => {}
        }
        if overwrite || ours.as_ref().is_none_or(is_empty) {
            insert(into, &key, value, budget)?;
        }
    }
    Ok(())
}
