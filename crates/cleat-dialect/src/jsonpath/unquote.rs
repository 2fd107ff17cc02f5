//! Quoted text with Go's escapes.

/// The text between the quotes, which may be double or single.
pub(super) fn unquoted(text: &str) -> Result<String, &'static str> {
    const INVALID: &str = "invalid syntax";
    let mut chars = text.chars();
    let quote = chars.next().filter(|quote| matches!(quote, '"' | '\'')).ok_or(INVALID)?;
    if chars.next_back() != Some(quote) {
        return Err(INVALID);
    }
    // Octal and \x escapes are bytes, so that the result may have to be mended at the end.
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    while let Some(c) = chars.next() {
        if c == quote {
            return Err(INVALID);
        }
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let escape = chars.next().ok_or(INVALID)?;
        match escape {
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(11),
            '\\' => out.push(b'\\'),
            '\'' | '"' if escape == quote => push(&mut out, escape),
            'x' => out.push(u8::try_from(digits(&mut chars, 2, 16)?).map_err(|_| INVALID)?),
            'u' => push(&mut out, scalar(digits(&mut chars, 4, 16)?)?),
            'U' => push(&mut out, scalar(digits(&mut chars, 8, 16)?)?),
            '0'..='7' => {
                let first = escape.to_digit(8).ok_or(INVALID)?;
                let code = first * 64 + digits(&mut chars, 2, 8)?;
                out.push(u8::try_from(code).map_err(|_| INVALID)?);
            }
            _ => return Err(INVALID),
        }
    }
    Ok(String::from_utf8(out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn scalar(code: u32) -> Result<char, &'static str> {
    char::from_u32(code).ok_or("invalid syntax")
}

fn digits(
    chars: &mut impl Iterator<Item = char>,
    count: usize,
    radix: u32,
) -> Result<u32, &'static str> {
    let mut code: u32 = 0;
    for _ in 0..count {
        let digit = chars.next().and_then(|c| c.to_digit(radix)).ok_or("invalid syntax")?;
        code = code.wrapping_mul(radix).wrapping_add(digit);
    }
    Ok(code)
}
