//! URLs taken apart and put together, as `net/url` does for well-formed ones.

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::Fault;
use crate::value::{Entries, Map, Value};

pub(super) const TABLE: Table =
    &[("urlJoin", fixed(&[Ty::Map], join)), ("urlParse", fixed(&[Ty::Text], parse))];

fn parse(_: &Env, args: &Args<'_>) -> Answer {
    let text = args.text(0)?;
    let wrong = |reason: &str| {
        let text = text.split('#').next().unwrap_or_default();
        let text = cleat_dialect::quote::quoted(text);
        Fault::text(format!("unable to parse url: parse {text}: {reason}"))
    };
    if text.chars().any(|c| c < ' ' || c == '\u{7f}') {
        return Err(wrong("net/url: invalid control character in URL"));
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, rest) = scheme(rest).map_err(|reason| wrong(&reason))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Entries::new();
    let mut put = |key: &str, value: &str| url.insert(key.to_owned(), Value::text(value));
    put("scheme", &scheme.to_ascii_lowercase());
    put("query", query);
    put("fragment", &decoded(fragment).map_err(|reason| wrong(&reason))?);
    let (opaque, authority, path) = if !rest.starts_with('/') && !scheme.is_empty() {
        (rest, "", "")
    } else if let Some(rest) = rest.strip_prefix("//") {
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        ("", authority, path)
    } else {
        ("", "", rest)
    };
    put("opaque", opaque);
    put("path", &decoded(path).map_err(|reason| wrong(&reason))?);
    let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !userinfo.chars().all(fits) {
        return Err(wrong("net/url: invalid userinfo"));
    }
    let port = host.rsplit(']').next().and_then(|rest| rest.rsplit_once(':'));
    if let Some((_, port)) = port.filter(|(_, port)| port.bytes().any(|b| !b.is_ascii_digit())) {
        let port = cleat_dialect::quote::quoted(&format!(":{port}"));
        return Err(wrong(&format!("invalid port {port} after host")));
    }
    put("userinfo", userinfo);
    put("host", host);
    put("hostname", hostname(host));
    Ok(Value::map(url))
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((text.get(..at).unwrap_or(""), text.get(at + 1..).unwrap_or(""))),
            _ => break,
        }
    }
    let first = text.split('/').next().unwrap_or_default();
    if first.contains(':') && !text.starts_with('/') {
        return Err("first path segment in URL cannot contain colon".to_owned());
    }
    Ok(("", text))
}

fn hostname(host: &str) -> &str {
    if let Some(inside) = host.strip_prefix('[') {
        return inside.split(']').next().unwrap_or_default();
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn decoded(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            let digits =
                bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
            let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let Some(value) = value else {
                let shown = text.get(at..(at + 3).min(text.len())).unwrap_or("%");
                let shown = cleat_dialect::quote::quoted(shown);
                return Err(format!("invalid URL escape {shown}"));
            };
            out.push(value);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-_.~".contains(c) || (byte.is_ascii() && kept.contains(c))
        {
            out.push(c);
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

fn entry(map: &Map, key: &str) -> Result<String, Fault> {
    match map.get(key) {
        None => Ok(String::new()),
        Some(Value::Str(text)) => Ok(text.to_string()),
        Some(other) => Err(Fault::text(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind_name()
        ))),
    }
}

fn join(_: &Env, args: &Args<'_>) -> Answer {
    let map = args.map(0)?;
    let part = |key: &str| entry(map, key);
    let mut out = String::new();
    let (scheme, opaque, host, path) =
        (part("scheme")?, part("opaque")?, part("host")?, part("path")?);
    let (query, fragment, userinfo) = (part("query")?, part("fragment")?, part("userinfo")?);
    if !scheme.is_empty() {
        out = format!("{scheme}:");
    }
    if opaque.is_empty() {
        if !scheme.is_empty() || !host.is_empty() || !userinfo.is_empty() {
            if !host.is_empty() || !path.is_empty() || !userinfo.is_empty() {
                out.push_str("//");
            }
            if !userinfo.is_empty() {
                out += &format!("{userinfo}@");
            }
            out += &encoded(&host, "!$&'()*+,;=:[]<>\"");
        }
        if !path.is_empty() && !path.starts_with('/') && !host.is_empty() {
            out.push('/');
        }
        out += &encoded(&path, "!$&'()*+,;=:@/");
    } else {
        out += &opaque;
    }
    if !query.is_empty() {
        out += &format!("?{query}");
    }
    if !fragment.is_empty() {
        out += &format!("#{}", encoded(&fragment, "!$&'()*+,;=:@/?"));
    }
    Ok(Value::text(out))
}
