//! Turns through `acpipe acp`, with a minimal client.

use std::process::{Child, Command};

use memchr::memmem;

use crate::floor::Rpc;
use crate::{Bench, Client, Load, Outcome, Output};

impl Bench {
    /// Returns `acpipe acp`, with and without logs on the disk, and the clients of all sections except acpipe.
    pub(crate) fn clients_with_acp(&self) -> Vec<Client> {
        let acp = |name, words: &[&str]| Client {
            is_agent: true,
            ..Client::new(name, words)
        };
        let mut clients = vec![
            acp("acpipe acp", &[&self.acpipe, "acp", "--"]),
            acp(
                "acpipe acp --persist never",
                &[&self.acpipe, "acp", "--persist", "never", "--"],
            ),
        ];
        // The table has ratios to all clients but the first.
        clients.extend(self.clients.iter().skip(1).cloned());
        clients
    }
}

/// Starts an ACP agent for one turn, and reads its output to the end.
pub(crate) fn turn(command: &mut Command, load: &Load) -> Outcome<(Child, Output)> {
    let Rpc {
        child,
        stdin,
        stdout,
    } = Rpc::prompted(command)?;
    let mut stdin = Some(stdin);
    let output = Output::read(stdout, load, |lines| {
        if memmem::find(lines, b"\"stopReason\"").is_some() {
            stdin = None;
        }
        Ok(())
    })?;
    Ok((child, output))
}
