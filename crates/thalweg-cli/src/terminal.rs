//! The terminal that standard output is.

use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

/// The width of the terminal in characters: the variable COLUMNS, or what the terminal says. `None`
/// if standard output is none and the variable is not set.
pub(crate) fn width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || {
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| tcgetwinsize(&stdout).ok()).flatten();
        size.map(|size| size.ws_col.into())
    };
    // A terminal that does not know its width says 0.
    set.or_else(of_terminal).filter(|&width| width > 0)
}
