//! What is known of the process, where the system tells.

use std::fs;

use super::exposition::Page;

/// The unit in which Linux tells times, on every machine it runs on.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn tell(page: &mut Page) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if let Some(kilobytes) = resident(&read("/proc/self/status")) {
        let name = "process_resident_memory_bytes";
        page.head(name, "gauge", "Memory that the process has in RAM");
        page.sample(name, "", &(kilobytes * 1024));
    }
    if let Some(times) = Times::read(&read("/proc/self/stat")) {
        let name = "process_cpu_seconds_total";
        page.head(name, "counter", "Time that processors have spent on the process");
        page.sample(name, "", &times.spent);
        if let Some(boot) = boot(&read("/proc/stat")) {
            let name = "process_start_time_seconds";
            page.head(name, "gauge", "When the process began, in seconds since 1970");
            page.sample(name, "", &(boot + times.begun));
        }
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        let name = "process_open_fds";
        page.head(name, "gauge", "Files and connections that the process has open");
        // Looking at the folder opens it.
        page.sample(name, "", &files.count().saturating_sub(1));
    }
    if let Some(most) = most_files(&read("/proc/self/limits")) {
        let name = "process_max_fds";
        page.head(name, "gauge", "Files and connections that the process may have open");
        page.sample(name, "", &most);
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// In seconds.
struct Times {
    spent: f64,
    /// After the system began.
    begun: f64,
}

impl Times {
    fn read(stat: &str) -> Option<Self> {
        // The second field is a name, in brackets, with anything in it.
        let (_, fields) = stat.rsplit_once(") ")?;
        let ticks = |field: usize| -> Option<f64> {
            fields.split(' ').nth(field.checked_sub(3)?)?.parse().ok()
        };
        let spent = (ticks(14)? + ticks(15)?) / TICKS_PER_SECOND;
        Some(Self { spent, begun: ticks(22)? / TICKS_PER_SECOND })
    }
}

/// When the system began, in seconds since 1970.
fn boot(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_understood() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 9 0 0 0 150 50 0 0 20 0 8 0 1200 9 9";
        let times = Times::read(stat).unwrap();
        assert_eq!((times.spent, times.begun), (2.0, 12.0));
        assert_eq!(boot("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(resident("Name: a\nVmRSS:\t  20 kB\n"), Some(20));
        let limits = "Max processes 5 5 p\nMax open files            1024      4096      files \n";
        assert_eq!(most_files(limits), Some(1024));
        assert!(Times::read("").is_none() && boot("").is_none() && most_files("").is_none());
    }
}
