//! Whether this process was started as one of several, and by what.

use crate::WireError;

/// What started this process, as its environment says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    launcher: Launcher,
    /// The number of processes, where the environment has it.
    nodes: Option<usize>,
    node: u16,
    /// The number of processes on this machine.
    here: usize,
    /// The library that the user has named.
    library: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Launcher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpirun` of MPICH, Intel MPI or MVAPICH: it has a process manager interface (PMI).
    Pmi,
    /// `srun`, for an MPI that uses PMIx (Open MPI) or PMI-2 (MPICH).
    Slurm { pmix: bool },
    /// Another launcher that speaks PMIx, such as `prun`.
    Pmix,
    /// None that is known; the user says that it is MPI.
    Named,
}

/// A process that a launcher has started as one of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launched {
    /// The number of this process, from 0.
    pub node: u16,
    /// The number of these processes on this machine, as far as the launcher says; at least 1.
    pub here: usize,
}

/// Steps of SLURM from this number on are no parallel programs: the script of a batch job, an interactive
/// shell.
const SLURM_SPECIAL_STEPS: u64 = 0xffff_fff0;

impl Launch {
    /// What started this process; `None` if it runs alone. Variables are looked up by the function.
    pub fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, WireError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let transport = variable("ANABRANCH_TRANSPORT");
        let forced = match transport.as_deref() {
            None => false,
            Some("none") => return Ok(None),
            Some("mpi") => true,
            Some(value) => {
                return Err(WireError::Environment {
                    variable: "ANABRANCH_TRANSPORT",
                    value: value.to_owned(),
                    allowed: "mpi or none, or leave it unset to let the launcher decide",
                });
            }
        };
        let number = |name: &str| variable(name).and_then(|value| value.parse::<usize>().ok());
        let (launcher, nodes, node) = if variable("OMPI_COMM_WORLD_SIZE").is_some() {
            (Launcher::OpenMpi, number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_RANK"))
        } else if variable("PMI_RANK").is_some() || variable("PMI_FD").is_some() {
            (Launcher::Pmi, number("PMI_SIZE"), number("PMI_RANK"))
        } else if is_slurm_step(&variable) {
            let pmix = variable("PMIX_RANK").is_some()
                || variable("SLURM_MPI_TYPE").is_some_and(|kind| kind.contains("pmix"));
            (Launcher::Slurm { pmix }, number("SLURM_STEP_NUM_TASKS"), number("SLURM_PROCID"))
        } else if variable("PMIX_RANK").is_some() {
            (Launcher::Pmix, None, number("PMIX_RANK"))
        } else if forced {
            (Launcher::Named, None, None)
        } else {
            return Ok(None);
        };
        if nodes == Some(1) && !forced {
            return Ok(None);
        }
        let node = node.and_then(|node| u16::try_from(node).ok()).unwrap_or(0);
        // Open MPI, Intel MPI, MPICH. SLURM has a list, such as `4(x2),3`, and no variable for this machine.
        let local = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"];
        let per_machine = || variable("SLURM_STEP_TASKS_PER_NODE").and_then(|list| greatest(&list));
        let here = local.into_iter().find_map(number).or_else(per_machine).unwrap_or(1).max(1);
        Ok(Some(Self { launcher, nodes, node, here, library: variable("ANABRANCH_MPI_LIBRARY") }))
    }

    /// The number of this process, where the environment has it.
    pub fn node(&self) -> u16 {
        self.node
    }

    /// What others may know.
    pub fn launched(&self) -> Launched {
        Launched { node: self.node, here: self.here }
    }

    /// The names of the libraries that may belong to the launcher, the most likely one first.
    pub fn libraries(&self) -> Vec<String> {
        if let Some(library) = &self.library {
            return vec![library.clone()];
        }
        let open_mpi = ["libmpi.so.40"].as_slice();
        let mpich = ["libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.0"].as_slice();
        let (first, second) = match self.launcher {
            Launcher::OpenMpi => (open_mpi, ["libmpi_abi.so.0"].as_slice()),
            Launcher::Pmi => (mpich, [].as_slice()),
            Launcher::Slurm { pmix: false } => (mpich, open_mpi),
            Launcher::Slurm { pmix: true } | Launcher::Pmix | Launcher::Named => (open_mpi, mpich),
        };
        first.iter().chain(second).map(|&name| name.to_owned()).collect()
    }

    fn launcher_name(&self) -> &'static str {
        match self.launcher {
            Launcher::OpenMpi => "mpirun (Open MPI)",
            Launcher::Pmi => "mpirun (MPICH or a relative of it)",
            Launcher::Slurm { .. } => "srun",
            Launcher::Pmix => "a launcher with PMIx",
            Launcher::Named => "ANABRANCH_TRANSPORT=mpi",
        }
    }

    /// That no library was found.
    pub fn no_mpi(&self, tried: &str) -> WireError {
        let install = match self.launcher {
            Launcher::OpenMpi | Launcher::Pmix | Launcher::Slurm { pmix: true } => {
                "Open MPI (Debian: apt install openmpi-bin)"
            }
            Launcher::Pmi => "MPICH (Debian: apt install mpich)",
            Launcher::Slurm { pmix: false } | Launcher::Named => {
                "Open MPI (Debian: apt install openmpi-bin) or MPICH (mpich)"
            }
        };
        WireError::NoMpi {
            launcher: self.launcher_name().to_owned(),
            nodes: self.nodes.map_or_else(|| "several".to_owned(), |nodes| nodes.to_string()),
            tried: tried.to_owned(),
            install: install.to_owned(),
        }
    }

    /// The number of nodes, if MPI sees as many processes as the launcher has started.
    pub fn check_nodes(&self, found: usize, library: &str) -> Result<u16, WireError> {
        let expected = self.nodes.unwrap_or(found);
        // A launcher whose number is unknown has started several processes.
        let alone = self.nodes.is_none() && found == 1 && self.launcher != Launcher::Named;
        if expected != found || alone {
            return Err(WireError::OtherMpi {
                launcher: self.launcher_name().to_owned(),
                expected: self.nodes.map_or_else(|| "several".to_owned(), |nodes| nodes.to_string()),
                found,
                library: library.to_owned(),
            });
        }
        u16::try_from(found).map_err(|_| WireError::UnknownMpi {
            library: library.to_owned(),
            why: format!("it has {found} processes, and at most {} are possible", u16::MAX),
        })
    }
}

/// The greatest number in a list of SLURM: `4(x2),3` means 4, 4 and 3.
fn greatest(list: &str) -> Option<usize> {
    list.split(',').filter_map(|entry| entry.split('(').next()?.trim().parse().ok()).max()
}

fn is_slurm_step(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let step = variable("SLURM_STEP_ID").and_then(|step| step.parse::<u64>().ok());
    step.is_some_and(|step| step < SLURM_SPECIAL_STEPS) && variable("SLURM_PROCID").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Result<Option<Launch>, WireError> {
        let find = |name: &str| variables.iter().find(|(other, _)| *other == name);
        Launch::from(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn found(variables: &[(&str, &str)]) -> Launch {
        launch(variables).unwrap().unwrap()
    }

    const OPEN: [(&str, &str); 2] = [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")];
    const SRUN: [(&str, &str); 3] =
        [("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "8")];

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(launch(&[]), Ok(None));
        let open = found(&OPEN);
        assert_eq!((open.launcher, open.nodes, open.node()), (Launcher::OpenMpi, Some(4), 3));
        let hydra = found(&[("PMI_RANK", "2"), ("PMI_SIZE", "3"), ("PMI_FD", "5")]);
        assert_eq!((hydra.launcher, hydra.nodes, hydra.node()), (Launcher::Pmi, Some(3), 2));
        let srun = found(&SRUN);
        assert_eq!((srun.launcher, srun.nodes), (Launcher::Slurm { pmix: false }, Some(8)));
        let srun = found(&[SRUN.as_slice(), &[("PMIX_RANK", "1")]].concat());
        assert_eq!((srun.launcher, srun.nodes), (Launcher::Slurm { pmix: true }, Some(8)));
        assert_eq!(srun.libraries()[0], "libmpi.so.40");
        assert_eq!(found(&[("PMIX_RANK", "1")]).nodes, None);
    }

    #[test]
    fn launchers_say_how_many_processes_are_on_this_machine() {
        let here = |variables: &[(&str, &str)]| found(variables).launched().here;
        assert_eq!(found(&OPEN).launched(), Launched { node: 3, here: 1 });
        assert_eq!(here(&[OPEN.as_slice(), &[("OMPI_COMM_WORLD_LOCAL_SIZE", "2")]].concat()), 2);
        assert_eq!(here(&[("PMI_RANK", "2"), ("PMI_SIZE", "6"), ("MPI_LOCALNRANKS", "3")]), 3);
        for (list, expected) in [("4(x2),3", 4), ("2,5(x3)", 5), ("8", 8), ("", 1), ("many", 1)] {
            let variables = [SRUN.as_slice(), &[("SLURM_STEP_TASKS_PER_NODE", list)]].concat();
            assert_eq!(here(&variables), expected, "{list}");
        }
    }

    #[test]
    fn mpirun_inside_of_a_job_comes_before_the_job() {
        assert_eq!(found(&[SRUN.as_slice(), &OPEN].concat()).launcher, Launcher::OpenMpi);
    }

    #[test]
    fn a_script_or_shell_of_slurm_runs_alone() {
        for step in ["4294967291", "4294967290"] {
            let variables = [("SLURM_STEP_ID", step), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
            assert_eq!(launch(&variables), Ok(None));
        }
        assert_eq!(launch(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), Ok(None));
    }

    #[test]
    fn one_process_runs_alone_unless_mpi_is_asked_for() {
        let one = [("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")];
        assert_eq!(launch(&one), Ok(None));
        assert!(launch(&[one.as_slice(), &[("ANABRANCH_TRANSPORT", "mpi")]].concat()).unwrap().is_some());
        assert_eq!(found(&[("ANABRANCH_TRANSPORT", "mpi")]).launcher, Launcher::Named);
        // An empty value counts as not set.
        assert!(launch(&[OPEN.as_slice(), &[("ANABRANCH_TRANSPORT", "")]].concat()).unwrap().is_some());
    }

    #[test]
    fn the_variable_overrides_the_launcher() {
        assert_eq!(launch(&[OPEN.as_slice(), &[("ANABRANCH_TRANSPORT", "none")]].concat()), Ok(None));
        let error = launch(&[("ANABRANCH_TRANSPORT", "tcp")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ANABRANCH_TRANSPORT is \"tcp\": use mpi or none, or leave it unset to let the launcher decide"
        );
        let named = found(&[OPEN.as_slice(), &[("ANABRANCH_MPI_LIBRARY", "/opt/libmpi.so")]].concat());
        assert_eq!(named.libraries(), ["/opt/libmpi.so"]);
    }

    #[test]
    fn a_library_of_another_launcher_is_an_error() {
        let open = found(&OPEN);
        assert_eq!(open.check_nodes(4, "libmpi.so.40"), Ok(4));
        let error = open.check_nodes(1, "libmpi.so.12").unwrap_err().to_string();
        assert!(
            error.starts_with("mpirun (Open MPI) started 4 processes, but libmpi.so.12 sees 1:"),
            "{error}"
        );
        let pmix = found(&[("PMIX_RANK", "1")]);
        assert!(pmix.check_nodes(1, "x").is_err());
        assert_eq!(pmix.check_nodes(2, "x"), Ok(2));
        assert!(pmix.check_nodes(70_000, "x").is_err());
    }

    #[test]
    fn a_missing_library_is_an_error_that_says_what_to_install() {
        let error = found(&OPEN).no_mpi("libmpi.so.40: no such file").to_string();
        let expected = "mpirun (Open MPI) started this program as one of 4 processes, but no MPI library was found \
            (libmpi.so.40: no such file): install Open MPI (Debian: apt install openmpi-bin), or name the library in \
            ANABRANCH_MPI_LIBRARY, or set ANABRANCH_TRANSPORT=none to run the processes without each other";
        assert_eq!(error, expected);
    }
}
