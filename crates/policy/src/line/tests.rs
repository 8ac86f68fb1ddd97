//! Tests of lines and of their readings.

use super::*;

fn plain(text: &str) -> Option<Vec<String>> {
    let ShellLines {
        plain, commands, ..
    } = ShellLines::of(text);
    plain.then(|| commands.iter().map(|words| words.join("|")).collect())
}

fn read(text: &str) -> Vec<String> {
    let commands = pattern(text).commands;
    commands.iter().map(|words| words.join("|")).collect()
}

#[test]
fn lines_of_the_common_grammar_are_commands() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        (" \t\n", &[]),
        ("git status", &["git|status"]),
        (
            "a;b&&c||d|e& f\ng|\nh &\n",
            &["a", "b", "c", "d", "e", "f", "g", "h"],
        ),
        (r#"echo "a;b" 'c&&d' e\;f"#, &["echo|a;b|c&&d|e;f"]),
        (r#"rm "-r"f "" x"#, &["rm|-rf||x"]),
        ("git \\\n status", &["git|status"]),
        (r#"echo "a\"b\$c\d" "e$""#, &[r#"echo|a"b$c\d|e$"#]),
        ("cargo test 2>&1", &["cargo|test"]),
        ("cargo test >/dev/null 2>&1; ls", &["cargo|test", "ls"]),
        (
            "cargo test 2> /dev/null | tail -n1",
            &["cargo|test", "tail|-n1"],
        ),
        ("git log --format='%h' a#b", &["git|log|--format=%h|a#b"]),
        (
            "git diff HEAD^ HEAD~2 -- src/*.rs",
            &["git|diff|HEAD^|HEAD~2|--|src/*.rs"],
        ),
        (
            "git commit -m 'é: it'\\''s $x'",
            &["git|commit|-m|é: it's $x"],
        ),
        ("ls ~ ~/x a=b", &["ls|~|~/x|a=b"]),
        ("grep --include=*.rs x", &["grep|--include=*.rs|x"]),
    ];
    for (text, want) in cases {
        assert_eq!(plain(text).expect(text), *want, "{text:?}");
    }
}

#[test]
fn every_other_line_is_unreadable() {
    for text in [
        "git $(rm x)",
        "git \"$(rm x)\"",
        "git `rm x`",
        "git $x",
        "git \"$x\"",
        "git ${x}",
        "git $'a'",
        "git $\"a\"",
        "git 'a",
        "git \"a",
        "git a\\",
        "git a\\\nb",
        "git a'b''c'",
        "(git)",
        "{ git; }",
        "git a}\nrm x",
        "git {a,b}",
        "git {}",
        "git >x",
        "git <x",
        "git >>x",
        "git >/dev/nullx",
        "git &>/dev/null rm",
        "git >&1-",
        "git 2>&1-",
        "git >&-",
        "git |& rm",
        "git &| rm",
        "git &! rm",
        "git ;; rm",
        "; git",
        "git && ",
        "git | ",
        "git & ; git",
        "git <<E\nrm\nE",
        "git <<<a",
        "git >/dev/null | rm",
        "git >/dev/null >/dev/null",
        "git {fd}>x",
        "git 3>x",
        "git # a",
        "git\r",
        "git\r\nrm x",
        "git a\u{8}",
        "git 'a\u{1}'",
        "git a\0",
        "git é",
        "git a\u{a0}b",
        "A=1 git",
        "git+=1",
        "! git",
        "time git",
        "if git",
        "exec git",
        "noglob git",
        "- git",
        "'git' log",
        "g\\it",
        "git .*",
        "git a/.?",
        "git =rm",
        "git ''=rm",
        "git ~x",
        "git a=~",
        "git !x",
        "git \"!x\"",
        "git [a]",
        "git *",
        "git -x*",
        "git a**",
        "git ^a",
        "*",
        "git a(b)",
        "printf x",
        "test x",
        "[ x ]",
        "exit 1",
        "read x",
        ". x",
        "eval x",
        "alias git=rm",
        "git \\x",
        "git \\\r",
    ] {
        assert_eq!(plain(text), None, "{text:?}");
    }
}

#[test]
fn shell_keywords_are_sorted() {
    for name in [
        "if", "eval", ".", "printf", "zstyle", "typeset", "test", "time",
    ] {
        assert!(common::is_language(name), "{name}");
    }
    for name in ["git", "cd", "echo", "pwd", "true", "make"] {
        assert!(!common::is_language(name), "{name}");
    }
    assert!(nested::COMMAND_RUNNERS.is_sorted() && common::LANGUAGE.is_sorted());
}

#[test]
fn hidden_commands_in_a_line_are_found() {
    let cases: &[(&str, &[&str])] = &[
        ("git $(rm x) log", &["rm|x", "git||log"]),
        (r#"git "a $(rm "b c") d" log"#, &["rm|b c", "git|a  d|log"]),
        ("echo `rm x`y z", &["rm|x", "echo|y|z"]),
        ("echo \"`rm x`\"", &["rm|x", "echo|"]),
        (
            r"echo `ls \`rm \\\`cat y\\\`\``",
            &["cat|y", "rm|", "ls|", "echo|"],
        ),
        ("diff <(rm a) >(rm b)", &["rm|a", "rm|b", "diff||"]),
        ("(cd x; rm y) && ls", &["cd|x", "rm|y", "ls"]),
        ("case x in a) rm y;; esac", &["case|x|in|a", "rm|y", "esac"]),
        (
            "\"$(case x in a) rm y;; esac)\" z",
            &["case|x|in|a", "rm|y", "esac", "|z"],
        ),
        ("echo a > .env", &["echo|a", "echo|a|>|.env"]),
        ("git >x push", &["git|push", "git|>|x|push"]),
        ("{fd}>o rm x", &["rm|x", ">|o|rm|x"]),
        ("echo ${x:-$(rm y)}", &["rm|y", "x:-", "echo|$"]),
        ("cat <<EOF\nrm x\nEOF", &["cat", "cat|<<|EOF", "rm|x"]),
        (
            "cat <<E\nit's $(rm x)\nE",
            &["cat", "cat|<<|E", "its $(rm x)\n", "rm|x", "it's \n"],
        ),
        ("git log # 'a\nrm x # b'", &["git|log", "rm|x"]),
        ("git; ${x:-rm} y", &["git", "rm", "$|y"]),
        ("git\rlog", &["git|log"]),
        ("git\u{3000}log", &["git|log"]),
        ("2>&1-ls rm x", &["ls", "rm|x"]),
        (r"$'\x72\155' x", &["rm|x"]),
        ("$\"rm\" x", &["rm|x"]),
        ("git\0status", &["git\0status"]),
    ];
    for (text, want) in cases {
        assert_eq!(read(text), *want, "{text:?}");
        assert_eq!(plain(text), None, "{text:?}");
    }
}

#[test]
fn command_after_a_here_document_is_found() {
    for text in [
        "cat <<E\nx\\\nE\n'\nE\nrm x\n# '",
        "cat <<E\n\tE\n'\nE\nrm x\n# '",
        "cat << -E\nE\n'\n-E\nrm x\n# '",
        "cat <<-\tE\n'\n\tE\nrm x\n# '",
        "cat <<E\r\n'\r\nE\r\nrm x\r\n# '",
        "cat <<`a`\n'\n`a`\nrm x\n# '",
        "cat <<$(a)\n'\n$(a)\nrm x\n# '",
        "cat <<$((1))\n'\n$((1))\nrm x\n# '",
        "((a<<2))\ncat <<E\nit's\nE\nrm x\n# '",
        "cat <\\\n<E\nit's\nE\nrm x\n# '",
        "cat <\\\n\\\n<E\nit's\nE\nr\\m x\n# '",
        "echo \"$(cat <<E\n\tE\n'\nE\n)\" ; rm x # \"'",
        "cat <<E\n\tE\nit's \"$(rm x)\" '\nE",
        "bash -c \"cat <<E\n\tE\n'\nE\nrm x\n# '\"",
        "cat <<E\n\tE\n'\nE\nrm \\\n  x\n# '",
        "cat <<E\n\tE\n'\nE\n${a}$@rm x\n# '",
    ] {
        let line = ShellLines::of(text);
        assert!(!line.unread, "{text:?}");
        let is_rm = |c: &Candidate| {
            let mut commands = c.starts.iter().map(|start| &c.text[*start..]);
            commands.any(|command| command.trim_end() == "rm x")
        };
        assert!(line.candidates.iter().any(is_rm), "{text:?}: {line:#?}");
    }
}

#[test]
fn long_here_document_is_read() {
    let script = "# it's a (note\nif x == 'a':\n    print(f\"${y:-1} $(z)\")\n\n";
    let text = format!("cat > f <<'E'\n{}E\nrm x", script.repeat(300));
    let line = ShellLines::of(&text);
    assert!(!line.unread);
    assert!(line.candidates.iter().any(|c| c.text == "rm x"));
}

#[test]
fn files_of_redirections_are_named() {
    for (text, files) in [
        (
            "a > x; b 2>>'y z' <w; cat <<E; d 2>&1 >/dev/null &> v >| u",
            &["x", "y z", "w", "v", "u"][..],
        ),
        ("a >&1- b", &["1-"]),
        ("a >! b", &["!", "b"]),
        ("a >!b", &["b", "!b"]),
        ("a >;b", &["b"]),
        ("a >; 'b' c", &["b"]),
        ("a > $(pwd)/b", &["$/b"]),
        ("a > `pwd`/b", &["$/b"]),
        ("a > \"$(pwd)\"/b", &["$/b"]),
        ("bash -c 'a > x'", &["x"]),
    ] {
        assert_eq!(ShellLines::of(text).files, files, "{text}");
    }
}

#[test]
fn lines_of_a_call_are_read_each_for_itself() {
    let line = ShellLines::of_all(["ls \\", "touch x"]);
    assert!(!line.plain);
    let line = ShellLines::of_all(["ls 'x", "touch y'"]);
    assert!(!line.plain);
    assert!(line.candidates.iter().any(|c| c.text == "touch y"));
    let line = ShellLines::of_all(["ls", "cat x"]);
    assert!(line.plain);
    assert_eq!(line.commands, [vec!["ls"], vec!["cat", "x"]]);
}

#[test]
fn a_line_that_is_too_long_or_takes_too_much_work_is_unread() {
    let long = "a;".repeat(LONGEST / 2);
    let line = ShellLines::of(&long);
    assert!(!line.unread && line.plain);
    let line = ShellLines::of(&(long + "a"));
    assert_eq!(
        (line.unread, line.plain, line.candidates.len()),
        (true, false, 0)
    );
    let half = "a".repeat(LONGEST / 2 + 1);
    assert!(ShellLines::of_all([half.as_str(), half.as_str()]).unread);
    // Each of these has many readings, including the words in it.
    let words = "env 'a;b' ".repeat(6_000);
    let hard = format!("case x in a) $'x' &>y <<z # ${{a}} {words}");
    assert!(ShellLines::of(&hard).unread);
}

/// Returns the bytes of everything that was produced for a line.
fn size(line: &ShellLines) -> usize {
    let candidates = line.candidates.iter();
    let candidates = candidates.map(|c| c.text.len() + 8 * c.starts.len() + 48);
    candidates
        .chain(line.files.iter().map(|file| file.len() + 24))
        .sum()
}

#[test]
fn reading_a_line_is_bounded_in_output_and_work() {
    for piece in [
        "a;",
        "env a ",
        "env 'a b' ",
        "$(",
        "`",
        "\\`",
        "(",
        "{a,b} ",
        "<<a ",
        "<<a\n",
        ">a ",
        "${",
        "'",
        "\"",
        "#",
        "&>a ",
        "case a) ",
        "bash -c 'bash -c \"a\"' ",
        "a[",
        "A[x]=1 ",
        "env -Sa=b;c ",
        "$'\\x61' ",
        "\"$(",
        "env \\\\",
        "a\n",
    ] {
        let text = piece.repeat(LONGEST / piece.len());
        let line = ShellLines::of(&text);
        assert!(size(&line) <= 2 * WORK, "{piece:?}: {}", size(&line));
        let short = ShellLines::of(&piece.repeat(8));
        assert!(!short.unread || !short.plain, "{piece:?}");
    }
}
