//! The machine of a measurement, and the versions of the peers: what another person needs to repeat it.

use std::{fs, process::Command, thread::available_parallelism};

use serde::{Deserialize, Serialize};

use crate::{
    harness::{Context, Load},
    peers::program::{TBB, compiler},
};

/// The circumstances of a measurement. Figures are compared only if all of them are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    machine: String,
    /// The versions of the peers and of the compiler.
    versions: String,
    threads: usize,
    smoke: bool,
}

impl Setting {
    /// The circumstances here.
    pub fn here(context: &Context) -> Self {
        Self { machine: machine(), versions: versions(), threads: context.threads, smoke: context.smoke }
    }

    /// A sentence or two for the documents.
    pub fn sentence(&self) -> String {
        let smoke = if self.smoke { "**A smoke run: these figures mean little.** " } else { "" };
        let Self { machine, versions, threads, .. } = self;
        format!("{smoke}Measured on {machine}, with {threads} threads where a row states none; {versions}.")
    }
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let processor = field("model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let count = available_parallelism().map_or(1, usize::from);
    let plural = if count == 1 { "" } else { "s" };
    let flags = field("flags").unwrap_or_default();
    let flag = |name: &str, text: &'static str| {
        if flags.split_whitespace().any(|flag| flag == name) { text } else { "" }
    };
    let (vectors, guest) = (flag("avx512f", ", AVX-512"), flag("hypervisor", ", a virtual machine"));
    format!("{count} processor{plural} of {processor}{vectors}{guest}")
}

fn versions() -> String {
    let mut all: Vec<String> = ["rayon", "chili", "ndarray"].iter().map(|name| crate_version(name)).collect();
    // A version is no figure, but it fits the protocol of the peers: two numbers.
    if let Ok(mut program) = TBB.start()
        && let Ok(version) = program.time("version", 1, 1, Load::back_to_back(2, 1))
    {
        all.push(format!("oneTBB {}.{}", version[0], version[1]));
    }
    let compiler = compiler();
    let mut words = compiler.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).arg("--version").output();
    let first = output.ok().and_then(|output| {
        String::from_utf8_lossy(&output.stdout).lines().next().map(|line| line.trim().to_string())
    });
    all.extend(first.filter(|line| !line.is_empty()));
    all.join(", ")
}

/// The version of a crate that this program was built with.
fn crate_version(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let line = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&line).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or_else(|| name.into(), |(version, _)| format!("{name} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_crates_are_those_of_the_lock_file() {
        let version = crate_version("rayon");
        assert!(version.starts_with("rayon 1."), "{version}");
        assert_eq!(crate_version("no-such-crate"), "no-such-crate");
    }

    #[test]
    fn the_setting_names_the_processors_and_the_threads() {
        let setting = Setting::here(&Context { threads: 3, smoke: true, peers: false });
        let sentence = setting.sentence();
        assert!(sentence.starts_with("**A smoke run"), "{sentence}");
        assert!(sentence.contains("3 threads") && sentence.contains("rayon 1."), "{sentence}");
    }
}
