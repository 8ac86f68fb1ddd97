//! Sources that violate the rules for imports: the check must find each of them.

use super::{Crate, names};

#[test]
fn import_cycles_are_found() {
    let cycles = |files: &[(&str, &str)]| -> Vec<String> {
        let parsed = Crate::parse(files.iter().copied());
        parsed
            .cycles()
            .keys()
            .map(|circle| names(circle).join(" "))
            .collect()
    };
    let siblings = [
        ("core/a", "use super::b::{c, X as Y};\n"),
        ("core/b", "fn f() -> crate::core::a::Z {}\n"),
    ];
    assert_eq!(cycles(&siblings), ["core::a core::b"]);
    // Comments and tests do not count.
    let comment = [
        siblings[0],
        (
            "core/b",
            "// crate::core::a::Z\n#[cfg(test)]\nmod tests {\n use super::super::a;\n}\n",
        ),
    ];
    assert_eq!(cycles(&comment), Vec::<String>::new());
    // Neither does a re-export, nor the head of a module.
    let module = [
        (
            "core/a",
            "mod c;\nuse c::C;\npub use super::b::B;\npub struct A;\n",
        ),
        ("core/a/c", "use super::{A, B};\n"),
        ("core/b", "mod d;\npub struct B;\n"),
    ];
    assert_eq!(cycles(&module), Vec::<String>::new());
    // A file below the head counts for the whole module.
    let mut through = module.to_vec();
    through.extend([
        ("core/b/d", "use crate::core::a::\n{\n    A,\n};\n"),
        ("core/a/e", "use crate::core::b::d::X;\n"),
    ]);
    assert_eq!(
        cycles(&through),
        ["core::a core::a::c core::a::e core::b core::b::d"]
    );
    // A common import of the head above all of them hides no cycle.
    let with_head = module[0].1.to_owned() + "use super::Head;\n";
    through[0].1 = &with_head;
    through.push(("core", "mod a;\nmod b;\npub struct Head;\n"));
    assert_eq!(
        cycles(&through),
        ["core::a core::a::c core::a::e core::b core::b::d"]
    );
}

#[test]
fn misplaced_impl_blocks_are_found() {
    let far = |files: &[(&str, &str)]| {
        let parsed = Crate::parse(files.iter().copied());
        parsed.misplaced_impls().len()
    };
    let home = ("core/a", "pub struct A<T>(T);\nimpl<T> A<T> {}\n");
    assert_eq!(
        far(&[
            home,
            (
                "core/b/c",
                "use crate::core::a::A;\nimpl<T: Copy> A<T> {\n}\n"
            )
        ]),
        1
    );
    assert_eq!(
        far(&[
            home,
            (
                "core/b/c",
                "use crate::core::a::A;\nimpl<T> Clone for A<T> {\n}\n"
            )
        ]),
        0
    );
    assert_eq!(
        far(&[home, ("core/a/c", "use super::A;\nimpl A<u8> {\n}\n")]),
        0
    );
    // Files of one module may implement each other's types, but files of a room may not.
    let sibling = ("core/a/d", "use super::c::C;\nimpl C {\n}\n");
    assert_eq!(far(&[("core/a/c", "pub struct C;\n"), sibling]), 0);
    assert_eq!(
        far(&[home, ("core/b", "use super::a::A;\nimpl A<u8> {\n}\n")]),
        1
    );
}
