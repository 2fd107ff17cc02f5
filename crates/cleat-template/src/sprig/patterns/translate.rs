//! From Go's spelling of regular expressions to Rust's.

/// Letters that mean something after a backslash.
const KNOWN: &str = "aftnrvxAbBCdDQEsSwWzpP";

/// What is meant by `\d` and its kin, without brackets.
fn class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "0-9",
        'D' => "^0-9",
        'w' => "0-9A-Za-z_",
        'W' => "^0-9A-Za-z_",
        's' => r"\t\n\x0C\r ",
        'S' => r"^\t\n\x0C\r ",
        _ => return None,
    })
}

/// # Errors
/// An escape that Go does not know, although Rust might.
pub(super) fn to_rust(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('Q') if !in_class => quoted(&mut rest, &mut out),
                Some(letter) if letter.is_ascii_alphabetic() && !KNOWN.contains(letter) => {
                    return Err(format!(r"invalid escape sequence: `\{letter}`"));
                }
                Some(letter) => escaped(letter, in_class, &mut out),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if rest.peek() == Some(&'^') {
                    rest.next();
                    out.push('^');
                }
                // A bracket that closes at once is meant literally.
                if rest.peek() == Some(&']') {
                    rest.next();
                    out.push_str(r"\]");
                }
            }
            '[' if rest.peek() == Some(&':') => {
                out.push('[');
                for c in rest.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str(r"\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && rest.peek() == Some(&'-') => out.push_str(r"\-"),
            '{' if !in_class && !repeats(rest.clone()) => out.push_str(r"\{"),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Whether what follows an opening brace makes it a repetition: `2}`, `2,}` or `2,3}`.
fn repeats(rest: std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let inside: String = rest.take_while(|c| *c != '}').collect();
    let (from, to) = inside.split_once(',').unwrap_or((&inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !from.is_empty() && digits(from) && digits(to)
}

fn escaped(letter: char, in_class: bool, out: &mut String) {
    match (class(letter), letter) {
        (Some(class), _) if in_class && !class.starts_with('^') => out.push_str(class),
        (Some(class), _) => {
            out.push('[');
            out.push_str(class);
            out.push(']');
        }
        (None, 'b') if !in_class => out.push_str(r"(?-u:\b)"),
        (None, '<' | '>') => out.push(letter),
        (None, _) => {
            out.push('\\');
            out.push(letter);
        }
    }
}

fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        if c == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            break;
        }
        text.push(c);
    }
    out.push_str(&regex::escape(&text));
}
