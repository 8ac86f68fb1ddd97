//! The `acpipe` program. Its options are listed by `acpipe --help`.

fn main() -> std::process::ExitCode {
    acpipe::cli::main()
}
