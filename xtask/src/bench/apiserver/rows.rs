//! What was measured on both servers, beside what is to be reached.

use super::super::table::{Row, percentile};
use super::{Figures, Size, Timed};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What is to be reached.
#[derive(Clone, Copy)]
enum Aim {
    /// Nothing: it is told, not judged.
    None,
    /// So many times as much as theirs.
    Times(f64),
    /// At most this part of theirs.
    Part(f64),
    /// Less than this, whatever theirs is.
    Below(f64),
}

/// One of the measured loads.
type Which = fn(&Figures) -> &Timed;

pub(super) fn rows(size: &Size, ours: &Figures, theirs: Option<&Figures>) -> Vec<Row> {
    let mut rows = Vec::new();
    let clients = size.others();
    for (index, (clients, timed)) in ours.creates.iter().enumerate() {
        let other = theirs.and_then(|theirs| theirs.creates.get(index)).map(|(_, timed)| timed);
        // What a single client can reach is up to the disk.
        let rate = if *clients > 1 { Aim::Times(8.0) } else { Aim::None };
        let late = if *clients == size.others() { Aim::Part(0.25) } else { Aim::None };
        let who = if *clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        pair(&mut rows, &format!("create, {who}"), timed, other, rate, late);
    }
    let others: [(&str, Which); 4] = [
        ("get", |figures| &figures.gets),
        ("patch", |figures| &figures.patches),
        ("server-side apply", |figures| &figures.applies),
        ("delete", |figures| &figures.deletes),
    ];
    for (what, of) in others {
        let what = format!("{what}, {clients} clients");
        pair(&mut rows, &what, of(ours), theirs.map(of), Aim::None, Aim::None);
    }
    let mut one = |what: String, of: fn(&Figures) -> f64, aim: Aim| {
        rows.push(row(what, of(ours), theirs.map(of), aim));
    };
    one(
        format!("list of {}, ms, p50 of {}", ours.listed, ours.lists.len()),
        |figures| percentile(&figures.lists, 0.5),
        Aim::Part(0.5),
    );
    let watched = format!("write to event, {} watchers, ms", size.watchers);
    one(format!("{watched}, p50"), |figures| percentile(&figures.fanout, 0.5), Aim::None);
    one(format!("{watched}, p99"), |figures| percentile(&figures.fanout, 0.99), Aim::Part(0.5));
    let memory = format!("resident with {} ConfigMaps, MiB", size.objects);
    one(memory.clone(), |figures| figures.resident / MEBIBYTE, Aim::Part(0.125));
    one(
        format!("{memory}, {} s later", size.rest.as_secs()),
        |figures| figures.rested / MEBIBYTE,
        Aim::Part(0.125),
    );
    one(
        "ready from nothing, ms".to_owned(),
        |figures| percentile(&figures.starts.from_nothing, 0.5) * 1000.0,
        Aim::Below(200.0),
    );
    let stored = format!("ready with {} on disk, ms", size.stored);
    one(
        stored.clone(),
        |figures| percentile(&figures.starts.asked, 0.5) * 1000.0,
        Aim::Below(2000.0),
    );
    one(
        format!("{stored}, after kill -9"),
        |figures| percentile(&figures.starts.killed, 0.5) * 1000.0,
        Aim::Below(2000.0),
    );
    rows
}

/// How many a second, and how long the slowest of a hundred took.
fn pair(
    rows: &mut Vec<Row>,
    what: &str,
    ours: &Timed,
    theirs: Option<&Timed>,
    rate: Aim,
    late: Aim,
) {
    let other = theirs.map(|timed| timed.per_second);
    rows.push(row(format!("{what}, per second"), ours.per_second, other, rate));
    let slow = |timed: &Timed| percentile(&timed.times, 0.99);
    rows.push(row(format!("{what}, ms, p99"), slow(ours), theirs.map(slow), late));
}

fn row(what: String, ours: f64, theirs: Option<f64>, aim: Aim) -> Row {
    let ratio = theirs.map(|theirs| ours / theirs);
    let (target, met) = match aim {
        Aim::None => (String::new(), None),
        Aim::Times(times) => (format!("≥ {times}"), ratio.map(|ratio| ratio >= times)),
        Aim::Part(part) => (format!("≤ {part}"), ratio.map(|ratio| ratio <= part)),
        Aim::Below(most) => (format!("< {most}"), Some(ours < most)),
    };
    Row {
        what,
        measured: figure(ours),
        bare: theirs.map(figure).unwrap_or_default(),
        ratio: ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        target,
        met,
    }
}

/// Three or more digits that mean something.
fn figure(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_about_the_ratio_or_about_ours() {
        let met = |ours, theirs, aim| row(String::new(), ours, theirs, aim).met;
        assert_eq!(met(800.0, Some(100.0), Aim::Times(8.0)), Some(true));
        assert_eq!(met(799.0, Some(100.0), Aim::Times(8.0)), Some(false));
        assert_eq!(met(25.0, Some(100.0), Aim::Part(0.25)), Some(true));
        assert_eq!(met(26.0, Some(100.0), Aim::Part(0.25)), Some(false));
        assert_eq!(met(199.0, None, Aim::Below(200.0)), Some(true));
        assert_eq!(met(1.0, None, Aim::Part(0.5)), None);
        assert_eq!(met(1.0, Some(1.0), Aim::None), None);
    }
}
