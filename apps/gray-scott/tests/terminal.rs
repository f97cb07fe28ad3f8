//! The program on a terminal: colours, and the lines that stay on the screen.

#![cfg(unix)]

mod common;

use common::{folder, program};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{ffi::OsStr, fs::File, io::Read, os::unix::ffi::OsStrExt, path::Path, process::Stdio};

/// Runs the program on a terminal of this width, and returns all that it writes there.
fn on_terminal(folder: &Path, args: &str, columns: u16, no_color: bool) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size).unwrap();
    let mut command = program(folder, args);
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.env("TERM", "xterm-256color").stdin(Stdio::null());
    let mut child = command.stdout(theirs.try_clone().unwrap()).stderr(theirs).spawn().unwrap();
    // The terminal ends when no process has it open any more.
    drop(command);
    let (mut ours, mut text, mut part) = (File::from(ours), Vec::new(), [0; 4096]);
    // On Linux the end is an error.
    while let Ok(len @ 1..) = ours.read(&mut part) {
        text.extend_from_slice(&part[..len]);
    }
    child.wait().unwrap();
    String::from_utf8(text).unwrap()
}

/// A screen on which a text was written.
struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The text has set a colour or another style.
    styled: bool,
}

impl Screen {
    fn showing(text: &str, columns: u16) -> Self {
        let mut screen =
            Self { columns: columns.into(), rows: vec![Vec::new()], row: 0, column: 0, styled: false };
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '\r' => screen.column = 0,
                '\n' => screen.down(),
                '\x1b' => {
                    assert_eq!(chars.next(), Some('['), "an unknown sequence in {text:?}");
                    let mut parameters = String::new();
                    let command = loop {
                        match chars.next().expect("the sequence ends") {
                            command @ '@'..='~' => break command,
                            parameter => parameters.push(parameter),
                        }
                    };
                    screen.obey(command, &parameters);
                }
                char => screen.put(char),
            }
        }
        screen
    }

    fn down(&mut self) {
        self.row += 1;
        self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
    }

    /// Writes a character. The cursor goes to the next row only when there is a character to write.
    fn put(&mut self, char: char) {
        if self.column == self.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), ' ');
        row[self.column] = char;
        self.column += 1;
    }

    fn obey(&mut self, command: char, parameters: &str) {
        let count = parameters.parse().unwrap_or(1);
        match (command, parameters) {
            ('m', _) => self.styled = true,
            ('h' | 'l', "?25") => {}
            ('K', "" | "0") => self.rows[self.row].truncate(self.column),
            ('K', "2") => self.rows[self.row].clear(),
            ('A', _) => self.row = self.row.checked_sub(count).expect("the cursor stays on the screen"),
            other => panic!("an unknown sequence: {other:?}"),
        }
    }

    /// The rows with a progress bar.
    fn bars(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row.iter().any(|char| "█░".contains(*char)));
        rows.map(|row| row.iter().collect()).collect()
    }

    /// All text, without the breaks of lines.
    fn text(&self) -> String {
        self.rows.iter().flatten().collect()
    }
}

#[test]
fn no_line_of_the_bar_is_left_behind_and_no_colour_is_used_where_none_is_wanted() {
    let _deadline = testing::deadline();
    for columns in [40, 200] {
        for no_color in [true, false] {
            let folder = folder();
            // Frames of some milliseconds: the bar is drawn several times.
            let args = "simulate -r 48 -c 40 -n 20 -e 1500 -j 1";
            let written = on_terminal(folder.path(), args, columns, no_color);
            let screen = Screen::showing(&written, columns);
            assert_eq!(screen.styled, !no_color, "{written:?}");
            let bars = screen.bars();
            assert!(bars.len() == 1 && bars[0].contains(" 20/20"), "{columns}: {bars:?}");
            assert!(written.matches("/20").count() >= 2, "{written:?}");
            assert!(screen.text().starts_with("Simulating 48 × 40 cells"), "{}", screen.text());
            assert!(screen.text().contains("20 frames in ") && screen.text().contains("Pictures: "));

            let written = on_terminal(folder.path(), "render output.h5", columns, no_color);
            let screen = Screen::showing(&written, columns);
            assert!(written.contains("/20") && screen.bars().is_empty(), "{written:?}");
            assert_eq!(screen.styled, !no_color, "{written:?}");
            assert!(screen.text().starts_with("Wrote 20 pictures to frames"), "{}", screen.text());
        }
    }
}

#[test]
fn errors_have_no_colour_where_none_is_wanted() {
    let _deadline = testing::deadline();
    let folder = folder();
    for no_color in [true, false] {
        let written = on_terminal(folder.path(), "simulate --rows 0", 80, no_color);
        let screen = Screen::showing(&written, 80);
        assert!(screen.text().contains("from 1 to 1000000000"), "{written:?}");
        assert_eq!(screen.styled, !no_color, "{written:?}");
    }
}
