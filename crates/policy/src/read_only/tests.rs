//! Tests of lines that only read, by their words alone.

use super::*;

#[test]
fn lines_that_only_read_are_covered() {
    for line in [
        "ls",
        "ls -la src/*.rs",
        "cat -n 'a b' c",
        "head -20 x",
        "tail -n +5 x | head -c 10",
        "tail -5 x; grep -2n 'x' y",
        "tree -aL 2 -I 'target|.git' -P '*.rs' src; tree -L2",
        "wc -l x",
        "sed -n '10,20p' src/main.rs",
        "grep -rn --include=*.rs 'fo*' .",
        "grep 'end$' x",
        "rg -n -g '*.rs' 'a.*b' src",
        "rg --files --hidden | sort -u | uniq -c",
        "find . -name '*.rs' -not -path './target/*' -mtime -7 -size -10k",
        r"find . \( -name a -o -name b \) -print0",
        "git status --porcelain=v2 -uno",
        "git --no-pager log --oneline -5 --format='%h %s' main..HEAD -- src",
        "git log -p -S'x' --author=me --since='2 days ago'",
        "git diff --stat HEAD~1 -- src/*.rs",
        "git diff --cached -U3 -w",
        "git show HEAD:src/main.rs",
        "git log -p --diff-merges=first-parent --submodule=log --pretty=fuller",
        "git show --submodule --pretty --format=tformat: HEAD",
        "git blame -L 1,20 x",
        "git grep -n 'x' -- '*.rs'",
        "git branch -a",
        "git branch --format='%(refname:short) %(committerdate)' --sort=-committerdate",
        "git log --format='%Cgreen%h%Creset %gd 5%'",
        "git grep -n 'signature' src",
        "git branch --show-current",
        "git remote -v",
        "git stash list",
        "git rev-parse --abbrev-ref HEAD",
        "git config --get user.name",
        "echo --output=x 2>/dev/null; pwd",
        "date +%F",
        "diff -u a b",
        "jq -r '.a[] | .b' x.json",
    ] {
        assert!(covers(line), "{line}");
    }
}

/// Ways to write a file or run a program with options of programs that read. `MARK` is the file, `TOUCH` a
/// program that creates it.
const WRITES: &str = include_str!("writes.txt");

#[test]
fn lines_that_write_or_run_are_not_covered() {
    // Not in the corpus, whose lines are actually run: these would change the machine or git's index, or
    // never end.
    let others = [
        "date -s 2000-01-01",
        "date --set=x",
        "date 010100002000",
        "git describe --dirty",
        "tail -5f x",
    ];
    for line in WRITES.lines().chain(others) {
        assert!(!covers(line), "{line}");
    }
}

#[test]
fn pattern_in_an_option_of_git_is_not_covered() {
    // The working directory may have the files `--format=%h%G?`, `--sort=signature` and `signature`.
    for (option, pattern) in [
        ("git log --format=%h*", "git log '--format=%h*'"),
        ("git log --format=%h????", "git log --format=\"%h????\""),
        (
            "git --no-pager log '--format'=%h*",
            "git log --format=%h -- a*",
        ),
        ("git branch --sort=*", "git branch '--sort=*'"),
        (
            "git for-each-ref --sort sig*",
            "git for-each-ref --sort 'sig*'",
        ),
        (
            "git branch --sort=sig[n]ature",
            "git branch '--sort=sig[n]'",
        ),
        ("ls; git tag \\--sort=*", "git tag; grep --include=*.rs x a"),
        (
            "git for-each-ref --format='%(refname)'*",
            "git for-each-ref --format='%(refname)*'",
        ),
    ] {
        assert!(!covers(option), "{option}");
        assert!(covers(pattern), "{pattern}");
    }
}

#[test]
fn words_expanded_by_shells_are_found() {
    for (text, want) in [
        ("a b*", false),
        ("a '*' \"*\" \\*", false),
        ("a 'x$y'", false),
        ("a \"x$\"", false),
        ("a 'it'\\''s $x'", false),
        ("a *", true),
        ("a;*", true),
        ("a ''?", true),
        ("a \"\"[x]", true),
        ("a $x", true),
        ("a \"$x\"", true),
        ("a x${y}", true),
        ("a `b`", true),
        ("a {b,c}", true),
        ("a x{b,c}", false),
        ("a --b=*", false),
        ("a --b*", true),
        ("a ^b", true),
        ("a =b", true),
    ] {
        assert_eq!(expands(text), want, "{text}");
    }
}
