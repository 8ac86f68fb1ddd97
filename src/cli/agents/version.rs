//! Versions of installed agents: what their programs print for `--version`.

use acpipe_host::{AgentStarter, NextLine};
use acpipe_model::nested;
use acpipe_model::transport::ProcessSpec;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Longest wait for the version of a program.
const LIMIT: Duration = Duration::from_secs(5);

/// Maximum length of a version, in characters.
const LONGEST: usize = 40;

/// Asks programs for their versions, all at the same time. A program that prints none, or not in time, has
/// `None`.
pub async fn versions(
    programs: Vec<Option<ProcessSpec>>,
    starter: &Arc<AgentStarter>,
) -> Vec<Option<String>> {
    let mut versions = vec![None; programs.len()];
    let mut questions = JoinSet::new();
    for (at, program) in programs.into_iter().enumerate() {
        if let Some(program) = program {
            let starter = Arc::clone(starter);
            questions.spawn(async move { (at, version(program, &starter).await) });
        }
    }
    while let Some(answer) = questions.join_next().await {
        if let Ok((at, version)) = answer {
            versions[at] = version;
        }
    }
    versions
}

async fn version(mut program: ProcessSpec, starter: &AgentStarter) -> Option<String> {
    program.args = vec!["--version".to_owned()];
    let mut env = nested::environment();
    env.0.extend(program.env.0);
    program.env = env;
    let mut process = starter.start(program);
    let line = process.next_line(Instant::now() + LIMIT).await;
    process.stop(Duration::ZERO, Duration::ZERO).await;
    match line {
        NextLine::Line(line) => parse(&String::from_utf8_lossy(&line)),
        NextLine::TimedOut | NextLine::Ended => None,
    }
}

/// Returns the version in a line such as `2.1.330 (Claude Code)` or `kimi, version 1.49.0`.
fn parse(line: &str) -> Option<String> {
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')'));
    let mut words = words.map(|word| word.trim_start_matches('v'));
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.contains('.')
            && word.len() <= LONGEST
            && word.chars().all(|c| c.is_ascii_graphic())
    };
    words.find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_the_line_of_a_program() {
        for (line, want) in [
            ("2.1.330 (Claude Code)", Some("2.1.330")),
            ("kimi, version 1.49.0", Some("1.49.0")),
            ("v0.61.0", Some("0.61.0")),
            ("opencode 1.18.33-beta.1", Some("1.18.33-beta.1")),
            ("{\"jsonrpc\":\"2.0\"}", None),
            ("usage: agent [--acp]", None),
            ("", None),
        ] {
            assert_eq!(parse(line).as_deref(), want, "{line}");
        }
    }
}
