//! A remove strategy, as people type it.

use clap::ValueEnum;
use cleat_api::managedcluster::RemoveStrategy;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    #[value(name = "Needless", alias = "needless")]
    Needless,
    #[value(name = "Required", alias = "required")]
    Required,
}

impl From<Strategy> for RemoveStrategy {
    fn from(typed: Strategy) -> Self {
        match typed {
            Strategy::Needless => Self::Needless,
            Strategy::Required => Self::Required,
        }
    }
}
