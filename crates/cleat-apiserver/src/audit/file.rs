//! A log in a file of one event per line.
//!
//! One thread writes it: a disk that takes its time must not keep threads that serve others. Whoever
//! writes an event waits until it is there, so that no more are in line than there are requests at a
//! time.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{Receipt, Sink};

/// When it is dropped, everything in line is written first.
pub struct LogFile {
    line: Option<Sender<Entry>>,
    writer: Option<JoinHandle<()>>,
}

struct Entry {
    text: String,
    done: oneshot::Sender<()>,
}

impl LogFile {
    /// Continues the file, creating it if there is none. It is for its owner's eyes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        Self::over(options.open(path)?)
    }

    fn over(file: impl io::Write + Send + 'static) -> io::Result<Self> {
        let (line, entries) = channel();
        let writer = std::thread::Builder::new()
            .name("audit-log".into())
            .spawn(move || write_all(file, &entries))?;
        Ok(Self { line: Some(line), writer: Some(writer) })
    }
}

impl Sink for LogFile {
    fn write(&self, event: &Value) -> Receipt {
        let (done, receipt) = oneshot::channel();
        let entry = Entry { text: event.to_string() + "\n", done };
        if let Some(line) = &self.line {
            // Nobody takes it only if the writer broke, and then there is nobody to wait for.
            let _ = line.send(entry);
        }
        Receipt::later(receipt)
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.line = None;
        if let Some(writer) = self.writer.take() {
            // It has nothing to say but that it has ended.
            let _ = writer.join();
        }
    }
}

/// Until nobody can write any more. A file that cannot be written is no reason to refuse requests.
fn write_all(mut file: impl io::Write, entries: &Receiver<Entry>) {
    let mut failing = false;
    for Entry { text, done } in entries {
        // In one piece, so that a full disk leaves at most one line that is cut.
        match file.write_all(text.as_bytes()) {
            Err(error) if !failing => {
                failing = true;
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot write the audit log"
                );
            }
            Ok(()) if failing => {
                failing = false;
                tracing::warn!("the audit log can be written again");
            }
            _ => {}
        }
        // A client that went away waits for nothing.
        let _ = done.send(());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use serde_json::json;

    use super::*;

    /// A disk that takes its time: one write for each time it is let.
    struct Slow(mpsc::Receiver<()>);

    impl io::Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_slow_disk_under_the_audit_log_kept_threads_that_served_others() {
        let (go_on, disk) = mpsc::channel();
        let log = LogFile::over(Slow(disk)).unwrap();
        // On the one thread there is: a write that blocked it would never come back.
        let mut first = log.write(&json!({}));
        let mut second = log.write(&json!({}));
        assert!(futures::poll!(&mut first).is_pending());
        go_on.send(()).unwrap();
        first.await;
        assert!(futures::poll!(&mut second).is_pending(), "it is not written yet");
        go_on.send(()).unwrap();
        second.await;
    }

    #[tokio::test]
    async fn a_disk_that_fails_refuses_nobody() {
        let (_, disk) = mpsc::channel();
        let log = LogFile::over(Slow(disk)).unwrap();
        log.write(&json!({})).await;
    }
}
