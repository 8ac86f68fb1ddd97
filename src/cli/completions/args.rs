//! Command-line definition of `acpipe completions`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "Add the line for your shell to its configuration:\n  \
        bash: source <(acpipe completions bash)                      in ~/.bashrc\n  \
        zsh:  source <(acpipe completions zsh)                       in ~/.zshrc, after compinit\n  \
        fish: acpipe completions fish | source                       in ~/.config/fish/config.fish\n  \
        PowerShell: acpipe completions powershell | Out-String | Invoke-Expression     in $PROFILE\n  \
        elvish: eval (acpipe completions elvish | slurp)             in ~/.elvish/rc.elv\n  \
        nushell: acpipe completions nushell | save -f FILE, then `use FILE *` in config.nu")]
pub struct CompletionsArgs {
    /// Shell that runs the script
    #[arg(value_enum)]
    pub shell: CompletionShell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
    Nushell,
}
