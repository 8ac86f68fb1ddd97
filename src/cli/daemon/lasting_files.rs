//! Files of the options of a daemon, which must mean the same in its process and after a restart.

use super::start_options::StartVariables;
use crate::cli::UsageError;
use crate::cli::args::daemon::ResidentArgs;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of links that lead to a file, as on Linux.
const MOST_LINKS: usize = 40;

/// Directories whose entries mean other files in each process.
const OF_PROCESS: [&str; 2] = ["/proc", "/dev/fd"];

/// Checks that no file of the options or of `ACPIPE_CONFIG` is a pipe or a descriptor of this process.
///
/// # Errors
/// One of them is.
pub fn check_files(args: &ResidentArgs, variables: &StartVariables) -> Result<(), UsageError> {
    let agent = &args.agent;
    // A schema in place of its file is no path of a pipe.
    let schema = agent.options.output_schema.as_deref().map(Path::new);
    let variable = variables.config.as_deref().map(Path::new);
    let files = [
        ("--config", agent.permissions.config.as_deref()),
        ("ACPIPE_CONFIG", variable),
        ("--mcp-config", agent.mcp_config.as_deref()),
        ("--output-schema", schema),
        #[cfg(feature = "listen")]
        ("--tls-cert", args.listen.tls_cert.as_deref()),
        #[cfg(feature = "listen")]
        ("--tls-key", args.listen.tls_key.as_deref()),
    ];
    for (name, file) in files {
        if let Some(file) = file
            && (is_of_process(file) || is_pipe(file))
        {
            let file = file.display();
            return Err(UsageError(format!(
                "{name}: the daemon cannot use {file}: it is a pipe or a descriptor, which only this command can read, \
                 and only once; pass a file"
            )));
        }
    }
    Ok(())
}

fn is_pipe(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.file_type().is_fifo())
}

/// Returns `true` if the path, or a link on the way, is below one of [`OF_PROCESS`], as `/dev/stdin` is.
fn is_of_process(file: &Path) -> bool {
    let Ok(mut path) = std::path::absolute(file) else {
        return false;
    };
    for _ in 0..MOST_LINKS {
        let real = path.parent().and_then(|dir| fs::canonicalize(dir).ok());
        let of_process = |path: &PathBuf| OF_PROCESS.iter().any(|dir| path.starts_with(dir));
        if of_process(&path) || real.as_ref().is_some_and(of_process) {
            return true;
        }
        let Ok(target) = fs::read_link(&path) else {
            return false;
        };
        path = real.unwrap_or_default().join(target);
    }
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_found_behind_links() {
        let dir = std::env::temp_dir().join(format!("acpipe-lasting-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (file, link, plain) = (dir.join("f"), dir.join("stdin"), dir.join("plain"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("/dev/stdin", &link).unwrap();
        std::os::unix::fs::symlink("f", &plain).unwrap();
        for (path, want) in [
            ("/dev/stdin", true),
            ("/dev/fd/9", true),
            ("/proc/self/fd/0", true),
            ("/proc/self/cwd/c.toml", true),
            ("/dev/null", false),
            ("/dev/shm/c.toml", false),
            ("no-such-file", false),
            (r#"{"type": "object"}"#, false),
            (link.to_str().unwrap(), true),
            (plain.to_str().unwrap(), false),
            (file.to_str().unwrap(), false),
        ] {
            assert_eq!(is_of_process(Path::new(path)), want, "{path}");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
