//! Random calls of clients.

use super::client::PendingCall;
use super::dice::Dice;
use acpipe_core::client::{Command, History};
use acpipe_protocol::wire::{AgentListParams, AgentParams, DEFAULT_SESSION};
use serde::de::DeserializeOwned;

/// Few sessions, so that calls collide.
const SESSIONS: [&str; 4] = ["a", "b", "c", ""];

/// Agents beside the default one, with the parameters that connect them.
pub const AGENTS: [(&str, &str); 2] = [
    ("alpha", r#""command":"alpha","args":["acp"]"#),
    ("beta", r#""protocol":"claude""#),
];

/// A call, with the facts that checks need.
pub struct Ask {
    pub command: Command,
    pub asked: PendingCall,
    /// Turn that the call may run again.
    pub again: Option<String>,
}

fn params<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"))
}

/// Returns the parameter `"agent":"…",` for one of the agents; mostly empty.
fn agent(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => r#""agent":"default","#.to_owned(),
        n @ 1..=2 => format!(r#""agent":"{}","#, AGENTS[n - 1].0),
        _ => String::new(),
    }
}

/// Returns parameters that name an agent.
fn of_agent(dice: &mut Dice) -> AgentParams {
    params(&format!(r#"{{{}"novel":null}}"#, agent(dice)))
}

/// Connects one of the other agents.
#[must_use]
pub fn connect((name, how): (&str, &str)) -> Command {
    Command::Connect(params(&format!(r#"{{"agent":"{name}",{how}}}"#)))
}

/// Returns any call; `last` is the number of turn ids used so far.
pub fn any(dice: &mut Dice, last: &mut u64) -> Ask {
    let session = dice.pick(&SESSIONS);
    let named = match session {
        "" => String::new(),
        id => format!(r#""sessionId":"{id}","#),
    };
    let with = |more: &str| format!("{{{named}{more}\"novel\":null}}");
    let mut again = None;
    let (what, command) = match dice.below(64) {
        0..=17 => {
            let json = prompt(&named, dice, last, &mut again);
            ("prompt", Command::Prompt(params(&json)))
        }
        18..=23 => {
            let turn = match dice.below(3) {
                0 => format!(r#""turnId":"t{}","#, *last),
                _ => String::new(),
            };
            ("cancel", Command::Cancel(params(&with(&turn))))
        }
        24..=31 => {
            let more = match dice.below(10) {
                0 => r#""strategy":"new","#,
                1 => r#""strategy":["load","resume"],"#,
                2 => r#""cwd":"/w","#,
                3 => r#""options":{"model":"m2","mode":"code"},"#,
                4 => r#""agentSessionId":"s1-1","#,
                5 => r#""agentSessionId":"s1-1","fork":true,"#,
                _ => "",
            };
            let more = format!("{}{more}", agent(dice));
            ("ensure", Command::Ensure(params(&with(&more))))
        }
        38..=40 => match dice.below(3) {
            0 => ("set", Command::SetMode(params(&with(r#""mode":"code","#)))),
            1 => ("set", Command::SetModel(params(&with(r#""model":"m1","#)))),
            _ => (
                "set",
                Command::SetOption(params(&with(r#""option":"o","value":"b","#))),
            ),
        },
        32..=37 | 41..=51 => {
            let (what, asked) = history(dice, &named);
            (what, Command::History(asked))
        }
        52 if dice.percent(50) => {
            let other = dice.pick(&AGENTS);
            ("connect", connect(other))
        }
        52 | 53 => {
            let json = dice.pick(&[
                "{}",
                "{}",
                r#"{"command":"other"}"#,
                r#"{"protocol":"claude"}"#,
                r#"{"command":""}"#,
                r#"{"cwd":"/w"}"#,
            ]);
            ("connect", Command::Connect(params(json)))
        }
        54 => ("disconnect", Command::Disconnect(of_agent(dice))),
        55 | 56 => {
            let json = format!(
                r#"{{{}"set":{{"V":"{}"}},"whenBusy":"{}"}}"#,
                agent(dice),
                dice.below(3),
                dice.pick(&["wait", "reject"])
            );
            ("environment", Command::UpdateEnvironment(params(&json)))
        }
        57 => ("environment", Command::GetEnvironment(of_agent(dice))),
        58 | 59 => {
            let json = format!(r#"{{"sessionId":"{}"}}"#, dice.pick(&["a", "b", "c"]));
            ("create", Command::Create(params(&json)))
        }
        60 if dice.percent(50) => {
            let more = dice.pick(&[
                "",
                r#""retry":false,"#,
                r#""timeoutMs":1500,"#,
                r#""outputSchema":{"type":"object"},"#,
            ]);
            let json = format!(r#"{{{}{more}"message":"once"}}"#, agent(dice));
            ("execute", Command::Execute(params(&json)))
        }
        _ if dice.percent(20) => (
            "agents",
            Command::ListAgents(AgentListParams { built_in: true }),
        ),
        _ => ("status", Command::Status(of_agent(dice))),
    };
    let session = if session.is_empty() {
        DEFAULT_SESSION
    } else {
        session
    };
    let asked = PendingCall {
        what,
        session: session.to_owned(),
    };
    Ask {
        command,
        asked,
        again,
    }
}

fn prompt(named: &str, dice: &mut Dice, last: &mut u64, again: &mut Option<String>) -> String {
    let mut more = String::new();
    match dice.below(8) {
        // A turn id that was used before.
        0 if *last > 0 => {
            let turn = format!("t{}", *last - (dice.below(4) as u64).min(*last - 1));
            let rerun = dice.percent(50);
            more = format!(r#""turnId":"{turn}","rerun":{rerun},"#);
            *again = Some(turn);
        }
        1 | 2 => {}
        _ => {
            *last += 1;
            more = format!(r#""turnId":"t{last}","#);
        }
    }
    match dice.below(100) {
        0..10 => more.push_str(r#""whenBusy":"reject","#),
        70.. => {
            let after = dice.percent(50);
            more = format!(r#"{more}"retry":true,"retryAfterOutput":{after},"#);
        }
        _ => {}
    }
    let message = dice.pick(&[
        r#""do it""#,
        r#""do it""#,
        r#"{"parts":[{"type":"text","text":"a"},{"type":"file","url":"file:///x","mediaType":"text/plain"}]}"#,
        r#"{"parts":[{"type":"file","url":"data:image/png;base64,AA==","mediaType":"image/png"}]}"#,
        r#"{"parts":[{"type":"novel"}]}"#,
        r#"{"id":"mine","role":"user","parts":[{"type":"text","text":""}]}"#,
    ]);
    format!("{{{named}{more}\"message\":{message}}}")
}

/// Returns a call that concerns stored sessions or messages.
fn history(dice: &mut Dice, named: &str) -> (&'static str, History) {
    let with = |more: &str| format!("{{{named}{more}\"novel\":null}}");
    match dice.below(17) {
        0..=3 => ("session/close", History::CloseSession(params(&with("")))),
        4 => ("session/clear", History::ClearSession(params(&with("")))),
        5 => ("message/clear", History::ClearMessages(params(&with("")))),
        6..=8 => {
            let json = format!(r#"{{"agent":{}}}"#, dice.percent(50));
            ("session/list", History::ListSessions(params(&json)))
        }
        9 => ("session/get", History::GetSession(params(&with("")))),
        10 | 11 => {
            let page = with(r#""afterSeq":0,"limit":5,"#);
            ("replay", History::Replay(params(&page)))
        }
        12 | 13 => ("messages", History::ListMessages(params(&with("")))),
        14 => ("last", History::LastMessage(params(&with("")))),
        15 => {
            let message = r#""message":{"id":"ID","role":"user","parts":[]},"#;
            let message = message.replace("ID", &format!("n{}", dice.below(9)));
            ("add", History::AddMessage(params(&with(&message))))
        }
        _ => {
            let message = format!(r#""messageId":"n{}","message":{{"x":1}},"#, dice.below(9));
            ("update", History::UpdateMessage(params(&with(&message))))
        }
    }
}
