#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { cleat_apiserver::fuzzing::request_path(bytes) });
