//! Functions that choose by chance: here the same for the same policy at every look.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::Fault;
use crate::random::Random;
use crate::value::{IntKind, Value};

const COUNT: &[Ty] = &[Ty::Int];

pub(super) const TABLE: Table = &[
    ("randAlpha", fixed(COUNT, |env, args| text(env, args, u8::is_ascii_alphabetic))),
    ("randAlphaNum", fixed(COUNT, |env, args| text(env, args, u8::is_ascii_alphanumeric))),
    ("randAscii", fixed(COUNT, |env, args| text(env, args, |byte| matches!(byte, b' '..=b'~')))),
    ("randBytes", fixed(COUNT, bytes)),
    ("randInt", fixed(&[Ty::Int, Ty::Int], int)),
    ("randNumeric", fixed(COUNT, |env, args| text(env, args, u8::is_ascii_digit))),
    ("shuffle", fixed(&[Ty::Text], shuffle)),
    ("uuidv4", fixed(&[], uuid)),
];

fn random(env: &Env) -> Result<&Random, Fault> {
    env.random.as_ref().ok_or_else(|| {
        Fault::text(
            "this function is not offered here: what it gives is the same at every evaluation and \
             follows from the policy, so it is no secret; keep the value in a Secret and look it up",
        )
    })
}

/// As many as asked for; none for less than that, as shipped.
fn text(env: &Env, args: &Args<'_>, fits: fn(&u8) -> bool) -> Answer {
    let random = random(env)?;
    let count = usize::try_from(args.int(0)).unwrap_or_default();
    env.budget.charge(count)?;
    let letters: Vec<u8> = (0..128).filter(fits).collect();
    let one = || {
        let at = random.below(u64::try_from(letters.len()).ok()?)?;
        Some(char::from(*letters.get(usize::try_from(at).ok()?)?))
    };
    Ok(Value::text((0..count).filter_map(|_| one()).collect::<String>()))
}

fn bytes(env: &Env, args: &Args<'_>) -> Answer {
    let random = random(env)?;
    let count = usize::try_from(args.int(0))
        .map_err(|_| Fault::text("runtime error: makeslice: len out of range"))?;
    env.budget.charge(count.saturating_mul(2))?;
    let bytes: Vec<u8> = (0..count).map(|_| random.byte()).collect();
    Ok(Value::text(STANDARD.encode(bytes)))
}

fn int(env: &Env, args: &Args<'_>) -> Answer {
    let random = random(env)?;
    let (least, end) = (args.int(0), args.int(1));
    let wide = end.checked_sub(least).and_then(|wide| u64::try_from(wide).ok());
    let drawn =
        wide.and_then(|wide| random.below(wide)).and_then(|drawn| i64::try_from(drawn).ok());
    let number = drawn.and_then(|drawn| least.checked_add(drawn));
    let number = number.ok_or_else(|| Fault::text("invalid argument to Intn"))?;
    Ok(Value::Int(number, IntKind::Int))
}

fn shuffle(env: &Env, args: &Args<'_>) -> Answer {
    let random = random(env)?;
    let text = args.text(0)?;
    env.budget.charge(text.len().saturating_mul(8))?;
    let mut letters: Vec<char> = text.chars().collect();
    for last in (1..letters.len()).rev() {
        let end = u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1);
        let other = random.below(end).and_then(|other| usize::try_from(other).ok());
        letters.swap(last, other.unwrap_or(last));
    }
    Ok(Value::text(letters.into_iter().collect::<String>()))
}

fn uuid(env: &Env, _: &Args<'_>) -> Answer {
    let drawn = u128::from_be_bytes(random(env)?.bytes());
    // Version 4, of the usual variant.
    let bits = drawn & !(0xf << 76) & !(0b11 << 62) | (0x4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    Ok(Value::text(parts.join("-")))
}
