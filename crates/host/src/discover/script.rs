//! Interpreter of a script, from its first line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Number of bytes of the first line that systems read.
const HEAD: u64 = 256;

/// Interpreter that the first line of a script names.
#[derive(Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Path of its file.
    pub file: String,
    /// Name of the program that `env` searches in `PATH`.
    pub by_name: Option<String>,
}

/// Returns the interpreter of a file; `None` if the file is not a script with a `#!` line.
pub fn interpreter(file: &Path) -> Option<Interpreter> {
    let mut head = Vec::new();
    // An executable that cannot be read is left to the system to report.
    File::open(file)
        .ok()?
        .take(HEAD)
        .read_to_end(&mut head)
        .ok()?;
    parse(&head)
}

fn parse(head: &[u8]) -> Option<Interpreter> {
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let file = words.next()?.to_owned();
    let by_name = (file.rsplit('/').next() == Some("env")).then(|| named(words));
    Some(Interpreter {
        file,
        by_name: by_name.flatten(),
    })
}

/// Returns the program that `env` searches; `None` if options of `env` make that unknown.
fn named<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut words =
        words.skip_while(|word| matches!(*word, "-S" | "--split-string") || word.contains('='));
    let name = words.next()?;
    let is_name = !name.starts_with('-') && !name.contains('/');
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_name_their_interpreter() {
        let cases: [(&[u8], _); 16] = [
            (b"#!/bin/sh\necho", Some(("/bin/sh", None))),
            (b"#! /bin/sh -e\n", Some(("/bin/sh", None))),
            (b"#!/bin/sh", Some(("/bin/sh", None))),
            (b"#!/bin/sh\r\n", Some(("/bin/sh\r", None))),
            (
                b"#!/usr/bin/env node\n",
                Some(("/usr/bin/env", Some("node"))),
            ),
            (
                b"#!/usr/bin/env\tnode",
                Some(("/usr/bin/env", Some("node"))),
            ),
            (
                b"#!/usr/bin/env -S node --x\n",
                Some(("/usr/bin/env", Some("node"))),
            ),
            (
                b"#!/usr/bin/env -S A=1 node\n",
                Some(("/usr/bin/env", Some("node"))),
            ),
            (b"#!/usr/bin/env -i node\n", Some(("/usr/bin/env", None))),
            (b"#!/usr/bin/env /opt/node\n", Some(("/usr/bin/env", None))),
            (b"#!/usr/bin/env\n", Some(("/usr/bin/env", None))),
            (b"#!/opt/my-env x\n", Some(("/opt/my-env", None))),
            (b"#!\n", None),
            (b"\x7fELF\n", None),
            (b"echo\n", None),
            (b"", None),
        ];
        for (head, want) in cases {
            let found = parse(head);
            let found = found.as_ref().map(|i| (&*i.file, i.by_name.as_deref()));
            assert_eq!(found, want, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
