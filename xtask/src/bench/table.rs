//! How results are printed.

/// One measurement beside that of the bare loop, or of whatever else it is compared with.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) bare: String,
    pub(crate) ratio: String,
    pub(crate) target: String,
    /// None where there is nothing to reach.
    pub(crate) met: Option<bool>,
}

pub(crate) fn print(rows: &[Row]) {
    print_beside("bare", rows);
}

/// With a name for what the measurements stand beside.
pub(crate) fn print_beside(other: &str, rows: &[Row]) {
    let head = ["", "measured", other, "ratio", "target", ""].map(str::to_owned);
    let cells = rows.iter().map(|row| {
        let met = match row.met {
            None => "",
            Some(true) => "met",
            Some(false) => "NOT MET",
        };
        let Row { what, measured, bare, ratio, target, .. } = row;
        [what, measured, bare, ratio, target].map(Clone::clone).into_iter().chain([met.to_owned()])
    });
    let lines: Vec<Vec<String>> =
        std::iter::once(head.to_vec()).chain(cells.map(Iterator::collect)).collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    for line in &lines {
        let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            // Words are read from the left, numbers from the right.
            if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
    let missed = rows.iter().filter(|row| row.met == Some(false)).count();
    match missed {
        0 => println!("\nevery target is met"),
        missed => println!("\n{missed} target(s) NOT met"),
    }
}

/// Of the sorted durations, the one that this part of them does not exceed.
pub(crate) fn percentile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "there are few hundred"
    )]
    let index = (part * last as f64).ceil() as usize;
    sorted.get(index.min(last)).copied().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "these are counts of millions at most")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}
