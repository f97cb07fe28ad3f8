//! Settings of a runtime: their defaults, the environment variables that change them, and their checks.

use crate::{device::Device, error::Error, processors::default_threads};
use anabranch_graph::command::CommandGraph;
use anabranch_wire::Options;
use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The path of the file to which the graphs are written when the runtime ends.
const PRINT_GRAPHS: &str = "ANABRANCH_PRINT_GRAPHS";

/// The number of nodes of a dry run.
const DRY_RUN_NODES: &str = "ANABRANCH_DRY_RUN_NODES";

/// Whether tasks are checked for elements that they declared to write and did not.
const CHECKED: &str = "ANABRANCH_CHECKED";

/// Whether threads that wait run tasks.
const HELP_WHILE_WAITING: &str = "ANABRANCH_HELP_WHILE_WAITING";

/// After how many seconds a node that does not answer ends the others.
const NODE_TIMEOUT: &str = "ANABRANCH_NODE_TIMEOUT";

/// The range of the number of nodes, in words.
const NODES: &str = "a number from 1 to 4096";

/// The range of the timeout of nodes, in words.
const TIMEOUT: &str = "a number of seconds above 0, or none";

/// The settings of a runtime. `None` means: as the environment says, or the default.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) threads: Option<usize>,
    pub(crate) pin: Option<bool>,
    pub(crate) max_in_flight: usize,
    pub(crate) host_lanes: usize,
    pub(crate) help_while_waiting: Option<bool>,
    pub(crate) help_while_submitting: bool,
    pub(crate) name: String,
    pub(crate) seed: Option<u64>,
    pub(crate) patience: Duration,
    pub(crate) checked: Option<bool>,
    /// `Some(None)`: a node is never lost.
    pub(crate) node_timeout: Option<Option<Duration>>,
    /// Whether the program may make communicators.
    pub(crate) communicators: bool,
    /// The device that recorded kernels run on.
    pub(crate) device: Option<Arc<dyn Device>>,
    pub(crate) record: RecordSettings,
}

/// What a runtime records about its program.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordSettings {
    /// Keep the graphs for the program to ask for.
    pub(crate) graphs: bool,
    /// Write the graphs to this file when the runtime ends.
    pub(crate) path: Option<PathBuf>,
    /// Generate the commands of a dry run for this many nodes.
    pub(crate) nodes: Option<u16>,
    /// This node, if there are several.
    pub(crate) node: Option<u16>,
}

impl RecordSettings {
    /// Whether there is anything to record.
    pub(crate) fn is_recording(&self) -> bool {
        self.graphs || self.path.is_some() || self.nodes.is_some()
    }

    /// Whether there are commands to draw.
    #[cfg(feature = "print")]
    pub(crate) fn has_commands(&self) -> bool {
        self.nodes.is_some() || self.node.is_some()
    }

    /// Whether this node prints and writes nothing, because the first one does.
    pub(crate) fn is_quiet(&self) -> bool {
        self.node.is_some_and(|node| node != 0)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threads: None,
            pin: None,
            max_in_flight: 4096,
            host_lanes: 16,
            help_while_waiting: None,
            help_while_submitting: false,
            name: "anabranch-".into(),
            seed: None,
            patience: Duration::from_secs(10),
            checked: None,
            node_timeout: None,
            communicators: false,
            device: None,
            record: RecordSettings::default(),
        }
    }
}

impl Settings {
    /// The settings, with those that the program has not made taken from the environment. A setting of the
    /// program takes precedence, and the variable is then not read.
    pub(crate) fn with_environment(mut self) -> Result<Self, Error> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        if let Some(path) = variable(PRINT_GRAPHS) {
            self.record.path = Some(path.into());
        }
        if self.record.nodes.is_none()
            && let Some(nodes) = variable(DRY_RUN_NODES)
        {
            let number = nodes.to_str().and_then(|nodes| nodes.parse().ok());
            let wrong = || out_of_range(DRY_RUN_NODES, nodes.display(), NODES);
            self.record.nodes = Some(number.ok_or_else(wrong)?);
        }
        if self.node_timeout.is_none()
            && let Some(seconds) = variable(NODE_TIMEOUT)
        {
            let wrong = || out_of_range(NODE_TIMEOUT, seconds.display(), TIMEOUT);
            self.node_timeout = Some(seconds.to_str().and_then(parse_timeout).ok_or_else(wrong)?);
        }
        for (name, setting) in
            [(HELP_WHILE_WAITING, &mut self.help_while_waiting), (CHECKED, &mut self.checked)]
        {
            if setting.is_none()
                && let Some(value) = variable(name)
            {
                let wrong = || out_of_range(name, value.display(), "0, 1, true or false");
                *setting = Some(value.to_str().and_then(parse_bool).ok_or_else(wrong)?);
            }
        }
        Ok(self)
    }

    /// Whether tasks are checked: by default in builds with debug assertions.
    pub(crate) fn is_checked(&self) -> bool {
        self.checked.unwrap_or(cfg!(debug_assertions))
    }

    /// Whether threads that wait run tasks.
    pub(crate) fn helps(&self) -> bool {
        self.help_while_waiting.unwrap_or(true)
    }

    /// Whether threads that wait for room to submit run tasks, too.
    pub(crate) fn helps_to_submit(&self) -> bool {
        self.help_while_submitting && self.helps()
    }

    /// The settings of the transport between nodes.
    pub(crate) fn transport(&self) -> Options {
        let options = Options::new().communicators(self.communicators);
        match self.node_timeout {
            Some(timeout) => options.timeout(timeout),
            None => options,
        }
    }

    /// Checks the settings and returns the number of compute threads.
    pub(crate) fn check(&self) -> Result<usize, Error> {
        if let Some(nodes) = self.record.nodes
            && !(1..=CommandGraph::MAX_NODES).contains(&nodes)
        {
            return Err(out_of_range("the number of nodes of a dry run", nodes, NODES));
        }
        if let Some(path) = &self.record.path
            && let Err(range) = check_path(path)
        {
            return Err(out_of_range(PRINT_GRAPHS, path.display(), range));
        }
        if self.node_timeout == Some(Some(Duration::ZERO)) {
            return Err(out_of_range("node_timeout", "0 s", TIMEOUT));
        }
        let threads = self.threads.map_or_else(default_threads, Ok)?;
        let at_least_one =
            [("threads", threads), ("max_in_flight", self.max_in_flight), ("host_lanes", self.host_lanes)];
        for (setting, value) in at_least_one {
            if value == 0 {
                return Err(out_of_range(setting, value, "1 or more"));
            }
        }
        Ok(threads)
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

fn parse_timeout(text: &str) -> Option<Option<Duration>> {
    if text == "none" {
        return Some(None);
    }
    let timeout = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (!timeout.is_zero()).then_some(Some(timeout))
}

fn out_of_range(setting: &'static str, value: impl ToString, range: &'static str) -> Error {
    Error::Setting { setting, value: value.to_string(), range }
}

/// Checks that graphs can be written to a file with this name; if not, returns the names that are possible.
#[cfg(feature = "print")]
fn check_path(path: &Path) -> Result<(), &'static str> {
    let format = anabranch_graph::print::Format::from_path(path);
    format.map(|_| ()).map_err(|_| "a path that ends in .svg, .dot, .mmd or .json")
}

#[cfg(not(feature = "print"))]
fn check_path(_: &Path) -> Result<(), &'static str> {
    Err("no value: this program is built without the feature `print` of `anabranch`, which draws graphs")
}
