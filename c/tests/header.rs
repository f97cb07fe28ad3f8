//! The committed header is the one that cbindgen generates from the source.

use std::{env, fs, path::Path};

#[test]
fn the_header_matches_the_source() {
    let _deadline = testing::deadline();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_config(config).with_src(root.join("src/ffi.rs")).generate();
    let mut made = Vec::new();
    bindings.unwrap().write(&mut made);
    let (made, path) = (String::from_utf8(made).unwrap(), root.join("include/anabranch.h"));
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == committed,
        "{} differs from the source; generate it again: UPDATE_HEADER=1 cargo test -p anabranch-c --test header",
        path.display()
    );
}
