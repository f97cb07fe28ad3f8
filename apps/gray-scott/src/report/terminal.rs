//! A terminal on which the bar leaves no lines behind.
//!
//! `indicatif` redraws the line that the cursor is in. If the terminal has become narrower since, most
//! terminals have wrapped the old line onto several rows, of which `indicatif` would redraw the last one
//! only. [`Terminal`] remembers the width of the line, and removes its other rows first. It also writes no
//! spaces to fill the row, because those would be wrapped too.

use console::{Term, measure_text_width};
use indicatif::{ProgressStyle, TermLike};
use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A terminal with the bar's line on it.
#[derive(Debug)]
pub(super) struct Terminal<T> {
    term: T,
    /// The width of the line that is on the screen.
    drawn: AtomicUsize,
}

impl Terminal<Term> {
    /// The terminal of standard error.
    pub(super) fn stderr() -> Self {
        Self::new(Term::buffered_stderr())
    }
}

impl<T: TermLike> Terminal<T> {
    fn new(term: T) -> Self {
        Self { term, drawn: AtomicUsize::new(0) }
    }

    /// Clears the line with all rows that it takes at the present width, and goes to its beginning.
    fn clear_drawn(&self) -> io::Result<()> {
        let width = usize::from(self.term.width()).max(1);
        let rows = self.drawn.swap(0, Ordering::Relaxed).div_ceil(width).max(1);
        for _ in 1..rows {
            self.term.clear_line()?;
            self.term.move_cursor_up(1)?;
        }
        self.term.clear_line()
    }
}

impl<T: TermLike> TermLike for Terminal<T> {
    fn width(&self) -> u16 {
        self.term.width()
    }

    fn height(&self) -> u16 {
        self.term.height()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.term.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        if text == "\r" {
            return self.clear_drawn();
        }
        let text = text.trim_end_matches(' ');
        self.drawn.fetch_add(measure_text_width(text), Ordering::Relaxed);
        self.term.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.clear_drawn()
    }

    fn flush(&self) -> io::Result<()> {
        self.term.flush()
    }
}

/// A line that is never wider than the terminal.
pub(super) fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:16.cyan/blue} {wide_msg}").expect("the template is well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressBar, ProgressDrawTarget};
    use parking_lot::Mutex;
    use std::sync::Arc;

    /// A screen that wraps its lines anew when its width changes.
    #[derive(Clone, Debug)]
    struct Screen(Arc<Mutex<Cells>>);

    #[derive(Debug)]
    struct Cells {
        width: usize,
        rows: Vec<String>,
        row: usize,
    }

    impl Screen {
        fn new(width: usize) -> Self {
            let rows = vec!["earlier output".to_owned(), String::new()];
            Self(Arc::new(Mutex::new(Cells { width, rows, row: 1 })))
        }

        /// Changes the width. The cursor is at the end of the last line.
        fn resize(&self, width: usize) {
            let mut cells = self.0.lock();
            let mut whole = std::mem::take(&mut cells.rows);
            whole.truncate(cells.row + 1);
            for line in whole {
                let line: Vec<char> = line.chars().collect();
                let wrapped = line.chunks(width).map(|part| part.iter().collect());
                cells.rows.extend(if line.is_empty() { vec![String::new()] } else { wrapped.collect() });
            }
            cells.width = width;
            cells.row = cells.rows.len() - 1;
        }

        fn text(&self) -> Vec<String> {
            self.0.lock().rows.iter().filter(|row| !row.is_empty()).cloned().collect()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.0.lock().width as u16
        }

        fn move_cursor_up(&self, n: usize) -> io::Result<()> {
            let mut cells = self.0.lock();
            cells.row = cells.row.checked_sub(n).expect("the cursor stays on the screen");
            Ok(())
        }

        fn move_cursor_down(&self, n: usize) -> io::Result<()> {
            self.0.lock().row += n;
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            unreachable!("the bar does not move to the right")
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            unreachable!("the bar does not move to the left")
        }

        fn write_line(&self, _: &str) -> io::Result<()> {
            unreachable!("the bar writes no whole lines")
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut cells = self.0.lock();
            let row = cells.row;
            cells.rows[row].push_str(&console::strip_ansi_codes(text));
            assert!(cells.rows[row].chars().count() <= cells.width, "{:?} is too wide", cells.rows[row]);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            let mut cells = self.0.lock();
            let row = cells.row;
            cells.rows[row].clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_is_left_behind_at_any_width_and_after_any_change_of_it() {
        let screen = Screen::new(40);
        let target = ProgressDrawTarget::term_like(Box::new(Terminal::new(screen.clone())));
        let bar = ProgressBar::with_draw_target(Some(100), target).with_style(style());
        for (position, width) in [40, 120, 60, 20, 200, 40, 33, 34, 80].into_iter().enumerate() {
            screen.resize(width);
            bar.set_position(position as u64);
            bar.set_message(format!("{position}/100, 20 seconds left, 2830 steps/s, 5.88 Gcell/s, 744 MB/s"));
            bar.force_draw();
            let text = screen.text();
            assert!(text.concat().starts_with("earlier output"), "{text:?}");
            let earlier = "earlier output".len().div_ceil(width);
            assert_eq!(text.len(), earlier + 1, "{width}: {text:?}");
            assert!(text[earlier].contains(&format!("{position}")), "{width}: {text:?}");
        }
        bar.finish_and_clear();
        assert_eq!(screen.text().concat(), "earlier output");
    }
}
