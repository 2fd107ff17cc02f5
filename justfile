# Thin on purpose: every recipe is one command you could type.

# Format, lints, licences, tidiness
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo xtask tidy
    cargo xtask generate --check

# Everything, on the embedded API server; needs Rust alone
test:
    cargo test --workspace

# The integration tests again, on a real kube-apiserver (built on first use; needs Go)
test-kubernetes:
    cargo xtask kubernetes test

# Our API server against a real one, request by request
conformance *ARGS:
    cargo xtask conformance {{ARGS}}

# A hub and three clusters on this machine
up *ARGS:
    cargo run --release -- up {{ARGS}}

# The same kubectl session on our server and on a real one
kubectl:
    cargo xtask kubectl

# Our dry run of policies against the fixtures of the original (needs Go)
dryrun-fixtures *ARGS:
    cargo xtask dryrun-fixtures {{ARGS}}

# Our API server beside kube-apiserver with etcd: the same load on both, and what it costs them
bench-apiserver *ARGS:
    cargo xtask bench apiserver {{ARGS}}

# Memory of our API server while 200,000 objects are listed
bench-lists *ARGS:
    cargo xtask bench lists {{ARGS}}

# The store's file over ten million revisions
bench-revisions *ARGS:
    cargo xtask bench revisions {{ARGS}}

# Our API server under churn for an hour: is its memory flat?
soak *ARGS:
    cargo xtask soak {{ARGS}}

# How fast the agent carries works, beside bare loops on the same real kube-apiserver
bench-work *ARGS:
    cargo xtask bench work {{ARGS}}

# A hub with 1,000 simulated clusters of 20 works each, and 100 of them leaving
bench-fleet *ARGS:
    cargo xtask bench fleet {{ARGS}}

# 200 policies on 500 simulated clusters, propagated and reported
bench-policy-fleet *ARGS:
    cargo xtask bench policy-fleet {{ARGS}}

# How fast policies are evaluated and repaired, beside bare GETs on the same real kube-apiserver
bench-policy *ARGS:
    cargo xtask bench policy {{ARGS}}

# How long delete protection takes to answer, on a real kube-apiserver
bench-webhook *ARGS:
    cargo xtask bench webhook {{ARGS}}

# The agent of works is killed at every request of a work's life; prints how many there are
crash-points:
    cargo test -p cleat-world --test crash_points -- --nocapture

# The random histories of works, and the mistakes that they have to find
histories:
    cargo test -p cleat-core --lib work::tests::histories -- --nocapture

# The random tests with cases nobody has drawn yet, or with those of a seed
explore SEED=`date +%s`:
    PROPTEST_RNG_SEED={{SEED}} cargo test --workspace

# Looks for requests, patches, expressions and files that break a promise; targets are in fuzz/targets
# (needs a nightly Rust and cargo-fuzz)
fuzz TARGET SECONDS="60":
    mkdir -p fuzz/corpus/{{TARGET}}
    cargo +nightly fuzz run {{TARGET}} fuzz/corpus/{{TARGET}} fuzz/seeds/{{TARGET}} -- -max_total_time={{SECONDS}} -timeout=30 -rss_limit_mb=4096
