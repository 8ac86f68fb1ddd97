//! Options for the files and terminals that acpipe serves to agents itself.

use acpipe_model::host::HostServices;
use clap::{Args, ValueEnum};

/// Files and terminals that acpipe serves to agents itself.
#[derive(Debug, Args)]
pub struct ServingArgs {
    /// Comma-separated services to offer to agents if the client does not offer them
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub serve: Vec<Served>,
}

/// Capability that acpipe can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Served {
    /// Read and write text files in the session's directories
    Fs,
    /// Run commands
    Terminal,
}

impl ServingArgs {
    /// Converts the options to the core's type.
    pub fn offer(&self) -> HostServices {
        let files = self.serve.contains(&Served::Fs);
        HostServices {
            read_files: files,
            write_files: files,
            terminals: self.serve.contains(&Served::Terminal),
        }
    }
}
