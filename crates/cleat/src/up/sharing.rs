//! How each server of this process is shared among its clients.

use std::time::Duration;

use cleat_apiserver::priority::Bounds;

// Not a doc comment: clap would take it for what `cleat up` is about.
#[derive(clap::Args)]
pub(super) struct Sharing {
    /// Reading requests each server works on at a time [default: 4 per processor, at least 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    max_requests_inflight: Option<u16>,
    /// Other requests each server works on at a time [default: 200]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    max_mutating_requests_inflight: Option<u16>,
    /// Requests of one client that may wait; those beyond are answered 429 [default: 100]
    #[arg(long, value_name = "NUMBER")]
    client_queue_length: Option<u16>,
    /// Seconds after which a request that still waits is answered 429 [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..))]
    client_queue_seconds: Option<u16>,
}

impl Sharing {
    /// What is not given is as the server has it.
    pub(super) fn bounds(&self) -> Bounds {
        let usual = Bounds::default();
        let Self {
            max_requests_inflight,
            max_mutating_requests_inflight,
            client_queue_length,
            client_queue_seconds,
        } = *self;
        Bounds {
            reading: max_requests_inflight.map_or(usual.reading, usize::from),
            writing: max_mutating_requests_inflight.map_or(usual.writing, usize::from),
            queue: client_queue_length.map_or(usual.queue, usize::from),
            patience: client_queue_seconds
                .map_or(usual.patience, |seconds| Duration::from_secs(seconds.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn given(flags: &[&str]) -> Result<Bounds, clap::Error> {
        let command = Sharing::augment_args(clap::Command::new("up").no_binary_name(true));
        let matches = command.try_get_matches_from(flags.iter().copied())?;
        Ok(Sharing::from_arg_matches(&matches)?.bounds())
    }

    #[test]
    fn only_what_is_given_changes() {
        let usual = Bounds::default();
        assert_eq!(given(&[]).unwrap(), usual);
        // As the help and the documentation say.
        assert_eq!((usual.writing, usual.queue, usual.patience.as_secs()), (200, 100, 15));
        assert_eq!(
            given(&["--max-requests-inflight=8", "--client-queue-length=0"]).unwrap(),
            Bounds { reading: 8, queue: 0, ..usual }
        );
        assert_eq!(
            given(&["--max-mutating-requests-inflight=9", "--client-queue-seconds=2"]).unwrap(),
            Bounds { writing: 9, patience: Duration::from_secs(2), ..usual }
        );
        for nothing in ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"] {
            assert!(given(&[nothing]).is_err(), "{nothing}");
        }
    }
}
