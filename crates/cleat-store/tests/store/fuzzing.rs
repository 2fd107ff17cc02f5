//! The fuzz targets of this crate, on the same few thousand inputs each time.

use cleat_store::fuzzing;

use crate::exercise::exercise;

#[test]
fn stored_record() {
    exercise("stored_record", 2000, fuzzing::stored_record);
}

/// Fewer: each of them opens a file.
#[test]
fn stored_file() {
    exercise("stored_file", 500, fuzzing::stored_file);
}

#[test]
fn backup_format() {
    exercise("backup_format", 2000, fuzzing::backup_format);
}
