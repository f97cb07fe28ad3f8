//! Compares the table of functions and the constants with the headers that are installed.

use super::interface::{Comm, Constants, Datatype, Errhandler, Narrow, Request};
use crate::mpi_ffi::SIGNATURES;
use std::{fmt::Write as _, fs, process::Command};

/// The type of C that a type of the table stands for.
fn c_type(rust: &str) -> &'static str {
    match rust.replace(' ', "").as_str() {
        "c_int" => "int",
        "Aint" => "MPI_Aint",
        "*mutc_int" => "int *",
        "*mutc_char" => "char *",
        "*mutc_void" => "void *",
        "*constc_void" => "const void *",
        "*mut*mut*mutc_char" => "char ***",
        "*mutStatus" => "MPI_Status *",
        "Comm<H>" => "MPI_Comm",
        "*mutComm<H>" => "MPI_Comm *",
        "Datatype<H>" => "MPI_Datatype",
        "*mutDatatype<H>" => "MPI_Datatype *",
        "*mutRequest<H>" => "MPI_Request *",
        "Errhandler<H>" => "MPI_Errhandler",
        other => panic!("{other} has no type of C in this test"),
    }
}

/// A program that the compiler accepts only if every function has the types of the table.
fn declarations() -> String {
    let mut source = String::from("#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n");
    for (name, arguments) in SIGNATURES {
        let arguments: Vec<_> = arguments.iter().copied().map(c_type).collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        // C permits no difference between the types of two declarations.
        writeln!(source, "int {name}({arguments});").unwrap();
    }
    source.push_str("_Static_assert(sizeof(MPI_Aint) == sizeof(intptr_t), \"Aint\");\n");
    source.push_str("_Static_assert(MPI_SUCCESS == 0, \"MPI_SUCCESS\");\n");
    source.push_str("_Static_assert(MPI_MAX_ERROR_STRING <= 8192, \"strings\");\n");
    source.push_str("_Static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= 8192, \"strings\");\n");
    source
}

fn numbers<H>(source: &mut String, constants: &Constants<H>) {
    let Constants { any_source, tag_ub, serialized, multiple, ignore, .. } = constants;
    let numbers = [
        ("MPI_ANY_SOURCE", any_source),
        ("MPI_TAG_UB", tag_ub),
        ("MPI_THREAD_SERIALIZED", serialized),
        ("MPI_THREAD_MULTIPLE", multiple),
    ];
    for (name, value) in numbers {
        writeln!(source, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    writeln!(source, "int ignored(void) {{ return (uintptr_t) MPI_STATUS_IGNORE == {ignore}u; }}").unwrap();
    writeln!(source, "int main(void) {{ return !(ignored() && handles()); }}").unwrap();
}

/// Compiles the program with this compiler and runs it; says so if there is no such compiler.
fn run(compiler: &str, package: &str, source: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("check.c"), folder.path().join("check"));
    fs::write(&file, source).unwrap();
    let what = format!("the comparison with the header of {package}");
    let arguments = |command: &mut Command| {
        command.arg("-o").args([&program, &file]);
    };
    if !testing::mpi::compile(compiler, package, &what, arguments) {
        return;
    }
    assert!(Command::new(&program).status().unwrap().success(), "a constant differs");
}

#[test]
fn the_table_is_that_of_open_mpi() {
    let _deadline = testing::deadline();
    let mut source = declarations();
    let symbols = std::cell::RefCell::new(Vec::new());
    let constants = Constants::of_open_mpi(|symbol| {
        symbols.borrow_mut().push(symbol.to_owned());
        Some(0)
    })
    .unwrap();
    // In the order in which the constants ask for them.
    let handles =
        ["MPI_COMM_WORLD", "MPI_BYTE", "MPI_REQUEST_NULL", "MPI_ERRORS_RETURN", "MPI_ERRORS_ARE_FATAL"];
    let symbols = symbols.into_inner();
    assert_eq!(symbols.len(), handles.len());
    source.push_str("#include <dlfcn.h>\nint handles(void) { return 1");
    for (handle, symbol) in handles.iter().zip(&symbols) {
        write!(source, " && (void *) {handle} == dlsym(RTLD_DEFAULT, \"{symbol}\")").unwrap();
    }
    source.push_str("; }\n");
    numbers(&mut source, &constants);
    run("mpicc.openmpi", "libopenmpi-dev", &format!("#define _GNU_SOURCE\n{source}"));
}

#[test]
fn the_table_is_that_of_mpich() {
    let _deadline = testing::deadline();
    let constants = Constants::<Narrow>::MPICH;
    let Constants { world: Comm(world), byte: Datatype(byte), .. } = constants;
    let Constants { request_null: Request(request), errors_return: Errhandler(errors), .. } = constants;
    let Errhandler(fatal) = constants.errors_are_fatal;
    let mut source = declarations();
    source.push_str("_Static_assert(sizeof(MPI_Comm) == sizeof(int), \"handles\");\n");
    let values = [
        ("MPI_COMM_WORLD", world),
        ("MPI_BYTE", byte),
        ("MPI_REQUEST_NULL", request),
        ("MPI_ERRORS_RETURN", errors),
        ("MPI_ERRORS_ARE_FATAL", fatal),
    ];
    for (name, value) in values {
        writeln!(source, "_Static_assert((unsigned) {name} == {}u, \"{name}\");", value.number() as u32)
            .unwrap();
    }
    source.push_str("int handles(void) { return 1; }\n");
    numbers(&mut source, &constants);
    run("mpicc.mpich", "libmpich-dev", &source);
}
