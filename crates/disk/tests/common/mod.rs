//! Files for the tests.
#![allow(dead_code, missing_docs)]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use likewise_disk::{JsonlRules, RoleRules};

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Creates a file with this name and these bytes, open for reading.
pub fn file(name: &str, bytes: &[u8]) -> File {
    File::create(path(name)).unwrap().write_all(bytes).unwrap();
    File::open(path(name)).unwrap()
}

pub fn rules() -> JsonlRules {
    JsonlRules {
        text_fields: vec!["text".into()],
        id_field: Some("id".into()),
        id_required: false,
        fields: Vec::new(),
        tokens: None,
        text_without_tokens: None,
        roles: RoleRules::default(),
        max_document: 64 << 20,
    }
}
