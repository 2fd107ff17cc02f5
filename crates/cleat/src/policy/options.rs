//! How ConfigurationPolicies are looked after, whoever does: a controller by itself, an agent, or
//! `cleat up`.

use clap::ValueEnum;
use cleat_agent::policy;
use cleat_core::policy::observed::TerminatingNamespaces;

#[derive(Clone, clap::Args)]
pub(crate) struct PolicyOptions {
    /// Whether the namespace selectors of policies that do not say take namespaces that are being
    /// deleted
    #[arg(long, value_enum, default_value = "IfMatch")]
    default_terminating_namespace_inclusion: Inclusion,
    /// Functions that the templates of policies may not use
    #[arg(long, value_delimiter = ',')]
    template_function_denylist: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Inclusion {
    #[value(name = "IfMatch")]
    IfMatch,
    #[value(name = "Drop")]
    Drop,
}

impl PolicyOptions {
    pub(crate) fn apply(&self, config: policy::Config) -> policy::Config {
        policy::Config {
            terminating_namespaces: self.terminating_namespaces(),
            denied_functions: self.denied_functions(),
            ..config
        }
    }

    pub(crate) fn denied_functions(&self) -> Vec<String> {
        self.template_function_denylist.clone()
    }

    fn terminating_namespaces(&self) -> TerminatingNamespaces {
        match self.default_terminating_namespace_inclusion {
            Inclusion::IfMatch => TerminatingNamespaces::Included,
            Inclusion::Drop => TerminatingNamespaces::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        options: PolicyOptions,
    }

    #[test]
    fn functions_and_namespaces_are_denied_as_typed() {
        let plain = Typed::parse_from(["x"]).options;
        assert!(plain.denied_functions().is_empty());
        assert_eq!(plain.terminating_namespaces(), TerminatingNamespaces::Included);
        let typed = [
            "x",
            "--template-function-denylist=lookup,fromSecret",
            "--default-terminating-namespace-inclusion=Drop",
        ];
        let typed = Typed::parse_from(typed).options;
        assert_eq!(typed.denied_functions(), ["lookup", "fromSecret"]);
        assert_eq!(typed.terminating_namespaces(), TerminatingNamespaces::Dropped);
    }
}
