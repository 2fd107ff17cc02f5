//! How one list of lines becomes another.

/// `-` before what only `old` has, `+` before what only `new` has, in order; equal lines are left
/// out.
pub(super) fn difference(old: &[String], new: &[String]) -> Vec<String> {
    let same = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old, new) = (old.get(same..).unwrap_or_default(), new.get(same..).unwrap_or_default());
    let longest = common(old, new);
    let mut out = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    for (index_old, index_new) in longest {
        remove(old, at_old, index_old, &mut out);
        add(new, at_new, index_new, &mut out);
        (at_old, at_new) = (index_old + 1, index_new + 1);
    }
    remove(old, at_old, old.len(), &mut out);
    add(new, at_new, new.len(), &mut out);
    out
}

fn remove(lines: &[String], from: usize, to: usize, out: &mut Vec<String>) {
    out.extend(lines.get(from..to).unwrap_or_default().iter().map(|line| format!("-{line}")));
}

fn add(lines: &[String], from: usize, to: usize, out: &mut Vec<String>) {
    out.extend(lines.get(from..to).unwrap_or_default().iter().map(|line| format!("+{line}")));
}

/// The places of a longest common subsequence.
fn common(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    // lengths[i][j]: how much old[i..] and new[j..] have in common.
    let width = new.len() + 1;
    let mut lengths = vec![0u32; (old.len() + 1) * width];
    let length = |lengths: &[u32], i: usize, j: usize| {
        lengths.get(i * width + j).copied().unwrap_or_default()
    };
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            let best = if line == other {
                length(&lengths, i + 1, j + 1) + 1
            } else {
                length(&lengths, i + 1, j).max(length(&lengths, i, j + 1))
            };
            if let Some(place) = lengths.get_mut(i * width + j) {
                *place = best;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while let (Some(line), Some(other)) = (old.get(i), new.get(j)) {
        if line == other {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if length(&lengths, i + 1, j) >= length(&lengths, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::difference;

    fn lines(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn only_what_differs_is_shown() {
        let cases = [
            ("a b c", "a b c", ""),
            ("a b c", "a c", "-b"),
            ("a c", "a b c", "+b"),
            ("a x c", "a y c", "-x +y"),
            ("", "a", "+a"),
            ("a b", "b a", "-a +a"),
        ];
        for (old, new, expected) in cases {
            assert_eq!(difference(&lines(old), &lines(new)), lines(expected), "{old} → {new}");
        }
    }
}
