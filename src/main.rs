//! The program: see `acpipe --help`.

fn main() -> std::process::ExitCode {
    acpipe::cli::main()
}
