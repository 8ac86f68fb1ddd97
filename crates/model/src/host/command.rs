//! Commands of terminals: check, the line that a policy judges, and the program to start.

use super::{HostScope, TerminalSpec};
use crate::error::{Error, ErrorKind, clip};
use crate::shell_words::{is_variable, join, push_quoted};

pub fn check(
    command: &str,
    args: &[String],
    env: &[(String, String)],
    cwd: Option<&str>,
) -> Result<(), Error> {
    let wrong = |field: &str, why: &str| {
        let message = format!("{field}: {why}");
        Err(Error::new(ErrorKind::InvalidParams, message).with("field", field))
    };
    if command.trim().is_empty() {
        return wrong("command", "must be a program or a shell command line");
    }
    let has_nul = |text: &String| text.contains('\0');
    if command.contains('\0') {
        return wrong("command", "must not contain NUL");
    }
    if args.iter().any(has_nul) {
        return wrong("args", "must not contain NUL");
    }
    if cwd.is_some_and(|cwd| cwd.contains('\0')) {
        return wrong("cwd", "must not contain NUL");
    }
    for (name, value) in env {
        if !is_variable(name) {
            let name = clip(name);
            let why = format!(
                "{name:?} is not a valid variable name; use letters, digits and _, but no digit first"
            );
            return wrong("env", &why);
        }
        if has_nul(value) {
            let why = format!("the value of {name} must not contain NUL");
            return wrong("env", &why);
        }
    }
    Ok(())
}

pub fn spec(
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: Option<String>,
    place: &HostScope,
) -> Result<TerminalSpec, Error> {
    check(&command, &args, &env, cwd.as_deref())?;
    let mut all = place.env.clone();
    for (name, value) in env {
        all.0.insert(name, Some(value));
    }
    let own = place.roots.first().cloned().unwrap_or_default();
    let (command, args) = argv(command, args);
    Ok(TerminalSpec {
        command,
        args,
        cwd: cwd.unwrap_or(own),
        session: String::new(),
        roots: place.roots.clone(),
        env: all,
    })
}

/// Returns `true` if a command without arguments is a shell command line rather than a program.
fn is_line(command: &str, args: &[String]) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%,:".contains(c);
    args.is_empty() && !command.chars().all(is_plain)
}

/// Returns the program and arguments to start. In ACP a command is a program with arguments, started without
/// a shell. Agents that delegate commands to their client, however, send the line that the model wrote as the
/// program, without arguments (kimi-cli does): that line is started with a shell.
pub(super) fn argv(command: String, args: Vec<String>) -> (String, Vec<String>) {
    if is_line(&command, &args) {
        return ("/bin/sh".to_owned(), vec!["-c".to_owned(), command]);
    }
    (command, args)
}

/// Returns the line that a policy judges and users see: a shell that reads it starts the same program with
/// the same arguments and variables.
pub fn judged_line(command: &str, args: &[String], env: &[(String, String)]) -> String {
    // Variables apply to the whole line, not only to its first command.
    let is_line = is_line(command, args);
    if is_line && env.is_empty() {
        return command.to_owned();
    }
    let mut line = String::new();
    for (name, value) in env {
        line.push_str(name);
        line.push('=');
        push_quoted(&mut line, value);
        line.push(' ');
    }
    let words = if is_line {
        join(["/bin/sh", "-c", command])
    } else {
        join(std::iter::once(command).chain(args.iter().map(String::as_str)))
    };
    line + &words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random text of these characters, from a linear congruential generator.
    fn text(seed: &mut u64) -> String {
        let letters: Vec<char> = "ab=  \t\n'\"\\\\$`;|&<>(){}[]*?~#!^%@,:./-_é日0\r\u{1}\u{7f}"
            .chars()
            .collect();
        let mut below = |n: usize| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(*seed >> 33).unwrap() % n
        };
        (0..below(7))
            .map(|_| letters[below(letters.len())])
            .collect()
    }

    #[test]
    fn a_judged_line_parses_back_to_the_program_arguments_and_variables() {
        let mut seed = 7;
        for round in 0..50_000 {
            let mut command = text(&mut seed);
            if command.trim().is_empty() {
                command.push('x');
            }
            let args: Vec<String> = (0..round % 4).map(|_| text(&mut seed)).collect();
            let names = ["A", "_b1", "PATH"].into_iter().take(round % 3);
            let env: Vec<_> = names
                .map(|name| (name.to_owned(), text(&mut seed)))
                .collect();
            check(&command, &args, &env, None).unwrap();
            let line = judged_line(&command, &args, &env);
            let spec = spec(command, args, env.clone(), None, &HostScope::default()).unwrap();
            let shell = spec.command == "/bin/sh" && env.is_empty();
            if shell && spec.args.first().is_some_and(|arg| arg == "-c") {
                assert_eq!(line, spec.args[1]);
                continue;
            }
            let read = shlex::split(&line).unwrap();
            let set = env.iter().map(|(name, value)| format!("{name}={value}"));
            let run: Vec<String> = set.chain([spec.command]).chain(spec.args).collect();
            assert_eq!(read, run, "{line}");
            for (name, value) in env {
                assert_eq!(spec.env.0[&name], Some(value));
            }
        }
    }

    #[test]
    fn invalid_command_request_error_names_the_field() {
        let strings = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for (command, args, env, cwd, field) in [
            ("", strings(&[]), vec![], None, "command"),
            (" \n", strings(&[]), vec![], None, "command"),
            ("a\0", strings(&[]), vec![], None, "command"),
            ("a", strings(&["b\0"]), vec![], None, "args"),
            ("a", strings(&[]), vec![], Some("/w\0"), "cwd"),
            ("a", strings(&[]), pair("git log --grep", "x"), None, "env"),
            ("a", strings(&[]), pair("A=B", "x"), None, "env"),
            ("a", strings(&[]), pair("", "x"), None, "env"),
            ("a", strings(&[]), pair("1A", "x"), None, "env"),
            ("a", strings(&[]), pair("A;b", "x"), None, "env"),
            ("a", strings(&[]), pair("A\0", "x"), None, "env"),
            ("a", strings(&[]), pair("A", "x\0"), None, "env"),
        ] {
            let error = check(command, &args, &env, cwd).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            assert!(error.message.starts_with(&format!("{field}: ")), "{error}");
        }
    }
}
