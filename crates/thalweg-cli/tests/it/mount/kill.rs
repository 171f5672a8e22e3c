//! Daemons that are killed while files are written.
