//! Runs AnsibleJobs with `ansible-playbook`, where no automation platform does.
//!
//! Nothing from a job becomes part of a command line or passes through a shell: variables go through
//! a file, credentials through the environment or files that only this user may read, and the job
//! template's name only chooses among playbooks that the operator of this runner provides.

mod claim;
mod credentials;
mod family;
mod guard;
mod log;
mod playbook;
mod process;
mod runner;
mod variables;

pub use self::claim::{Served, served_by};
pub use self::guard::stand_guard;
pub use self::playbook::Playbooks;
pub use self::runner::{Config, Error, start};
