#![no_main]

// The engine panics on some arguments, and that is caught. The fuzzer's own hook would take it for a
// finding; without it, what nobody catches still is one.
libfuzzer_sys::fuzz_target!(
    init: { std::panic::set_hook(Box::new(|_| {})) },
    |bytes: &[u8]| { cleat_apiserver::fuzzing::cel(bytes) }
);
