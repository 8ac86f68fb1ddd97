//! `acpipe man`: manual pages, generated from the command-line definition.

pub mod args;

use super::args::Cli;
use super::save::{Readers, create_dir, save};
use super::screen::{ScreenContent, to_stdout};
use args::ManArgs;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io;

/// Prints the page of acpipe, or writes all pages to a directory.
pub fn print(args: &ManArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        return to_stdout(ScreenContent::Text, |out| {
            Ok(out.write_all(rendered(&definition())?.as_bytes())?)
        });
    };
    create_dir(dir)?;
    for command in with_subcommands(definition()) {
        let path = dir.join(format!("{}.1", name(&command)));
        let page = rendered(&command)?;
        save(&path, Readers::Usual, |out| out.write_all(page.as_bytes()))?;
    }
    Ok(())
}

/// Returns the complete definition of acpipe's command line.
#[must_use]
pub fn definition() -> Command {
    // `acpipe help run` has no page of its own.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

/// Returns a command and all its visible subcommands.
fn with_subcommands(command: Command) -> Vec<Command> {
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut all: Vec<Command> = subcommands.cloned().flat_map(with_subcommands).collect();
    all.push(command);
    all
}

/// Returns the page of a command. Differs from that of `clap_mangen` in the text after the options: its lines are examples
/// and tables, which must not be joined.
fn rendered(command: &Command) -> io::Result<String> {
    // Without a date, the same acpipe always prints the same page. An empty one would be left out.
    let man = Man::new(command.clone())
        .date(" ")
        .source(concat!("acpipe ", env!("CARGO_PKG_VERSION")))
        .manual("acpipe");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        let mut roff = Roff::default();
        roff.control("SH", ["NOTES"]).control("nf", []);
        for line in notes.to_string().lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
        roff.to_writer(&mut page)?;
    }
    Ok(without_breaks(&String::from_utf8_lossy(&page)))
}

/// Removes line breaks beside blank lines, which have no effect: `mandoc` warns about them.
fn without_breaks(page: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let is_blank = |at: usize| lines.get(at).is_some_and(|line| line.is_empty());
    let is_kept =
        |at: &usize| lines[*at] != ".br" || !(is_blank(at + 1) || is_blank(at.wrapping_sub(1)));
    let kept = (0..lines.len()).filter(is_kept);
    kept.flat_map(|at| [lines[at], "\n"]).collect()
}

/// Returns the name of a command's page: `acpipe-sessions-show`.
fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page() {
        let dir = std::env::temp_dir().join(format!("acpipe-man-{}", std::process::id()));
        print(&ManArgs {
            dir: Some(dir.clone()),
        })
        .unwrap();
        let mut cli = Cli::command();
        cli.build();
        let mut commands = vec![(String::from("acpipe"), &cli)];
        let mut pages = 0;
        while let Some((name, command)) = commands.pop() {
            let page = std::fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
            assert!(page.contains(&format!(".TH {name} 1 \" \" ")), "{page}");
            pages += 1;
            for sub in command.get_subcommands() {
                if sub.get_name() != "help" {
                    commands.push((format!("{name}-{}", sub.get_name()), sub));
                }
            }
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), pages);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
