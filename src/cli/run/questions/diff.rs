//! Line diff of a file change, with a few lines of context.

/// Number of context lines around a change.
const AROUND: usize = 3;

/// Maximum number of line pairs that are compared. Beyond it the diff removes all old lines and adds all new
/// ones.
const PAIRS: usize = 1 << 20;

/// Line of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLine<'a> {
    Same(&'a str),
    Out(&'a str),
    In(&'a str),
    /// Number of unchanged lines that are left out.
    Gap(usize),
}

/// Computes the diff of two texts.
pub fn diff<'a>(old: &'a str, new: &'a str) -> Vec<DiffLine<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let before = old.iter().zip(&new).take_while(same).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev());
    let after = after.take_while(same).count();
    let mut lines: Vec<DiffLine<'a>> = old[..before]
        .iter()
        .map(|line| DiffLine::Same(line))
        .collect();
    compare(
        &old_rest[..old_rest.len() - after],
        &new_rest[..new_rest.len() - after],
        &mut lines,
    );
    lines.extend(
        old[old.len() - after..]
            .iter()
            .map(|line| DiffLine::Same(line)),
    );
    around(&lines)
}

/// Appends the diff by the longest common subsequence of lines.
fn compare<'a>(old: &[&'a str], new: &[&'a str], lines: &mut Vec<DiffLine<'a>>) {
    let width = new.len() + 1;
    if old.len().saturating_mul(new.len()) > PAIRS {
        lines.extend(old.iter().map(|line| DiffLine::Out(line)));
        lines.extend(new.iter().map(|line| DiffLine::In(line)));
        return;
    }
    // Length of the longest common subsequence of the remaining lines.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let at = i * width + j;
            common[at] = if a == b {
                common[at + width + 1] + 1
            } else {
                common[at + width].max(common[at + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let at = i * width + j;
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(DiffLine::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[at + width] >= common[at + 1]) {
            lines.push(DiffLine::Out(old[i]));
            i += 1;
        } else {
            lines.push(DiffLine::In(new[j]));
            j += 1;
        }
    }
}

/// Replaces lines far from any change with a gap.
fn around<'a>(lines: &[DiffLine<'a>]) -> Vec<DiffLine<'a>> {
    let is_same = |line: &DiffLine<'_>| matches!(line, DiffLine::Same(_));
    let mut shown = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        let same = rest.iter().take_while(|line| is_same(line)).count();
        let first = if rest.len() == lines.len() { 0 } else { AROUND };
        let last = if same == rest.len() { 0 } else { AROUND };
        if same > first + last {
            shown.extend(&rest[..first]);
            shown.push(DiffLine::Gap(same - first - last));
            shown.extend(&rest[same - last..same]);
        } else {
            shown.extend(&rest[..same]);
        }
        rest = &rest[same..];
        let changed = rest.iter().take_while(|line| !is_same(line)).count();
        shown.extend(&rest[..changed]);
        rest = &rest[changed..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &str, new: &str) -> String {
        let tell = |line: DiffLine<'_>| match line {
            DiffLine::Same(text) => format!(" {text}"),
            DiffLine::Out(text) => format!("-{text}"),
            DiffLine::In(text) => format!("+{text}"),
            DiffLine::Gap(n) => format!("@{n}"),
        };
        let lines: Vec<String> = diff(old, new).into_iter().map(tell).collect();
        lines.join(",")
    }

    #[test]
    fn diff_lists_changed_lines() {
        let cases = [
            ("", "a\nb", "+a,+b"),
            ("a\nb", "", "-a,-b"),
            ("a", "b", "-a,+b"),
            ("a\nb\nc", "a\nx\nc", " a,-b,+x, c"),
            ("a\nb\nc\nd", "b\nc\ne\nd", "-a, b, c,+e, d"),
            ("a\na", "a", " a,-a"),
            ("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n7", "@2, 3, 4, 5,-6,+7"),
            ("6\n1\n2\n3\n4", "7\n1\n2\n3\n4", "-6,+7, 1, 2, 3,@1"),
            (
                "a\n1\n2\n3\n4\n5\n6\n7\nb",
                "x\n1\n2\n3\n4\n5\n6\n7\ny",
                "-a,+x, 1, 2, 3,@1, 5, 6, 7,-b,+y",
            ),
            ("a\nb", "a\nb", "@2"),
        ];
        for (old, new, want) in cases {
            assert_eq!(told(old, new), want, "{old:?} {new:?}");
        }
    }

    #[test]
    fn oversized_diff_replaces_all_lines() {
        let (old, new) = ("old\n".repeat(1100), "new\n".repeat(1100));
        let lines = diff(&old, &new).len();
        assert_eq!(lines, 2200);
    }
}
