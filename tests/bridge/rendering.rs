//! Styles, links, Markdown and pagers: at a terminal, and only there.

use crate::harness::run::Run;
use crate::harness::steps::{ask, end, say, tool};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, World};
use crate::terminal::{OPTIONS, PROMPT, call};
use serde_json::{Value, json};

/// Arguments, variables, and whether the output is as the test describes.
type Case<'a> = (&'a [&'a str], &'a [(&'static str, &'a str)], bool);

/// Opens a terminal that shows styles, with these variables.
fn screen(env: &[(&'static str, &str)]) -> Screen {
    in_world(World::new(), env)
}

fn in_world(world: World, env: &[(&'static str, &str)]) -> Screen {
    let mut screen = Screen::new(world);
    screen.env.push(("TERM", "xterm".to_owned()));
    let env = env.iter().map(|(name, value)| (*name, (*value).to_owned()));
    screen.env.extend(env);
    screen
}

/// Starts a run whose agent performs these steps.
fn start(screen: &mut Screen, args: &[&str], steps: &[Value]) {
    let script = json!({"session/prompt": [steps]});
    let script = screen.world.script(&script);
    let args = [&["run"], args, &["go", "--", FAKE_AGENT, &script]].concat();
    screen.start(&args, "");
}

const ANSWER: [&str; 4] = [
    "# Ti",
    "tle\n\nSome **bo",
    "ld** [text](https://x.y)\n- a\n",
    "- b",
];

const RENDERED: &str = "\x1b[1m\x1b[4mTi\x1b[0m\x1b[1m\x1b[4mtle\x1b[0m\n\n\
    Some \x1b[1mbold\x1b[0m \x1b[4m\x1b]8;;https://x.y\x1b\\text\x1b]8;;\x1b\\\x1b[0m\n• a\n• b\n";

fn answer() -> Vec<Value> {
    let said = ANSWER.iter().map(|text| say(text));
    said.chain([end("end_turn")]).collect()
}

#[test]
fn answer_is_rendered_at_a_terminal_and_raw_elsewhere() {
    let raw = format!("{}\n", ANSWER.concat());
    let cases: [Case<'_>; 5] = [
        (&[], &[], true),
        (&["--raw"], &[], false),
        (&["--color", "never"], &[], false),
        (&[], &[("NO_COLOR", "1")], false),
        (&[], &[("TERM", "dumb")], false),
    ];
    for (args, env, is_rendered) in cases {
        let mut screen = screen(env);
        start(&mut screen, args, &answer());
        let (code, text, _) = screen.end();
        assert_eq!(code, 0, "{text}");
        let want = if is_rendered { RENDERED } else { &raw };
        // Text that comes in one piece has its style in one piece.
        let text = text.replace("\x1b[0m\x1b[1m\x1b[4m", "");
        let want = want.replace("\x1b[0m\x1b[1m\x1b[4m", "");
        assert_eq!(text, want, "{args:?} {env:?}");
    }
    let run = Run::new(&["run", "--color", "always", "go"]);
    let piped = run.script(&json!({"session/prompt": [answer()]})).go();
    assert_eq!(piped.expect(0).text(), raw);
}

#[test]
fn text_of_an_open_span_is_shown_before_a_question() {
    let mut screen = screen(&[]);
    let steps = [
        say("I **want"),
        ask(&call(), OPTIONS),
        say(" this** done"),
        end("end_turn"),
    ];
    start(&mut screen, &["--permissions", "ask"], &steps);
    let before = screen.await_text(PROMPT);
    assert!(before.starts_with("I **want"), "{before:?}");
    screen.keys("y\n");
    screen.await_text("this** done");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn notes_do_not_interrupt_a_line_of_the_answer() {
    let mut screen = screen(&[]);
    let call = json!({"title": "List files", "kind": "read", "rawInput": {}});
    let steps = [
        say("before **the"),
        tool("t", &call),
        say("after"),
        end("end_turn"),
    ];
    start(&mut screen, &[], &steps);
    let (code, text, _) = screen.end();
    assert_eq!(code, 0, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"before **the"), "{text:?}");
    assert!(text.ends_with("after\n"), "{text:?}");
}

#[test]
fn hostile_markdown_does_not_control_the_terminal() {
    let hostile = "a\x1b]52;c;eA==\x07b &#27;[2J `\x1b[2J` [l](https://x\x1b]0;t\x07) [m](javascript:x)\n\
        ```\x1b[8m\n\u{202e}\x1b[6n\n```\n| \x1b[5m |\n|--|\n";
    let chars: Vec<char> = hostile.chars().collect();
    let pieces = chars
        .chunks(3)
        .map(|piece| say(&piece.iter().collect::<String>()));
    let steps: Vec<Value> = std::iter::once(say(hostile))
        .chain(pieces)
        .chain([end("end_turn")])
        .collect();
    let mut screen = screen(&[]);
    start(&mut screen, &["--session", "mine"], &steps);
    let (code, text, world) = screen.next();
    assert_eq!(code, 0, "{text:?}");
    let mut again = in_world(world, &[]);
    again.start(&["sessions", "show", "--no-pager", "mine"], "");
    let (code, shown, _) = again.end();
    assert_eq!(code, 0, "{shown:?}");
    for text in [text, shown] {
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            assert!(!before.contains(['\x07', '\u{9b}', '\u{202e}']), "{text:?}");
            let own = [
                "[0m", "[1m", "[2m", "[3m", "[4m", "[9m", "[31m", "[32m", "[33m", "[36m",
            ];
            let own = own.iter().find_map(|style| after.strip_prefix(style));
            rest = own.unwrap_or_else(|| {
                let link = after
                    .strip_prefix("]8;;")
                    .and_then(|link| link.split_once("\x1b\\"));
                let (url, rest) = link.unwrap_or_else(|| panic!("{after:?} in {text:?}"));
                let is_known = ["", "https://", "file:///"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme));
                assert!(is_known && url.is_ascii(), "{url:?}");
                rest
            });
        }
    }
}

#[test]
fn color_is_chosen_by_option_and_environment() {
    let world = World::new();
    let run = ["run", "-q", "--agent", "demo", "--session", "a", "hello"];
    assert!(world.acpipe(&run).output().unwrap().status.success());
    let cases: [Case<'_>; 7] = [
        (&["sessions", "list"], &[], false),
        (&["sessions", "list", "--color", "always"], &[], true),
        (&["sessions", "list"], &[("CLICOLOR_FORCE", "1")], true),
        (
            &["sessions", "list", "--color=never"],
            &[("CLICOLOR_FORCE", "1")],
            false,
        ),
        (&["--color=always", "--help"], &[], true),
        (&["--help"], &[], false),
        (
            &["sessions", "list", "--json", "--color=always"],
            &[],
            false,
        ),
    ];
    for (args, env, is_styled) in cases {
        let done = world
            .acpipe(args)
            .envs(env.iter().copied())
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(!text.is_empty(), "{args:?}");
        assert_eq!(text.contains('\x1b'), is_styled, "{args:?} {text:?}");
        assert!(
            !text.contains("\x1b]8"),
            "links are for terminals: {text:?}"
        );
    }
    // Errors of the command line, too.
    for (color, is_styled) in [("always", true), ("never", false)] {
        let wrong = world.acpipe(&["--color", color, "sesions"]).output();
        let text = String::from_utf8(wrong.unwrap().stderr).unwrap();
        assert_eq!(text.contains('\x1b'), is_styled, "{text:?}");
    }
}

#[test]
fn long_output_goes_through_the_pager() {
    let lines: Vec<String> = (0..40).map(|n| format!("line {n}")).collect();
    let text = lines.join("\n\n");
    let mut first = screen(&[]);
    start(
        &mut first,
        &["--session", "long"],
        &[say(&text), end("end_turn")],
    );
    let (code, _, mut world) = first.next();
    assert_eq!(code, 0);
    let pager = ("ACPIPE_PAGER", "sed 's/^/PAGED /'");
    let show: &[&str] = &["sessions", "show", "long"];
    let cases: [Case<'_>; 7] = [
        (show, &[pager], true),
        (show, &[("PAGER", pager.1)], true),
        (show, &[pager, ("TERM", "dumb")], false),
        (&["sessions", "list"], &[pager], false),
        (&["sessions", "show", "--no-pager", "long"], &[pager], false),
        (show, &[("ACPIPE_PAGER", "cat"), ("PAGER", pager.1)], false),
        (show, &[("ACPIPE_PAGER", "no-such-pager")], false),
    ];
    for (args, env, is_paged) in cases {
        let mut screen = in_world(world, env);
        screen.start(args, "");
        let (code, text, next) = screen.next();
        world = next;
        assert_eq!(code, 0, "{text}");
        assert_eq!(text.contains("PAGED "), is_paged, "{args:?} {env:?} {text}");
        assert!(args[1] == "list" || text.contains("line 39"), "{text}");
    }
    // A pager that is left early is no error.
    let mut screen = in_world(world, &[("ACPIPE_PAGER", "head -n 1")]);
    screen.start(show, "");
    let (code, text, world) = screen.next();
    assert_eq!((code, text.lines().count()), (0, 1), "{text}");
    let piped = world.acpipe(show).env("ACPIPE_PAGER", pager.1).output();
    let piped = String::from_utf8(piped.unwrap().stdout).unwrap();
    assert!(
        piped.contains("line 39") && !piped.contains("PAGED"),
        "{piped}"
    );
}
