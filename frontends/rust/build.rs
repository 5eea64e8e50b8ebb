//! Compiles `frontends/c/fxflow.c` with the system's C compiler (`CC`), without crates.
use std::{env, path::PathBuf, process::Command};

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?} failed");
}

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let c = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../c");
    let object = out.join("fxflow.o");
    let library = out.join("libfxflow.a");
    run(Command::new(env::var("CC").unwrap_or("cc".into()))
        .args(["-std=c11", "-O2", "-fPIC", "-c", "-o"])
        .arg(&object)
        .arg(c.join("fxflow.c")));
    let _ = std::fs::remove_file(&library);
    run(Command::new("ar").arg("crs").arg(&library).arg(&object));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=fxflow");
    println!("cargo:rustc-link-lib=dl");
    println!("cargo:rerun-if-changed={}", c.join("fxflow.c").display());
    println!("cargo:rerun-if-changed={}", c.join("fxflow.h").display());
}
