//! Tables of the documentation that repeat facts of other files.

use super::markdown::root;
use std::fs;

/// Cells of the rows of a table, without its header.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with("## "));
    let rows = lines.filter(|line| line.starts_with('|')).skip(2);
    rows.map(|line| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

#[test]
fn the_table_of_agents_agrees_with_the_results() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let results = fs::read_to_string(root().join("tests/real/RESULTS.md")).unwrap();
    let told = rows(&readme, "Agents");
    let restored = rows(&results, "Sessions that come back");
    let asked = rows(&results, "What an agent may do");
    assert_eq!(told.len(), restored.len());
    assert_eq!(told.len(), asked.len());
    for ((told, restored), asked) in told.iter().zip(&restored).zip(&asked) {
        let name = &told[0];
        assert_eq!(told[1], restored[1], "version of {name}");
        let resumes = restored[2].starts_with("ok (resume");
        assert_eq!(told[3], if resumes { "resume" } else { "load" }, "{name}");
        let never = asked[2].contains("asks for no permission");
        assert_eq!(told[4].starts_with("never"), never, "{name}");
    }
    // The sentence above the table says that everything works.
    let failed = results.lines().find(|line| line.contains("**"));
    assert_eq!(failed, None);
}
