//! Observations as text, which processes pass to the one that compares them: a line for each number, word and name.

use crate::model::{Captured, Observation, Observed, Refusal, Report};
use anabranch::Status;
use std::str::Lines;

/// What a node has seen, as text.
pub fn written(seen: &Vec<Observed>) -> String {
    let mut text = String::new();
    seen.write(&mut text);
    text
}

/// What a node has seen, from the text.
///
/// # Panics
/// If the text is not one that [`written`] has made.
pub fn read(text: &str) -> Vec<Observed> {
    let mut lines = text.lines();
    let seen = Text::read(&mut lines);
    assert_eq!(lines.next(), None, "all is read");
    seen
}

trait Text: Sized {
    fn write(&self, text: &mut String);
    fn read(lines: &mut Lines<'_>) -> Self;
}

impl Text for String {
    fn write(&self, text: &mut String) {
        assert!(!self.contains('\n'), "{self} has one line");
        text.push_str(self);
        text.push('\n');
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        lines.next().expect("another line").to_string()
    }
}

impl Text for u64 {
    fn write(&self, text: &mut String) {
        self.to_string().write(text);
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        String::read(lines).parse().expect("a number")
    }
}

impl<T: Text> Text for Vec<T> {
    fn write(&self, text: &mut String) {
        (self.len() as u64).write(text);
        self.iter().for_each(|item| item.write(text));
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        (0..u64::read(lines)).map(|_| T::read(lines)).collect()
    }
}

impl<T: Text> Text for Option<T> {
    fn write(&self, text: &mut String) {
        u64::from(self.is_some()).write(text);
        self.iter().for_each(|item| item.write(text));
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        (u64::read(lines) == 1).then(|| T::read(lines))
    }
}

impl Text for bool {
    fn write(&self, text: &mut String) {
        u64::from(*self).write(text);
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        u64::read(lines) == 1
    }
}

impl Text for Status {
    fn write(&self, text: &mut String) {
        format!("{self:?}").write(text);
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        match String::read(lines).as_str() {
            "Done" => Self::Done,
            "Failed" => Self::Failed,
            "Skipped" => Self::Skipped,
            "Cancelled" => Self::Cancelled,
            other => panic!("{other} is no status of a task that has ended"),
        }
    }
}

impl Text for Report {
    fn write(&self, text: &mut String) {
        self.0.write(text);
        self.1.write(text);
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        Self(Text::read(lines), Text::read(lines))
    }
}

impl Text for Captured {
    fn write(&self, text: &mut String) {
        match self {
            Self::Values(values) => {
                true.write(text);
                values.write(text);
            }
            Self::Failed(chain) => {
                false.write(text);
                chain.write(text);
            }
        }
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        if bool::read(lines) { Self::Values(Text::read(lines)) } else { Self::Failed(Text::read(lines)) }
    }
}

/// A word that says which of several things follows, and its parts.
macro_rules! write {
    ($text:ident, $word:literal $(, $part:ident)*) => {{
        $word.to_string().write($text);
        $($part.write($text);)*
    }};
}

impl Text for Observation {
    fn write(&self, text: &mut String) {
        match self {
            Self::Nothing => write!(text, "nothing"),
            Self::Refused(Refusal::Outside) => write!(text, "outside"),
            Self::Refused(Refusal::NeverWritten) => write!(text, "never written"),
            Self::Task(status, chain) => write!(text, "task", status, chain),
            Self::Captured(captured) => write!(text, "captured", captured),
            Self::Report(report, captured) => write!(text, "report", report, captured),
            Self::GroupReports(reports) => write!(text, "groups", reports),
            Self::CancelAnswer(answer) => write!(text, "cancel", answer),
            Self::Drained(..) => unreachable!("programs with failures on nodes are not drained"),
        }
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        match String::read(lines).as_str() {
            "nothing" => Self::Nothing,
            "outside" => Self::Refused(Refusal::Outside),
            "never written" => Self::Refused(Refusal::NeverWritten),
            "task" => Self::Task(Text::read(lines), Text::read(lines)),
            "captured" => Self::Captured(Text::read(lines)),
            "report" => Self::Report(Text::read(lines), Text::read(lines)),
            "groups" => Self::GroupReports(Text::read(lines)),
            "cancel" => Self::CancelAnswer(Text::read(lines)),
            other => panic!("{other} is no observation"),
        }
    }
}

impl Text for Observed {
    fn write(&self, text: &mut String) {
        let Self { what, called, passed_on } = self;
        what.write(text);
        called.write(text);
        passed_on.write(text);
    }

    fn read(lines: &mut Lines<'_>) -> Self {
        Self { what: Text::read(lines), called: Text::read(lines), passed_on: Text::read(lines) }
    }
}
