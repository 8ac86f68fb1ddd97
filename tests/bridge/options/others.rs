//! Options of the commands that start no agents for clients.

use super::{World, acpipe, assert_mentioned};

/// Commands, separated by `|`; an option of each of them; and how it shows its effect: in the tests of a file below
/// `tests`, by a command line that is refused with a message that names the option, or by a text that a command line prints.
const ROWS: &str = "\
attach: --cwd: tested in bridge/options/effects.rs
attach: --last: tested in bridge/daemon/attach.rs
attach: --last: refused by attach --last 3 -o chunks
attach: --output: tested in bridge/options/effects.rs
attach: --raw: refused by attach --raw -o chunks
attach: --read-only: tested in bridge/daemon/attach.rs
attach|agents|agents list|agents show|agents add|agents remove|agents default|agents import|agents trust: --state-dir: tested in bridge/storage.rs
daemon status|daemon stop|daemon logs|sessions|sessions list|sessions show|sessions search|sessions export|sessions delete|sessions gc|trace|permissions|permissions show|processes|doctor: --state-dir: tested in bridge/storage.rs
agents|agents list|agents show|agents add|agents remove|agents default|agents import|agents trust: --config: prints c.toml:1: agents default --config c.toml
agents|agents list: --all: prints gemini: agents --all
agents|agents list|agents show: --json: tested in bridge/named_agents_cli.rs
agents add: --description: tested in bridge/agent_choice.rs
agents add: --env: prints --env: agents add x --env A -- c
agents add: --extends: tested in bridge/agent_choice.rs
agents add: --mode: tested in bridge/agent_choice.rs
agents add: --model: tested in bridge/agent_choice.rs
agents add: --permissions: prints permissions: agents add x --permissions none -- c
agents add: --prompt: prints added agent: agents add p --extends demo --prompt 'Be brief.' --config p.toml
agents show: --json: prints configuration: agents show p --json --config p.toml
agents add: --protocol: prints none: agents add q --protocol none -- c
agents default: --unset: tested in bridge/strangers.rs
agents trust: --revoke: tested in bridge/named_agents_cli.rs
daemon status: --json: tested in bridge/daemon.rs
daemon logs: --lines: tested in bridge/http/secrets.rs
daemon logs: --follow: tested in bridge/options/effects.rs
doctor: --config: tested in bridge/doctor.rs
doctor: --cwd: prints none: doctor --cwd none -- true
doctor: --json: tested in bridge/doctor.rs
doctor: --no-path-probe: tested in bridge/doctor.rs
doctor: --probe: tested in bridge/doctor.rs
doctor: --probe: refused by doctor --probe
doctor: --timeout: tested in bridge/doctor.rs
doctor: --timeout: refused by doctor --timeout initialize=1s
doctor: --yes: tested in bridge/doctor.rs
doctor: --yes: refused by doctor --yes
man: --dir: tested in bridge/man.rs
permissions show: --cwd: tested in bridge/ledger.rs
permissions show: --json: tested in bridge/ledger.rs
permissions show: --refused: tested in bridge/ledger.rs
processes: --end: tested in bridge/launches.rs
processes: --json: tested in bridge/launches.rs
replay: --agent: prints does not have this process: replay tape --agent x
replay: --at-once: tested in bridge/tapes.rs
replay: --child: prints does not have this process: replay tape --child 7
replay: --max-pause: refused by replay tape --at-once --max-pause 1s
replay: --paced: refused by replay tape --at-once --paced
replay: --speed: refused by replay tape --at-once --speed 2
schema: --bundle: prints AcpipeProtocol: schema --bundle
schema: --bundle: refused by schema --bundle --dir d
schema: --dir: tested in bridge/cli.rs
sessions list|sessions show|sessions search|sessions export|sessions delete: --cwd: tested in bridge/ownership.rs
sessions|sessions list|sessions show|sessions search|sessions export|sessions delete|sessions gc|trace|permissions|permissions show: --no-pager: tested in bridge/rendering.rs
sessions delete: --archive: tested in bridge/sessions.rs
sessions export: --chunk-profile: refused by sessions export a --chunk-profile 5 -f md
sessions export: --chunk-profile: refused by sessions export a --chunk-profile 5 -o log
sessions export: --chunk-profile: prints parts: sessions export a --chunk-profile 5
sessions export: --format: tested in bridge/search.rs
sessions export: --output: prints record: sessions export a --output log
sessions export: --output: refused by sessions export a --output log -f md
sessions gc: --dry-run: tested in bridge/sessions.rs
sessions gc: --older-than: tested in bridge/sessions.rs
sessions list: --all: tested in bridge/sessions.rs
sessions list|sessions search: --json: tested in bridge/screen.rs
sessions search: --limit: tested in bridge/search.rs
sessions search: --regex: prints greetings: sessions search --regex gree.ings
trace: --cwd: prints prompt  in two: trace same --text --cwd two
trace: --output: prints wrote page.html: trace a --output page.html
trace: --text: tested in bridge/trace.rs
";

/// Returns the rows: commands, option, and how its effect is shown.
fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ROWS.lines().map(|line| {
        let row = line.splitn(3, ": ").collect::<Vec<_>>();
        let &[commands, option, shown] = row.as_slice() else {
            panic!("not three cells: {line}");
        };
        (commands, option, shown)
    })
}

/// Returns `true` if a row has this option of this command.
pub fn has_row(command: &str, option: &str) -> bool {
    rows().any(|(commands, name, _)| {
        name == option && commands.split('|').any(|other| other == command)
    })
}

/// Returns `true` if a command has all options of its rows.
pub fn exist(command: &str, options: &[String]) -> bool {
    let mut own = rows().filter(|(commands, ..)| commands.split('|').any(|c| c == command));
    own.all(|(_, name, _)| options.iter().any(|option| option == name))
}

#[test]
fn options_of_other_commands_show_their_effect_or_are_refused() {
    let world = World::new();
    let run = |line: &str| {
        let words = shlex::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        acpipe(&world, &words, &[])
    };
    let line = "run greetings --agent demo --session a --record tape";
    assert!(run(line).status.success());
    for dir in ["one", "two"] {
        std::fs::create_dir(world.dir.join(dir)).unwrap();
        let line = format!("run 'in {dir}' --agent demo --session same --cwd {dir}");
        assert!(run(&line).status.success());
    }
    std::fs::write(world.dir.join("c.toml"), "agent = \"demo\"\n").unwrap();
    std::fs::write(world.dir.join("p.toml"), "").unwrap();
    for (_, option, shown) in rows() {
        if let Some(file) = shown.strip_prefix("tested in ") {
            assert_mentioned(option, file);
        } else if let Some(line) = shown.strip_prefix("refused by ") {
            let output = run(line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {said}");
            assert!(said.contains(option), "{line}: {said}");
        } else {
            let prints = shown.strip_prefix("prints ").unwrap();
            let (text, line) = prints.rsplit_once(": ").unwrap();
            let output = run(line);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains(text), "{line}: {said}");
        }
    }
    let added = std::fs::read_to_string(world.dir.join("p.toml")).unwrap();
    assert!(added.contains("prompt = \"Be brief.\""), "{added}");
}
