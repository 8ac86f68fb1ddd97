//! Tests of host requests and their results.

use super::*;
use HostRequest::{
    CreateTerminal, KillTerminal, ReleaseTerminal, TerminalOutput as Output, WaitForExit,
};

struct World {
    host: Host,
    now: Instant,
    place: HostScope,
    tickets: u64,
}

impl World {
    fn new() -> Self {
        Self {
            host: Host::default(),
            now: Instant::now(),
            place: HostScope {
                roots: vec!["/w/project".into(), "/w/more".into()],
                env: Variables::default(),
            },
            tickets: 0,
        }
    }

    /// Sends a request; returns the available answers and effects in short form.
    fn ask(&mut self, session: &str, request: HostRequest) -> Vec<String> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.host.ask(ticket, session, &self.place, request);
        self.unreported()
    }

    fn handle_event(&mut self, event: HostEvent) -> Vec<String> {
        self.host.handle_event(event, self.now);
        self.unreported()
    }

    fn unreported(&mut self) -> Vec<String> {
        let effects = self.host.take_effects().into_iter().map(|e| match e {
            HostEffect::File { access, .. } => format!("{access:?}"),
            HostEffect::Start(id, spec) => format!("start {id} {} {:?}", spec.command, spec.args),
            HostEffect::Kill(id) => format!("kill {id}"),
            HostEffect::StopFile(Ticket(n)) => format!("stop {n}"),
            HostEffect::HoldRoots { session, .. } => format!("hold {session}"),
            HostEffect::ReleaseRoots(session) => format!("release {session}"),
        });
        let effects: Vec<_> = effects.collect();
        let answers = self.host.take_answers().into_iter();
        let answers = answers.map(|(Ticket(n), answer)| match answer {
            Ok(HostAnswer::Output(out)) => {
                let how = if out.truncated { "…" } else { "" };
                format!("{n}: {how}{} {:?}", out.text, out.exit.and_then(|e| e.code))
            }
            Ok(HostAnswer::Exit(exit)) => format!("{n}: exit {:?}", exit.code),
            Ok(other) => format!("{n}: {other:?}"),
            Err(error) => format!("{n}: {}", error.kind.name()),
        });
        effects.into_iter().chain(answers).collect()
    }

    /// Creates a running terminal; returns its id and name.
    fn running(&mut self, session: &str) -> (TerminalId, String) {
        self.ask(session, run("cat"));
        let id = TerminalId(self.host.terminals.last);
        let answer = self.handle_event(HostEvent::Started(id));
        let name = id.to_string();
        let n = self.tickets;
        assert_eq!(answer, [format!("{n}: Created({name:?})")]);
        (id, name)
    }

    fn output(&mut self, session: &str, terminal: &str) -> Vec<String> {
        let terminal = terminal.to_owned();
        let answer = self.ask(session, Output { terminal });
        let number = format!("{}: ", self.tickets);
        answer.iter().map(|a| a.replace(&number, "")).collect()
    }
}

fn run(command: &str) -> HostRequest {
    CreateTerminal {
        command: command.to_owned(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
        output_limit: None,
    }
}

fn exit(code: i32) -> TerminalExit {
    TerminalExit {
        code: Some(code),
        signal: None,
    }
}

const NONE: [&str; 0] = [];

#[test]
fn terminal_runs_and_exits() {
    let mut w = World::new();
    assert_eq!(w.ask("s", run("cat")), ["start terminal-1 cat []"]);
    let id = TerminalId(1);
    // The agent does not know its name yet.
    assert_eq!(w.output("s", "terminal-1"), ["resourceNotFound"]);
    assert_eq!(
        w.handle_event(HostEvent::Started(id)),
        ["1: Created(\"terminal-1\")"]
    );
    assert_eq!(w.output("s", "terminal-1"), [" None"]);
    let terminal = || "terminal-1".to_owned();
    let wait = WaitForExit {
        terminal: terminal(),
    };
    assert_eq!(w.ask("s", wait.clone()), NONE);
    w.handle_event(HostEvent::Output(id, Bytes::from_static(b"a\xc3")));
    assert_eq!(w.output("s", "terminal-1"), ["a None"]);
    w.handle_event(HostEvent::Output(id, Bytes::from_static(b"\xa4b")));
    assert_eq!(w.output("s", "terminal-1"), ["aäb None"]);
    assert_eq!(
        w.handle_event(HostEvent::Ended(id, exit(3))),
        ["4: exit Some(3)"]
    );
    assert_eq!(w.ask("s", wait), ["7: exit Some(3)"]);
    // Readable until it is released.
    assert_eq!(w.handle_event(HostEvent::Gone(id)), NONE);
    assert_eq!(w.output("s", "terminal-1"), ["aäb Some(3)"]);
    assert_eq!(
        w.ask(
            "s",
            KillTerminal {
                terminal: terminal()
            }
        ),
        ["9: Done"]
    );
    assert_eq!(
        w.ask(
            "s",
            ReleaseTerminal {
                terminal: terminal()
            }
        ),
        ["10: Done"]
    );
    assert_eq!(w.output("s", "terminal-1"), ["resourceNotFound"]);
    assert!(w.host.terminals.of("s").is_empty());
}

#[test]
fn a_killed_terminal_stays_and_a_released_one_does_not() {
    let mut w = World::new();
    let (id, name) = w.running("s");
    let terminal = || name.clone();
    let wait = || WaitForExit {
        terminal: name.clone(),
    };
    assert_eq!(
        w.ask(
            "s",
            KillTerminal {
                terminal: terminal()
            }
        ),
        ["kill terminal-1", "2: Done"]
    );
    // A second kill has no effect.
    assert_eq!(
        w.ask(
            "s",
            KillTerminal {
                terminal: terminal()
            }
        ),
        ["3: Done"]
    );
    assert_eq!(w.output("s", &name), [" None"]);
    assert_eq!(w.ask("s", wait()), NONE);
    assert_eq!(
        w.ask(
            "s",
            ReleaseTerminal {
                terminal: terminal()
            }
        ),
        ["6: Done"]
    );
    for request in [
        wait(),
        KillTerminal {
            terminal: terminal(),
        },
        ReleaseTerminal {
            terminal: terminal(),
        },
    ] {
        let answer = w.ask("s", request);
        assert!(answer[0].ends_with("resourceNotFound"), "{answer:?}");
    }
    // A request that was waiting is still answered.
    assert_eq!(
        w.handle_event(HostEvent::Ended(id, exit(0))),
        ["5: exit Some(0)"]
    );
    w.handle_event(HostEvent::Gone(id));
    assert!(w.host.terminals.of("s").is_empty());
    let (_, name) = w.running("s");
    let killed = w.ask("s", ReleaseTerminal { terminal: name });
    assert_eq!(killed, ["kill terminal-2", "11: Done"]);
}

#[test]
fn a_session_has_its_own_terminals_and_ends_with_them() {
    let mut w = World::new();
    let (_, name) = w.running("s");
    assert_eq!(w.output("other", &name), ["resourceNotFound"]);
    for odd in [
        "terminal-01",
        "terminal-+1",
        "terminal-",
        "1",
        "",
        "terminal-99",
    ] {
        assert_eq!(w.output("s", odd), ["resourceNotFound"], "{odd:?}");
    }
    // A terminal that is being started is ended, too.
    w.ask("s", run("cat"));
    w.running("other");
    w.host.release_session("s");
    assert_eq!(w.unreported(), ["kill terminal-1", "kill terminal-2"]);
    assert_eq!(
        w.handle_event(HostEvent::Output(TerminalId(1), "late".into())),
        NONE
    );
    assert_eq!(w.output("s", &name), ["resourceNotFound"]);
    assert_eq!(w.host.terminals.of("other").len(), 1);
}

#[test]
fn terminals_and_waiters_are_bounded() {
    let mut w = World::new();
    let mut first = String::new();
    for n in 0..MAX_TERMINALS {
        let (_, name) = w.running("s");
        if n == 0 {
            first = name;
        }
    }
    assert!(w.ask("s", run("cat"))[0].ends_with("overloaded"));
    // A terminal that is ending still counts.
    w.ask("s", ReleaseTerminal { terminal: first });
    assert!(w.ask("s", run("cat"))[0].ends_with("overloaded"));
    w.handle_event(HostEvent::Ended(TerminalId(1), exit(0)));
    w.handle_event(HostEvent::Gone(TerminalId(1)));
    let (_, name) = w.running("s");
    // A terminal that fails to start does not count.
    w.handle_event(HostEvent::Gone(TerminalId(2)));
    w.ask(
        "s",
        ReleaseTerminal {
            terminal: "terminal-2".into(),
        },
    );
    let started = w.ask("s", run("cat"));
    assert!(started[0].starts_with("start"), "{started:?}");
    let last = TerminalId(w.host.terminals.last);
    let failed = w.handle_event(HostEvent::StartFailed(
        last,
        Error::new(ErrorKind::Resource, "no"),
    ));
    assert!(failed[0].ends_with(": resource"), "{failed:?}");
    assert!(w.ask("s", run("cat"))[0].starts_with("start"));
    let waits = |w: &mut World| {
        w.ask(
            "s",
            WaitForExit {
                terminal: name.clone(),
            },
        )
    };
    let refused = (0..100).filter_map(|_| waits(&mut w).pop());
    assert_eq!(
        refused
            .filter(|answer| answer.ends_with("overloaded"))
            .count(),
        36
    );
}

#[test]
fn terminal_output_limit_is_the_agents_up_to_a_maximum() {
    for (asked, kept) in [
        (Some(0), 0),
        (Some(5), 5),
        (None, DEFAULT_OUTPUT),
        (Some(u64::MAX), MAX_OUTPUT),
    ] {
        let mut w = World::new();
        let CreateTerminal {
            command,
            args,
            env,
            cwd,
            ..
        } = run("yes")
        else {
            unreachable!("it is one");
        };
        let output_limit = asked;
        w.ask(
            "s",
            CreateTerminal {
                command,
                args,
                env,
                cwd,
                output_limit,
            },
        );
        w.handle_event(HostEvent::Started(TerminalId(1)));
        let said = Bytes::from(vec![b'y'; MAX_OUTPUT + 1]);
        w.handle_event(HostEvent::Output(TerminalId(1), said));
        let want = format!("…{} None", "y".repeat(kept));
        assert!(w.output("s", "terminal-1") == [want], "{asked:?}");
    }
}

#[test]
fn commands_are_programs_or_lines_for_the_shell() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("ls", &[], "ls []"),
        ("/usr/bin/x-1.2+b_c", &[], "/usr/bin/x-1.2+b_c []"),
        ("ls", &["-l", "a b"], "ls [\"-l\", \"a b\"]"),
        ("my program", &["x"], "my program [\"x\"]"),
        ("ls -l", &[], "/bin/sh [\"-c\", \"ls -l\"]"),
        ("a&&b", &[], "/bin/sh [\"-c\", \"a&&b\"]"),
        ("X=1", &[], "/bin/sh [\"-c\", \"X=1\"]"),
        ("~/bin/x", &[], "/bin/sh [\"-c\", \"~/bin/x\"]"),
        ("a\nb", &[], "/bin/sh [\"-c\", \"a\\nb\"]"),
    ];
    for (command, args, want) in cases {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let (program, args) = command::argv((*command).to_owned(), args);
        assert_eq!(format!("{program} {args:?}"), *want);
    }
}

#[test]
fn command_gets_session_and_own_environment() {
    let mut w = World::new();
    let set = |value: &str| Some(value.to_owned());
    w.place.env.0.insert("A".into(), set("session"));
    w.place.env.0.insert("B".into(), set("session"));
    let create = |env: &[(&str, &str)], cwd: Option<&str>| CreateTerminal {
        command: "env".into(),
        args: Vec::new(),
        env: env
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect(),
        cwd: cwd.map(str::to_owned),
        output_limit: None,
    };
    for (cwd, want) in [(None, "/w/project"), (Some("/w/more/x"), "/w/more/x")] {
        w.host
            .ask(Ticket(0), "s", &w.place, create(&[("B", "own")], cwd));
        let effects = w.host.take_effects();
        let [HostEffect::Start(_, spec)] = &effects[..] else {
            panic!("{effects:?}");
        };
        assert_eq!(spec.cwd, want);
        assert_eq!(spec.env.0["A"], set("session"));
        assert_eq!(spec.env.0["B"], set("own"));
    }
    for (request, field) in [
        (create(&[("A=B", "x")], None), "env"),
        (create(&[("", "x")], None), "env"),
        (create(&[("A", "x\0")], None), "env"),
        (run(" "), "command"),
        (run("a\0b"), "command"),
    ] {
        let answer = w.ask("s", request);
        assert!(answer[0].ends_with("invalidParams"), "{field}: {answer:?}");
    }
}

#[test]
fn file_requests_are_passed_on_except_oversized_text() {
    let mut w = World::new();
    let read = HostRequest::ReadFile {
        path: "/w/x".into(),
        window: LineRange::default(),
    };
    assert!(w.ask("s", read)[0].starts_with("Read { path: \"/w/x\""));
    let written = w.handle_event(HostEvent::File(
        Ticket(1),
        Ok(HostAnswer::Content("c".into())),
    ));
    assert_eq!(written, ["1: Content(\"c\")"]);
    let write = |len| HostRequest::WriteFile {
        path: "/w/x".into(),
        content: "x".repeat(len),
    };
    assert!(w.ask("s", write(MAX_TEXT))[0].starts_with("Write"));
    assert_eq!(w.ask("s", write(MAX_TEXT + 1)), ["3: invalidParams"]);
}

#[test]
fn terminal_output_is_shown_at_intervals() {
    let mut w = World::new();
    let (id, name) = w.running("s");
    assert_eq!(w.host.deadline(), None);
    let began = w.now;
    for _ in 0..10 {
        w.handle_event(HostEvent::Output(id, "x".into()));
        w.now += REPORT_INTERVAL / 20;
    }
    let due = w.host.deadline().unwrap();
    assert_eq!(due, began + REPORT_INTERVAL);
    assert_eq!(w.host.unreported(began), []);
    let unreported = w.host.unreported(due);
    assert_eq!(unreported, [("s".to_owned(), id)]);
    assert_eq!(w.host.deadline(), None);
    // Unreported output stays available for the next report.
    w.host.report_now(due);
    assert_eq!(w.host.unreported(due), unreported);
    assert_eq!(w.host.unreported_of("other"), []);
    assert_eq!(w.host.take_view(id).unwrap().text, "xxxxxxxxxx");
    assert_eq!(w.host.unreported_of("s"), []);
    // The exit is reported at once.
    w.handle_event(HostEvent::Ended(id, exit(0)));
    assert_eq!(w.host.deadline(), Some(w.now));
    assert_eq!(w.host.unreported(w.now), [("s".to_owned(), id)]);
    assert_eq!(w.host.take_view(id).unwrap().exit, Some(&exit(0)));
    // Unreported output of a released terminal does not make output of the next terminal due.
    w.handle_event(HostEvent::Gone(id));
    w.host.report_now(w.now);
    w.ask("s", ReleaseTerminal { terminal: name });
    assert!(w.host.sessions().is_empty());
    assert_eq!(w.host.deadline(), None);
    let (id, _) = w.running("s");
    w.handle_event(HostEvent::Output(id, "x".into()));
    assert_eq!(w.host.deadline(), Some(w.now + REPORT_INTERVAL));
}
