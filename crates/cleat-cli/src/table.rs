//! Columns of text, as wide as they must be, and ages as `kubectl` writes them.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}   ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `5s`, `3m`, `2h`, `4d`.
pub(crate) fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return "<unknown>".to_owned() };
    let age = now.duration_since(since).max(SignedDuration::ZERO);
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_ages_are_short() {
        let row = |cells: [&str; 2]| cells.map(ToOwned::to_owned).to_vec();
        assert_eq!(
            table(&[row(["NAME", "AGE"]), row(["a-long-one", "1s"])]),
            "NAME         AGE\na-long-one   1s\n"
        );
        let at = |second| Timestamp::from_second(second).ok();
        let now = Timestamp::from_second(1_000_000).unwrap();
        for (since, expected) in [
            (at(999_995), "5s"),
            (at(999_400), "10m"),
            (at(990_000), "2h"),
            (at(500_000), "5d"),
            (at(2_000_000), "0s"),
            (None, "<unknown>"),
        ] {
            assert_eq!(age(since, now), expected);
        }
    }
}
