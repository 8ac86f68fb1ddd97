//! Ids of the requirements of five earlier systems. `tests/seeds/seeds.md` has the subject and the verdict of
//! each.

/// (prefix, number of rows): the rows of a prefix are numbered from 1.
///
/// L, H and M are systems with one interface, DA and DS two generations of one system. X marks what a system does
/// beyond its documentation, T the cases of its tests. B are defects of these systems, U what all of them need.
const PREFIXES: [(&str, u32); 13] = [
    ("L-", 47),
    ("L-X", 16),
    ("H-", 38),
    ("H-X", 13),
    ("DA-", 43),
    ("DA-X", 25),
    ("DA-T", 28),
    ("DS-", 43),
    ("DS-X", 11),
    ("M-", 58),
    ("M-X", 14),
    ("B-", 16),
    ("U-", 16),
];

/// Returns the ids of all rows.
pub fn all() -> Vec<String> {
    let ids = PREFIXES
        .iter()
        .flat_map(|(prefix, count)| (1..=*count).map(move |n| format!("{prefix}{n}")));
    ids.collect()
}

/// Returns the ids of the rows about chunks, whose verdicts follow from cases.
pub fn mappings() -> Vec<String> {
    let mapping = (12..=25).map(|n| format!("DA-X{n}"));
    let pinned = (1..=28).map(|n| format!("DA-T{n}"));
    let events = (28..=39).map(|n| format!("DS-{n}"));
    let beyond = [6, 8].map(|n| format!("DS-X{n}"));
    let rows = mapping.chain(pinned).chain(events);
    rows.chain(beyond).collect()
}

#[test]
fn there_are_368_rows() {
    let all = all();
    assert_eq!(all.len(), 368);
    for row in mappings() {
        assert!(all.contains(&row), "{row}");
    }
}
