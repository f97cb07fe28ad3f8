//! Failures as bytes, which one node sends to others.
//!
//! The whole chain of causes is in the bytes, with the task, the line and the node of each failure, so that
//! it reads the same on every node. An error of the program becomes its messages. Names and messages of
//! unusual length are cut off, so that a failure fits into one [note](anabranch_wire::Endpoint::send_note). A
//! failure that was read and is written again has the same bytes.

use super::failure::{CHAIN, Cause, Failure};
use crate::label::{Locations, TaskLabel};
use anabranch_graph::TaskId;
use anabranch_par::discard_payload;
use std::{
    error::Error as StdError,
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The most bytes of a name, of a task or file for example.
const NAME: usize = 240;
/// The most bytes of a message.
const MESSAGE: usize = 1024;
/// The most messages of an error of the program: its own and those of its sources.
const SOURCES: usize = 4;

/// The most bytes of a failure: those in the chain, and the cause of the last.
pub(crate) const LONGEST: usize = (CHAIN as usize + 1) * (2 * NAME + 40) + SOURCES * (MESSAGE + 4) + 16;

const _: () = assert!(LONGEST + 1024 <= anabranch_wire::NOTE);

/// The bytes of a failure. Calls functions of the program, which write the messages of its errors.
pub(crate) fn to_bytes(failure: &Failure) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_failure(failure, &mut bytes);
    debug_assert!(bytes.len() <= LONGEST);
    bytes
}

/// The failure with these bytes, if they are those of one.
pub(crate) fn from_bytes(mut bytes: &[u8], locations: &Locations) -> Option<Arc<Failure>> {
    let failure = read_failure(&mut bytes, locations)?;
    bytes.is_empty().then_some(failure)
}

/// The bytes of an error of the program.
pub(crate) fn error_to_bytes(error: &(dyn StdError + 'static)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_error(error, &mut bytes);
    bytes
}

/// The error with these bytes, if they are those of one.
pub(crate) fn error_from_bytes(mut bytes: &[u8]) -> Option<Arc<dyn StdError + Send + Sync>> {
    match read_byte(&mut bytes)? {
        kind::ERROR => read_error(&mut bytes),
        _ => None,
    }
}

/// The message of an error, which is the program's own and may panic.
fn message_of(error: &(dyn StdError + 'static)) -> String {
    let write = || {
        let mut message = String::new();
        write!(message, "{error}").map_or_else(|_| "(no message)".into(), |()| message)
    };
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|payload| {
        discard_payload(payload);
        "(its message panicked)".into()
    })
}

fn source_of<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
    // The program's own, as above.
    catch_unwind(AssertUnwindSafe(|| error.source())).unwrap_or_else(|payload| {
        discard_payload(payload);
        None
    })
}

/// The first bytes of a text, at most this number, with a mark if there are more.
fn cut(text: &str, most: usize) -> (&str, &str) {
    const MARK: &str = "…";
    if text.len() <= most {
        return (text, "");
    }
    (&text[..text.floor_char_boundary(most - MARK.len())], MARK)
}

fn write_text(text: &str, most: usize, bytes: &mut Vec<u8>) {
    let (text, mark) = cut(text, most);
    bytes.extend(((text.len() + mark.len()) as u16).to_le_bytes());
    bytes.extend([text, mark].concat().as_bytes());
}

fn write_texts<const N: usize>(texts: [&str; N], most: usize, bytes: &mut Vec<u8>) {
    texts.into_iter().for_each(|text| write_text(text, most, bytes));
}

fn write_optional(text: Option<&str>, bytes: &mut Vec<u8>) {
    bytes.push(text.is_some().into());
    text.into_iter().for_each(|text| write_text(text, NAME, bytes));
}

fn write_failure(failure: &Failure, bytes: &mut Vec<u8>) {
    bytes.extend(failure.id.0.to_le_bytes());
    bytes.extend(failure.node.unwrap_or(u16::MAX).to_le_bytes());
    write_label(&failure.task, bytes);
    write_cause(&failure.cause, bytes);
}

fn write_label(task: &TaskLabel, bytes: &mut Vec<u8>) {
    let location = task.location();
    write_texts([task.name(), location.file()], NAME, bytes);
    bytes.extend(location.line().to_le_bytes());
    bytes.extend(location.column().to_le_bytes());
}

/// The kinds of causes, in the order in which they are numbered.
mod kind {
    pub(super) const PANIC: u8 = 0;
    pub(super) const OUTSIDE_DECLARED: u8 = 1;
    pub(super) const UNWRITTEN: u8 = 2;
    pub(super) const READ_BEFORE_WRITE: u8 = 3;
    pub(super) const CALLBACK: u8 = 4;
    pub(super) const ERROR: u8 = 5;
    pub(super) const SKIPPED: u8 = 6;
    pub(super) const CANCELLED: u8 = 7;
    pub(super) const IN_REPLAY: u8 = 8;
    pub(super) const REPLAYS_CANCELLED: u8 = 9;
}

fn write_cause(cause: &Cause, bytes: &mut Vec<u8>) {
    match cause {
        Cause::Panic { message, chunk } => {
            bytes.push(kind::PANIC);
            write_text(message, MESSAGE, bytes);
            write_optional(chunk.as_deref(), bytes);
        }
        Cause::OutsideDeclared { buffer, asked, declared, chunk } => {
            bytes.push(kind::OUTSIDE_DECLARED);
            write_texts([buffer, asked, declared], NAME, bytes);
            write_optional(chunk.as_deref(), bytes);
        }
        Cause::Unwritten { buffer, elements, declared, chunk } => {
            bytes.push(kind::UNWRITTEN);
            write_texts([buffer, elements, declared], NAME, bytes);
            write_optional(chunk.as_deref(), bytes);
        }
        Cause::ReadBeforeWrite { buffer, elements, declared, chunk } => {
            bytes.push(kind::READ_BEFORE_WRITE);
            write_texts([buffer, elements, declared], NAME, bytes);
            write_optional(chunk.as_deref(), bytes);
        }
        Cause::Callback { message } => {
            bytes.push(kind::CALLBACK);
            write_text(message, MESSAGE, bytes);
        }
        Cause::Error(error) => write_error(&**error, bytes),
        Cause::Nodes(error) => write_error(&**error, bytes),
        // The links that are kept lead to the root.
        Cause::Skipped { needs, links, .. } => {
            bytes.push(kind::SKIPPED);
            bytes.extend(links.to_le_bytes());
            write_failure(needs, bytes);
        }
        Cause::Cancelled => bytes.push(kind::CANCELLED),
        Cause::ReplaysCancelled => bytes.push(kind::REPLAYS_CANCELLED),
        Cause::InReplay { task, replay, cause } => {
            bytes.push(kind::IN_REPLAY);
            bytes.extend(replay.to_le_bytes());
            write_label(task, bytes);
            write_cause(cause, bytes);
        }
    }
}

fn write_error(error: &(dyn StdError + 'static), bytes: &mut Vec<u8>) {
    let sources = std::iter::successors(Some(error), |error| source_of(*error));
    let messages: Vec<_> = sources.take(SOURCES).map(message_of).collect();
    bytes.extend([kind::ERROR, messages.len() as u8]);
    messages.iter().for_each(|message| write_text(message, MESSAGE, bytes));
}

/// An error of the program on another node: its message, and those of its sources.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Told {
    message: String,
    source: Option<Box<Self>>,
}

fn read_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn read_byte(bytes: &mut &[u8]) -> Option<u8> {
    read_array(bytes).map(|[byte]| byte)
}

fn read_text(bytes: &mut &[u8]) -> Option<String> {
    let len = u16::from_le_bytes(read_array(bytes)?);
    let (text, rest) = bytes.split_at_checked(len.into())?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn read_optional(bytes: &mut &[u8]) -> Option<Option<String>> {
    match read_byte(bytes)? {
        0 => Some(None),
        _ => read_text(bytes).map(Some),
    }
}

fn read_failure(bytes: &mut &[u8], locations: &Locations) -> Option<Arc<Failure>> {
    let id = TaskId(u64::from_le_bytes(read_array(bytes)?));
    let node = u16::from_le_bytes(read_array(bytes)?);
    let task = read_label(bytes, locations)?;
    let cause = read_cause(bytes, locations)?;
    let node = (node != u16::MAX).then_some(node);
    Some(Arc::new(Failure::new(id, task, cause).on(node)))
}

fn read_label(bytes: &mut &[u8], locations: &Locations) -> Option<TaskLabel> {
    let (name, file) = (read_text(bytes)?, read_text(bytes)?);
    let [line, column] = [read_array(bytes)?, read_array(bytes)?].map(u32::from_le_bytes);
    Some(locations.label(&name, &file, line, column))
}

fn read_cause(bytes: &mut &[u8], locations: &Locations) -> Option<Cause> {
    let kind = read_byte(bytes)?;
    Some(match kind {
        kind::PANIC => Cause::Panic { message: read_text(bytes)?, chunk: read_optional(bytes)? },
        kind::OUTSIDE_DECLARED | kind::UNWRITTEN | kind::READ_BEFORE_WRITE => {
            let (buffer, elements, declared) = (read_text(bytes)?, read_text(bytes)?, read_text(bytes)?);
            let chunk = read_optional(bytes)?;
            match kind {
                kind::OUTSIDE_DECLARED => Cause::OutsideDeclared { buffer, asked: elements, declared, chunk },
                kind::UNWRITTEN => Cause::Unwritten { buffer, elements, declared, chunk },
                _ => Cause::ReadBeforeWrite { buffer, elements, declared, chunk },
            }
        }
        kind::CALLBACK => Cause::Callback { message: read_text(bytes)? },
        kind::ERROR => Cause::Error(read_error(bytes)?),
        kind::SKIPPED => {
            let links = u32::from_le_bytes(read_array(bytes)?);
            let needs = read_failure(bytes, locations)?;
            let root = Arc::clone(needs.root());
            Cause::Skipped { needs, root, links }
        }
        kind::CANCELLED => Cause::Cancelled,
        kind::REPLAYS_CANCELLED => Cause::ReplaysCancelled,
        kind::IN_REPLAY => {
            let replay = u64::from_le_bytes(read_array(bytes)?);
            let task = read_label(bytes, locations)?;
            Cause::InReplay { task, replay, cause: Box::new(read_cause(bytes, locations)?) }
        }
        _ => return None,
    })
}

fn read_error(bytes: &mut &[u8]) -> Option<Arc<dyn StdError + Send + Sync>> {
    let mut messages = Vec::new();
    for _ in 0..read_byte(bytes)? {
        messages.push(read_text(bytes)?);
    }
    let link = |source, message| Some(Box::new(Told { message, source }));
    let told: Arc<dyn StdError + Send + Sync> = Arc::new(*messages.into_iter().rev().fold(None, link)?);
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io, panic::Location};

    fn label(name: &str) -> TaskLabel {
        TaskLabel { name: name.to_owned().into(), location: Location::caller() }
    }

    fn failure(id: u64, cause: Cause) -> Arc<Failure> {
        Arc::new(Failure::new(TaskId(id), label(&format!("task {id}")), cause).on(Some(3)))
    }

    /// Sends a failure to another node and from there to a third one.
    fn sent(failure: &Failure) -> Arc<Failure> {
        let locations = Locations::default();
        locations.add(&failure.task);
        let bytes = to_bytes(failure);
        let read = from_bytes(&bytes, &locations).unwrap();
        assert_eq!(to_bytes(&read), bytes);
        assert_eq!((read.id, read.node), (failure.id, failure.node));
        for len in 0..bytes.len() {
            assert!(from_bytes(&bytes[..len], &locations).is_none());
        }
        read
    }

    #[test]
    fn a_failure_reads_the_same_on_another_node() {
        let text = String::from;
        let chunk = Some(text("[3..4]"));
        let (buffer, declared, part) = (text("buffer \"u\""), text("[0..2]"), text("[2..3]"));
        let source = io::Error::new(io::ErrorKind::NotFound, "no such disk");
        let causes = [
            Cause::Panic { message: text("no luck"), chunk: chunk.clone() },
            Cause::Panic { message: text(""), chunk: None },
            Cause::OutsideDeclared {
                buffer: buffer.clone(),
                asked: part.clone(),
                declared: declared.clone(),
                chunk: None,
            },
            Cause::Unwritten {
                buffer: buffer.clone(),
                elements: part.clone(),
                declared: declared.clone(),
                chunk: chunk.clone(),
            },
            Cause::ReadBeforeWrite { buffer, elements: part, declared, chunk },
            Cause::Callback { message: text("no luck") },
            Cause::Error(Arc::new(Told { message: text("cannot save"), source: None })),
            Cause::Error(Arc::new(source)),
            Cause::Cancelled,
            Cause::ReplaysCancelled,
            Cause::InReplay {
                task: label("smooth"),
                replay: 17,
                cause: Box::new(Cause::Callback { message: text("no luck") }),
            },
        ];
        for cause in causes {
            let first = failure(5, cause);
            let (display, debug) = (first.to_string(), format!("{first:?}"));
            let there = sent(&first);
            assert_eq!((there.to_string(), format!("{there:?}")), (display, debug));
            assert!(there.is_same(&first));
        }
    }

    #[test]
    fn a_chain_of_any_length_keeps_its_ends() {
        let mut last = failure(1, Cause::Panic { message: "no luck".into(), chunk: None });
        for id in 2..50 {
            last = failure(id, Cause::skipped(&last));
            let there = sent(&last);
            assert_eq!(there.to_string(), last.to_string());
            assert_eq!(there.root().id, TaskId(1));
            assert!(there.age() == last.age());
            assert_eq!(there.chain().count(), last.chain().count());
        }
    }

    #[test]
    fn the_longest_failure_fits_into_a_note() {
        let long = "é".repeat(MESSAGE);
        let mut error = None;
        for _ in 0..2 * SOURCES {
            error = Some(Box::new(Told { message: long.clone(), source: error }));
        }
        let mut last = Failure::new(TaskId(1), label(&long), Cause::Error(Arc::new(*error.unwrap())));
        for id in 2..40 {
            last = Failure::new(TaskId(id), label(&long), Cause::skipped(&Arc::new(last)));
        }
        let there = sent(&last);
        assert!(to_bytes(&last).len() <= LONGEST);
        assert!(there.task.name().ends_with('…') && there.task.name().len() <= NAME);
    }

    #[test]
    fn an_error_whose_message_panics_is_no_panic() {
        #[derive(Debug)]
        struct Panics;
        impl std::fmt::Display for Panics {
            fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                panic!("deliberately")
            }
        }
        impl StdError for Panics {}
        let there = sent(&failure(1, Cause::Error(Arc::new(Panics))));
        assert!(there.to_string().ends_with("(its message panicked)"));
    }
}
