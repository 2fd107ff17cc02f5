//! What is told of seats and queues. There is one row for all clients: their names are nobody's label.

use super::exposition::Page;
use crate::priority::{Priority, WAITS};

pub(super) fn tell(priority: &Priority, page: &mut Page) {
    let levels = priority.levels();
    let labels = |level: &str| format!("flow_schema=\"clients\",priority_level=\"{level}\"");

    let name = "apiserver_flowcontrol_nominal_limit_seats";
    page.head(name, "gauge", "Requests that may be worked on at a time");
    for level in &levels {
        page.sample(name, &format!("priority_level=\"{}\"", level.name), &level.seats);
    }
    let name = "apiserver_flowcontrol_current_executing_requests";
    page.head(
        name,
        "gauge",
        "Requests that are being worked on, without those who wait for nobody",
    );
    for level in &levels {
        page.sample(name, &labels(level.name), &level.executing);
    }
    let name = "apiserver_flowcontrol_current_inqueue_requests";
    page.head(name, "gauge", "Requests that wait for others");
    for level in &levels {
        page.sample(name, &labels(level.name), &level.waiting);
    }
    let name = "apiserver_flowcontrol_rejected_requests_total";
    page.head(name, "counter", "Requests that were not worked on, by why");
    for level in &levels {
        for (reason, count) in level.tally.rejections() {
            page.sample(name, &format!("{},reason=\"{reason}\"", labels(level.name)), &count);
        }
    }
    let name = "apiserver_flowcontrol_request_wait_duration_seconds";
    page.head(name, "histogram", "How long requests waited, by whether they were worked on then");
    for level in &levels {
        for (executed, row) in level.tally.waits() {
            let labels = format!("execute=\"{executed}\",{}", labels(level.name));
            page.histogram(name, &labels, &WAITS, row);
        }
    }
}
