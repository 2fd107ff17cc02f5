//! How many files this process may open: connections are files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is assumed where there is no bound.
const PLENTY: u64 = 1 << 20;

/// Raises the bound to what the system lets a process have without asking, and says how many that is.
/// The usual one, 1,024, is for programs that wait in ways that cannot take more; ours can.
pub(crate) fn allow() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum
        || setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err()
    {
        return current.unwrap_or(PLENTY);
    }
    maximum.unwrap_or(PLENTY)
}
