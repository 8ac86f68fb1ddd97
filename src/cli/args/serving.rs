//! Options for the files and terminals that acpipe serves to agents itself.

use crate::core::host::Offer;
use clap::{Args, ValueEnum};

/// What agents get where their client does not serve it.
#[derive(Debug, Args)]
pub struct ServingArgs {
    /// Serve files and commands to agents that want them of their client; several with commas
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub serve: Vec<Served>,
}

/// Capability that acpipe can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Served {
    /// Text files in the session's directories
    Fs,
    /// Commands
    Terminal,
}

impl ServingArgs {
    /// Converts the options to the core's type.
    pub fn offer(&self) -> Offer {
        let files = self.serve.contains(&Served::Fs);
        Offer {
            read_files: files,
            write_files: files,
            terminals: self.serve.contains(&Served::Terminal),
        }
    }
}
