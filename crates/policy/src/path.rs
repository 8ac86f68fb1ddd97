//! Paths as text, and path patterns. The file system is not accessed: targets of links are unknown here.

mod form;

use form::check_form;
pub use form::{LONGEST, alternatives};
use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;

/// `true` on platforms whose file names usually ignore case.
const ANY_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// Path pattern: `src/**` below the working directory, `~/.ssh/**`, `/etc/*`, or several in braces.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPattern {
    /// One of them must match.
    alternatives: Vec<Anchored>,
    home: Option<String>,
}

/// Pattern with a fixed base directory.
#[derive(Debug, Clone)]
struct Anchored {
    /// Number of directories above the working directory at which the pattern begins; `None` for an absolute
    /// pattern.
    above: Option<usize>,
    glob: GlobMatcher,
    /// For a pattern that matches everything in a directory: the directory itself.
    directory: Option<GlobMatcher>,
}

impl PartialEq for Anchored {
    fn eq(&self, other: &Self) -> bool {
        // The pattern of `directory` follows from that of `glob`.
        self.above == other.above && self.glob.glob() == other.glob.glob()
    }
}

impl PathPattern {
    /// Parses a pattern; `home` replaces `~`.
    ///
    /// # Errors
    /// It is not a valid path pattern.
    pub fn new(text: &str, home: Option<&str>) -> Result<Self, String> {
        check_form(text)?;
        let home = home.map(|home| normal(home, "/").path);
        let alternatives = alternatives(text)?;
        let anchored = alternatives
            .iter()
            .map(|text| Anchored::new(text, home.as_deref()));
        Ok(Self {
            alternatives: anchored.collect::<Result<_, _>>()?,
            home,
        })
    }

    /// Returns `true` if the path matches; with `wide`, a pattern for the content of a directory also matches
    /// the directory.
    pub fn matches(&self, path: &str, cwd: &str, wide: bool) -> bool {
        let expanded = match (path.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) => normal(&format!("{home}{rest}"), "/").path,
            _ => path.to_owned(),
        };
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|anchored| anchored.matches(&expanded, cwd, wide))
    }
}

impl Anchored {
    fn new(text: &str, home: Option<&str>) -> Result<Self, String> {
        check_form(text)?;
        let said = slashes(text);
        let (above, pattern) = match (said.strip_prefix('~'), home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                (None, format!("{}{rest}", globset::escape(home)))
            }
            (Some(rest), None) if rest.is_empty() || rest.starts_with('/') => {
                return Err(format!(
                    "{text:?}: cannot expand ~: no home directory is known"
                ));
            }
            _ if is_absolute(&said) => (None, said.clone()),
            _ => {
                let (above, rest) = climb(&said);
                (Some(above), rest.to_owned())
            }
        };
        if pattern.split(['/', '{', ',', '}']).any(|part| part == "..") {
            return Err(format!("{text:?}: .. is allowed only at the beginning"));
        }
        if pattern.is_empty() {
            return Err(format!(
                "{text:?} is empty after its ..; use ** for everything"
            ));
        }
        let pattern = match pattern.strip_suffix('/') {
            Some(directory) if !directory.is_empty() => format!("{directory}/**"),
            _ => pattern,
        };
        let directory = pattern.strip_suffix("/**").filter(|d| !d.is_empty());
        Ok(Self {
            above,
            directory: directory.map(glob).transpose()?,
            glob: glob(&pattern)?,
        })
    }

    fn matches(&self, path: &str, cwd: &str, wide: bool) -> bool {
        let found = match self.above {
            None => Some(path),
            Some(above) => {
                let cwd = normal(cwd, "/").path;
                let base = cwd.trim_end_matches('/').rsplitn(above + 1, '/').last();
                within(path, base.unwrap_or_default())
            }
        };
        let directory = self.directory.as_ref().filter(|_| wide);
        found.is_some_and(|path| {
            self.glob.is_match(path) || directory.is_some_and(|directory| directory.is_match(path))
        })
    }
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .case_insensitive(ANY_CASE)
        .backslash_escape(!cfg!(windows))
        .empty_alternates(true)
        .build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("{pattern:?} is not a valid path pattern: {}", error.kind()))
}

/// Removes leading `./` and `../`; returns the number of `../`.
fn climb(pattern: &str) -> (usize, &str) {
    let (mut above, mut rest) = (0, pattern);
    loop {
        rest = match (rest.strip_prefix("./"), rest.strip_prefix("../")) {
            (Some(rest), _) => rest,
            (None, Some(rest)) => {
                above += 1;
                rest
            }
            (None, None) => return (above, rest),
        };
    }
}

/// Returns the rest of a path below a directory.
fn within<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let (start, rest) = path.split_at_checked(directory.len())?;
    let same = start == directory || ANY_CASE && start.eq_ignore_ascii_case(directory);
    rest.strip_prefix('/').filter(|_| same)
}

fn slashes(path: &str) -> String {
    if cfg!(windows) {
        path.replace('\\', "/")
    } else {
        path.to_owned()
    }
}

fn is_absolute(path: &str) -> bool {
    let drive = path.get(1..3).is_some_and(|mark| mark == ":/");
    path.starts_with('/') || cfg!(windows) && drive
}

/// Path in the form that rules compare.
#[derive(Debug, PartialEq, Eq)]
pub struct Normal {
    /// Absolute path or path from `~`; without `.` and `..`.
    pub path: String,
    /// `true` if the path has only one interpretation.
    pub clear: bool,
}

pub fn normal(path: &str, base: &str) -> Normal {
    let decoded = uri_path(path);
    let (is_uri, path) = (decoded.is_some(), decoded.as_deref().unwrap_or(path));
    let is_clear = !is_uri && path.trim() == path && !path.contains("://");
    let path = slashes(path);
    let path = path.as_str();
    if path.starts_with('~') {
        // It is resolved where the home directory is known.
        return Normal {
            path: path.to_owned(),
            clear: false,
        };
    }
    let whole = if is_absolute(path) {
        path.to_owned()
    } else {
        format!("{}/{path}", slashes(base))
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            // Only the system knows where `..` leads after a link.
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let rooted = if whole.starts_with('/') { "/" } else { "" };
    let climbs = path.split('/').any(|part| part == "..");
    Normal {
        clear: is_clear && !climbs && !path.chars().any(char::is_control),
        path: format!("{rooted}{}", parts.join("/")),
    }
}

/// Returns the decoded path of a `file:` URI, in any case: `file:///a%20b`, `file://localhost/a`, `file:/a`.
pub fn uri_path(text: &str) -> Option<String> {
    let text = text.trim();
    let scheme = text.get(..5)?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let rest = &text[5..];
    let path = match rest.strip_prefix("//") {
        // The authority, usually `localhost` or empty, ends at the path.
        Some(rest) => rest.find('/').map_or(rest, |at| &rest[at..]),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Some(percent_decode_str(path).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_paths() {
        for (pattern, path, want) in [
            ("src/*.rs", "/w/src/a.rs", true),
            ("src/*.rs", "/w/src/a/b.rs", false),
            ("src/*.rs", "/src/a.rs", false),
            ("src/*.rs", "/w2/src/a.rs", false),
            ("./src/**", "/w/src/a/b.rs", true),
            ("src/", "/w/src/a/b.rs", true),
            ("src/**", "/w/src", false),
            ("src/**", "/w/src2/a", false),
            ("**", "/w/a/.b", true),
            ("**", "/w", false),
            ("**", "/x/a", false),
            ("/**", "/x/a", true),
            (".env", "/w/.env", true),
            (".env", "/w/a/.env", false),
            ("**/.env", "/w/.env", true),
            ("**/.env", "/w/a/b/.env", true),
            ("**/.env", "/x/.env", false),
            ("/**/.env", "/x/.env", true),
            ("**/.env*", "/w/a/.env.local", true),
            ("**/*.{pem,key}", "/w/a.key", true),
            ("../x/*", "/x/a", true),
            ("../x/*", "/w/x/a", false),
            ("../../*", "/a", true),
            ("~/.ssh/**", "/home/me/.ssh/id", true),
            ("~/.ssh/**", "~/.ssh/id", true),
            ("~/.ssh/**", "~/../me/./.ssh/id", true),
            ("**/.env", "~/../../w/.env", true),
            ("~/.ssh/**", "/home/you/.ssh/id", false),
            ("~", "/home/me", true),
            ("/etc/*", "/etc/passwd", true),
            ("a[0-9]", "/w/a7", true),
            ("a?", "/w/a/", false),
            ("{/etc,/usr}/**", "/etc/x", true),
            ("{/etc,/usr}/**", "/usr/x", true),
            ("{/etc,/usr}/**", "/w/etc/x", false),
            ("{~/.ssh,~/.aws}/**", "/home/me/.aws/x", true),
            ("{~/.ssh,~/.aws}/**", "~/.ssh/x", true),
            ("{a,/etc/**}", "/w/a", true),
            ("{a,/etc/**}", "/etc/x", true),
            ("{a,/etc/**}", "/a", false),
            ("{{~,/etc},b{c,}}/x", "/etc/x", true),
            ("{{~,/etc},b{c,}}/x", "/home/me/x", true),
            ("{{~,/etc},b{c,}}/x", "/w/b/x", true),
            ("{,/etc}/x", "/x", true),
            ("{}{/etc,a}", "/etc", true),
            ("{a,../b}", "/b", true),
            ("{[,},/],/etc}", "/w/,", true),
            (r"{a\,/etc,b}", "/w/a,/etc", true),
            ("{a,b}/*.{rs,md}", "/w/b/x.md", true),
        ] {
            let compiled = PathPattern::new(pattern, Some("/home/me/")).unwrap();
            assert_eq!(
                compiled.matches(path, "/w", false),
                want,
                "{pattern} {path}"
            );
        }
        let pattern = PathPattern::new("secrets/**", None).unwrap();
        assert!(pattern.matches("/w/secrets", "/w/", true));
        assert!(!pattern.matches("/w/secrets2", "/w", true));
        assert!(pattern.matches("/w/secrets/a", "/v/../w/./", false));
        let pattern = PathPattern::new("*", None).unwrap();
        assert!(pattern.matches("/a", "/", false));
    }

    #[test]
    fn invalid_path_pattern_is_refused() {
        for (pattern, why) in [
            ("", "is empty after"),
            ("./", "is empty after"),
            ("a[", "unclosed character class"),
            ("{a", "unclosed alternate"),
            ("a/../b", ".. is allowed only at the beginning"),
            ("a/{../a,b}", ".. is allowed only at the beginning"),
            ("~/x", "no home directory is known"),
        ] {
            let error = PathPattern::new(pattern, None).unwrap_err();
            assert!(error.contains(why), "{pattern}: {error}");
        }
    }

    #[test]
    fn paths_are_made_absolute_and_normal() {
        for (path, want, clear) in [
            ("/a/b", "/a/b", true),
            ("a", "/w/a", true),
            ("./a//b/", "/w/a/b", true),
            ("", "/w", true),
            ("/", "/", true),
            ("../a", "/a", false),
            ("/../../a", "/a", false),
            ("/a/../b", "/b", false),
            ("~/a", "~/a", false),
            ("~", "~", false),
            ("file:///a", "/a", false),
            ("FILE://localhost/a%20b/%2e%2e/c?x#y", "/c", false),
            ("file://localhost/a%20b", "/a b", false),
            ("file:/a", "/a", false),
            ("file:a%zz", "/w/a%zz", false),
            ("file:a%+1b", "/w/a%+1b", false),
            ("https://x/a", "/w/https:/x/a", false),
            (" /a", "/w/ /a", false),
            ("a\0b", "/w/a\0b", false),
            ("a\nb", "/w/a\nb", false),
            ("a..b", "/w/a..b", true),
        ] {
            let path_ = normal(path, "/w/");
            assert_eq!(
                (path_.path.as_str(), path_.clear),
                (want, clear),
                "{path:?}"
            );
        }
    }
}
