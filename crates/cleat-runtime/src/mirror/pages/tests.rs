use super::*;

const ROOM: usize = 16 << 20;
const METADATA: Ask = Ask { form: Form::Metadata, limit: PAGE };

fn whole(limit: usize) -> Ask {
    Ask { form: Form::Whole, limit }
}

/// Pages of objects of one size, all of them wanted, until they are as large as they get.
fn grown(size: usize) -> (Pages, Vec<usize>) {
    let (mut pages, mut limits) = (Pages::default(), Vec::new());
    for _ in 0..4 {
        let ask = pages.next(10_000, ROOM);
        let is_whole = ask.form == Form::Whole;
        limits.push(if is_whole { ask.limit } else { 0 });
        pages.told(ask.limit, ask.limit, is_whole.then_some(ask.limit * size));
    }
    (pages, limits)
}

#[test]
fn pages_grow_as_long_as_objects_are_small() {
    assert_eq!(grown(500).1, [5, 50, 500, 500]);
    assert_eq!(grown(20_000).1, [5, 50, 104, 104]);
    // What is larger is not read page after page.
    assert_eq!(grown(200_000).1, [5, 0, 0, 0]);
}

#[test]
fn few_objects_are_not_worth_a_whole_page() {
    let pages = Pages::default();
    assert_eq!(pages.next(READS_PER_PAGE, ROOM), METADATA);
    assert_eq!(pages.next(READS_PER_PAGE + 1, ROOM), whole(FIRST));
    assert_eq!(grown(500).0.next(READS_PER_PAGE, ROOM), METADATA);
}

#[test]
fn where_most_is_nobodys_metadata_is_asked_for_until_that_changes() {
    let mut pages = grown(500).0;
    pages.told(500, 250, Some(250_000));
    assert_eq!(pages.next(10_000, ROOM), whole(500));
    pages.told(500, 249, Some(250_000));
    assert_eq!(pages.next(10_000, ROOM), METADATA);
    pages.told(500, 0, None);
    assert_eq!(pages.next(10_000, ROOM), METADATA);
    pages.told(500, 400, None);
    assert_eq!(pages.next(10_000, ROOM), whole(500));
}

#[test]
fn no_more_is_asked_for_than_there_is_room_for() {
    let pages = grown(1_000).0;
    assert_eq!(pages.next(10_000, 100_000), whole(100));
    assert_eq!(pages.next(10_000, 19_999), METADATA);
    assert_eq!(Pages::default().next(10_000, 0), METADATA);
}
