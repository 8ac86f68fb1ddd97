//! Files named in a patch: Codex's format, unified diffs, git's diffs.

/// Beginnings of the lines in Codex's patch format that name a file.
const HEADS: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Beginnings of the lines of a diff that name a file. None of them can begin a line of a hunk.
const DIFF_HEADS: [&str; 5] = [
    "Index: ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
];

/// Returns the files that a patch in Codex's format names, wherever the patch is in the text.
pub fn codex_files(text: &str) -> Vec<&str> {
    if !text.contains("*** Begin Patch") {
        return Vec::new();
    }
    let named = |line: &'_ str| {
        let line = line.trim_start();
        HEADS
            .iter()
            .find_map(|head| line.strip_prefix(head).map(str::len))
    };
    let lines = text.lines().map(str::trim_end);
    let files = lines.filter_map(|line| {
        let length = named(line)?;
        Some(&line[line.len() - length..])
    });
    files.collect()
}

/// Returns the possible splits between the names in a git header. Names may have spaces: `a/x y b/x y`. git
/// splits in the middle, where both are equal, or uses the names of other lines.
fn splits(pair: &str) -> Vec<usize> {
    let middle = pair.len() / 2;
    let middle = Some(middle).filter(|at| pair.as_bytes().get(*at) == Some(&b' '));
    let marks = [" b/", " \"b/"];
    let ends = marks.map(|mark| [pair.find(mark), pair.rfind(mark)]);
    let mut splits: Vec<usize> = ends
        .into_iter()
        .flatten()
        .chain([middle])
        .flatten()
        .collect();
    splits.sort_unstable();
    splits.dedup();
    splits
}

/// Returns the files that a unified or context diff names, with and without git's `a/` and `b/`.
pub fn diff_files(text: &str) -> Vec<&str> {
    let mut files = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let said = DIFF_HEADS.iter().find_map(|head| line.strip_prefix(head));
        files.extend(said);
        if let Some(pair) = line.strip_prefix("diff --git ") {
            files.extend(
                splits(pair)
                    .into_iter()
                    .flat_map(|at| [&pair[..at], &pair[at + 1..]]),
            );
        }
        // A line of a hunk may look like one of the two; only a pair of them is a header.
        for (old, new) in [("--- ", "+++ "), ("*** ", "--- ")] {
            if let (Some(old), Some(new)) = (before.strip_prefix(old), line.strip_prefix(new)) {
                files.extend([old, new]);
            }
        }
        before = line;
    }
    let files = files.into_iter().map(|file| {
        // A time may follow a tab.
        let file = file.split('\t').next().unwrap_or_default();
        file.trim_end().trim_matches('"')
    });
    let files = files.filter(|file| !file.is_empty() && *file != "/dev/null");
    let plain = |file| {
        let plain = ["a/", "b/"]
            .iter()
            .find_map(|head| str::strip_prefix(file, head));
        [Some(file), plain]
    };
    files.flat_map(plain).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_name_their_files() {
        for (text, files) in [
            ("", &[][..]),
            ("--- a\n", &[]),
            ("-- x\n--- b\n-+++ c", &[]),
            ("--- a\t2020-01-01\n+++ b\n@@ -1 +1 @@\n-x\n+y", &["a", "b"]),
            ("--- /dev/null\r\n+++ b/x y\r\n", &["b/x y", "x y"]),
            (
                "Index: /w/a\n=====\n--- /w/a\n+++ /w/a\n",
                &["/w/a", "/w/a", "/w/a"],
            ),
            (
                "diff --git a/x b/y\nrename from x\nrename to y\n",
                &["a/x", "x", "b/y", "y", "x", "y"],
            ),
            ("*** a\n--- b\n", &["a", "b"]),
            ("diff --git \"a/x\" \"b/y\"", &["a/x", "x", "b/y", "y"]),
            ("diff --git i/x w/x", &["i/x", "w/x"]),
            (
                "diff --git a/b b/c b/b b/c",
                &[
                    "a/b",
                    "b",
                    "b/c b/b b/c",
                    "c b/b b/c",
                    "a/b b/c",
                    "b b/c",
                    "b/b b/c",
                    "b b/c",
                    "a/b b/c b/b",
                    "b b/c b/b",
                    "b/c",
                    "c",
                ],
            ),
            ("@@ -1 +1 @@\n--- a\n+++ .env\n@@ -1 +1 @@", &["a", ".env"]),
        ] {
            assert_eq!(diff_files(text), files, "{text:?}");
        }
    }

    #[test]
    fn reading_a_diff_is_bounded_by_its_length() {
        for piece in [" b/", " \"b/", " b/\ndiff --git ", "\n--- a\n+++ "] {
            let text = format!("diff --git a{}", piece.repeat(10_000));
            let files = diff_files(&text);
            let lines = text.lines().count();
            let bytes = files.iter().map(|file| file.len()).sum::<usize>();
            assert!(files.len() <= 20 * lines, "{piece:?}: {}", files.len());
            assert!(bytes <= 20 * text.len(), "{piece:?}: {bytes}");
        }
    }

    #[test]
    fn patches_of_codex_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: a b\n*** Move to: c\n+x\n*** End Patch";
        assert_eq!(codex_files(patch), ["a b", "c"]);
        assert_eq!(codex_files("*** Update File: a"), [""; 0]);
    }
}
