#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { cleat_store::fuzzing::stored_record(bytes) });
