//! What can go wrong between nodes.

use crate::Tag;
use std::time::Duration;

/// An error of the transport. It ends the communication of this node: every later call returns it again.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The process was started as one of several, and no usable MPI was found.
    #[error(
        "{launcher} started this program as one of {nodes} processes, but no MPI library was found ({tried}): install {install}, or name \
         the library in ANABRANCH_MPI_LIBRARY, or set ANABRANCH_TRANSPORT=none to run the processes without each other"
    )]
    NoMpi {
        /// What started the process.
        launcher: String,
        /// How many processes it has started, if it says so.
        nodes: String,
        /// The libraries that were tried, each with the reason.
        tried: String,
        /// What to install.
        install: String,
    },

    /// The library is no MPI library, or one whose binary interface is unknown.
    #[error(
        "{library} cannot be used as an MPI library: {why}; use Open MPI 3 to 5, MPICH 3.3 or newer, or one with the MPI 5 ABI"
    )]
    UnknownMpi {
        /// The name or path of the library.
        library: String,
        /// The reason.
        why: String,
    },

    /// The library does not belong to the launcher.
    #[error(
        "{launcher} started {expected} processes, but {library} sees {found}: it belongs to another MPI; start the program with the launcher \
         of that library, or name the right library in ANABRANCH_MPI_LIBRARY"
    )]
    OtherMpi {
        /// What started the process.
        launcher: String,
        /// The number of processes by the environment.
        expected: String,
        /// The number of processes by the library.
        found: usize,
        /// The name or path of the library.
        library: String,
    },

    /// The MPI library does not permit calls from several threads, not even one after the other.
    #[error(
        "{library} was initialised for one thread only: build it with support for threads, or initialise it with MPI_THREAD_SERIALIZED or more"
    )]
    Threads {
        /// The name or path of the library.
        library: String,
    },

    /// The MPI library does not permit calls by several threads at the same time.
    #[error(
        "{library} does not permit MPI calls by several threads at the same time, which communicators need: ask for communicators in the \
         first runtime of the process, or initialise MPI with MPI_THREAD_MULTIPLE, with a library that was built with it"
    )]
    OneThreadAtATime {
        /// The name or path of the library.
        library: String,
    },

    /// This process has already connected to the other nodes.
    #[error("this process has an endpoint already: finish it first")]
    Connected,

    /// This process was connected to the other nodes when the communication failed.
    #[error(
        "the communication of this process with the other nodes has failed before: start the program again"
    )]
    Disconnected,

    /// An environment variable has a wrong value.
    #[error("{variable} is \"{value}\": use {allowed}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },

    /// A function of MPI failed.
    #[error("{function} failed on node {node}: {message}; the other nodes are being stopped")]
    Mpi {
        /// The function.
        function: &'static str,
        /// This node.
        node: u16,
        /// MPI's message.
        message: String,
    },

    /// A node does not answer any more.
    #[error(
        "node {node} has not answered for {} s: look whether it was stopped, or whether its machine or network is down (a node that is only slow needs a longer timeout)",
        silence.as_secs_f64()
    )]
    Lost {
        /// The node.
        node: u16,
        /// For how long.
        silence: Duration,
    },

    /// A node ended without [`finish`](crate::Endpoint::finish).
    #[error("node {node} left before the others had finished{}: its own output says why", if *panicked { " because it panicked" } else { "" })]
    Left {
        /// The node.
        node: u16,
        /// Whether a panic ended it.
        panicked: bool,
    },

    /// A node gave up, and made the others give up.
    #[error("node {node} gave up: {why}")]
    Aborted {
        /// The node.
        node: u16,
        /// Its reason.
        why: String,
    },

    /// A node sent what this node cannot understand or place.
    #[error("node {from} sent a wrong message ({what}): do all nodes run the same program?")]
    Malformed {
        /// The sender.
        from: u16,
        /// What is wrong.
        what: String,
    },

    /// A call names a node that does not exist.
    #[error("there is no node {node} among {nodes} nodes")]
    NoSuchNode {
        /// The node.
        node: u16,
        /// The number of nodes.
        nodes: u16,
    },

    /// A call names bytes that its memory does not have.
    #[error("the layout ({layout}) of {tag} is outside of its memory")]
    Outside {
        /// The name of the transfer.
        tag: Tag,
        /// The layout.
        layout: String,
    },

    /// Two transfers to this node have the same name at the same time.
    #[error("{tag} is already expected: two transfers to one node need different tags")]
    Repeated {
        /// The name.
        tag: Tag,
    },

    /// A note is too long.
    #[error("a note has {bytes} bytes, but at most {limit} are permitted: cut it off")]
    LongNote {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },

    /// A message of the program is too long.
    #[error("a post has {bytes} bytes, but at most {limit} are permitted: send it as a transfer")]
    LongPost {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}
