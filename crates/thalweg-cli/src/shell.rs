//! `thalweg completions` and `thalweg man`: what shells and man know of the command.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use thalweg::Error;
use thalweg_io::urls::shown_path;

use crate::common::{NewFolder, VerbResult, output};
use crate::done::say;

/// Print what a shell needs to complete verbs and options
///
/// Example: thalweg completions bash > ~/.local/share/bash-completion/completions/thalweg
///
/// Example: thalweg completions zsh > "${fpath[1]}/_thalweg"
///
/// Example: thalweg completions fish > ~/.config/fish/completions/thalweg.fish
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> VerbResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "thalweg", &mut script);
    let mut out = output();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Write a man page for each verb into a folder
///
/// Example: thalweg man ~/.local/share/man/man1
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder; it is made if it does not exist. Pages of the same names are replaced
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn man(args: &ManArgs, command: Command) -> VerbResult {
    let folder = &args.folder;
    let _folder = NewFolder::create(folder)?;
    let wrote = clap_mangen::generate_to(command, folder);
    wrote.map_err(|error| Error::io(&shown_path(folder).into(), "writing", error))?;
    say(&format!("wrote a page for each verb -> {}", shown_path(folder)));
    Ok(())
}
