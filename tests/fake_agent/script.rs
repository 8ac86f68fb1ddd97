//! Script of the fake agent, parsed and validated as a whole before any step runs.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most steps are like most others"
)]

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

#[derive(Default)]
pub(crate) struct Script {
    pub(crate) runs: HashMap<String, Vec<Vec<Step>>>,
    pub(crate) start: Vec<Step>,
    pub(crate) eof: Vec<Step>,
}

pub(crate) enum Step {
    Update(Value),
    Notify {
        method: String,
        params: Option<Value>,
    },
    Ask {
        method: String,
        params: Map<String, Value>,
        id: Option<Value>,
    },
    EchoAnswer,
    Reply(Value),
    Error(Value),
    Default,
    Frame(Value),
    Line(String),
    Partial(String),
    Bytes(Vec<u8>),
    Huge {
        bytes: u64,
        prefix: String,
        suffix: String,
    },
    Wait(String),
    Sleep(Duration),
    Stderr(String),
    Repeat {
        times: u64,
        until: Option<String>,
        steps: Vec<Step>,
    },
    Once {
        mark: String,
        steps: Vec<Step>,
    },
    /// Steps chosen by a text in the parameters of the call.
    If {
        params: String,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    Exit(i32),
    Hang,
    CloseStdout,
    Spawn {
        command: Vec<String>,
        setsid: bool,
    },
    IgnoreTerm,
}

const STEPS: &str = "update, notify, ask, echoAnswer, reply, error, default, frame, line, partial, bytes, huge, wait, \
                     sleep, stderr, repeat, once, if, exit, hang, closeStdout, spawn, ignoreTerm";

impl Script {
    pub(crate) fn load(arg: &str) -> Result<Self, String> {
        let text = if arg.starts_with('{') {
            arg.to_owned()
        } else {
            std::fs::read_to_string(arg).map_err(|e| format!("script {arg}: {e}"))?
        };
        let value: Value =
            serde_json::from_str(&text).map_err(|e| format!("script: not JSON: {e}"))?;
        Self::parse(&value).map_err(|e| format!("script: {e}"))
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let mut script = Self::default();
        for (method, value) in value.as_object().ok_or("not an object")? {
            if method == "start" || method == "eof" {
                let steps = steps(value).map_err(|e| format!("{method}: {e}"))?;
                let odd = find(&steps, &|step| match step {
                    Step::IgnoreTerm if method == "eof" => Some("ignoreTerm"),
                    step => step.needs_call(),
                });
                if let Some(odd) = odd {
                    return Err(format!("{method}: {odd} cannot be used here"));
                }
                *(if method == "start" {
                    &mut script.start
                } else {
                    &mut script.eof
                }) = steps;
                continue;
            }
            let list = value
                .as_array()
                .filter(|l| !l.is_empty())
                .ok_or(format!("{method}: not a list of runs"))?;
            let mut runs = Vec::new();
            for (n, run) in list.iter().enumerate() {
                let steps = steps(run).map_err(|e| format!("{method}: run {}: {e}", n + 1))?;
                if ignores_term(&steps) {
                    return Err(format!(
                        "{method}: run {}: ignoreTerm can only be used in start",
                        n + 1
                    ));
                }
                runs.push(steps);
            }
            script.runs.insert(method.clone(), runs);
        }
        Ok(script)
    }
}

fn steps(value: &Value) -> Result<Vec<Step>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("not a list of steps: {value}"))?;
    let parse = |(n, step)| Step::parse(step).map_err(|e| format!("step {}: {e}", n + 1));
    list.iter().enumerate().map(parse).collect()
}

pub(crate) fn ignores_term(steps: &[Step]) -> bool {
    find(steps, &|step| {
        matches!(step, Step::IgnoreTerm).then_some(())
    })
    .is_some()
}

/// Returns `true` if a run may block. Its call then gets a thread, so that other calls are not delayed.
pub(crate) fn waits(steps: &[Step]) -> bool {
    let waits = |step: &Step| {
        matches!(step, Step::Ask { .. } | Step::Wait(_) | Step::Sleep(_)).then_some(())
    };
    find(steps, &waits).is_some()
}

/// Returns the session id with which a run of `session/new` will answer. Updates before the answer use it.
pub(crate) fn names_session(steps: &[Step]) -> Option<&str> {
    find(steps, &|step| match step {
        Step::Reply(result) => result["sessionId"].as_str().filter(|id| !id.contains('{')),
        _ => None,
    })
}

/// Returns the first match among the steps, nested ones included.
fn find<'s, T>(steps: &'s [Step], look: &dyn Fn(&'s Step) -> Option<T>) -> Option<T> {
    steps.iter().find_map(|step| match step {
        Step::Repeat { steps, .. } | Step::Once { steps, .. } => find(steps, look),
        Step::If {
            then, otherwise, ..
        } => find(then, look).or_else(|| find(otherwise, look)),
        step => look(step),
    })
}

impl Step {
    fn parse(value: &Value) -> Result<Self, String> {
        let entry = value.as_object().filter(|step| step.len() == 1);
        let Some((key, arg)) = entry.and_then(|step| step.iter().next()) else {
            return Err(format!("a step is an object with one key, not {value}"));
        };
        let named = |e: String| format!("{key}: {e}");
        let known = |names: &[&str]| fields(arg, names).map_err(named);
        let flag = |step| {
            if arg == &json!(true) {
                Ok(step)
            } else {
                Err(named("the value is just true".to_owned()))
            }
        };
        Ok(match key.as_str() {
            "update" => Self::Update(arg.clone()),
            "frame" => Self::Frame(arg.clone()),
            "reply" => Self::Reply(arg.clone()),
            "error" => Self::Error(arg.clone()),
            "notify" => {
                known(&["method", "params"])?;
                Self::Notify {
                    method: text(&arg["method"]).map_err(named)?,
                    params: arg.get("params").cloned(),
                }
            }
            "ask" => {
                known(&["method", "params", "id"])?;
                let params = match arg.get("params") {
                    None => Map::new(),
                    Some(params) => params
                        .as_object()
                        .cloned()
                        .ok_or_else(|| named("params: not an object".to_owned()))?,
                };
                Self::Ask {
                    method: text(&arg["method"]).map_err(named)?,
                    params,
                    id: arg.get("id").cloned(),
                }
            }
            "line" => Self::Line(text(arg).map_err(named)?),
            "partial" => Self::Partial(text(arg).map_err(named)?),
            "stderr" => Self::Stderr(text(arg).map_err(named)?),
            "wait" => Self::Wait(text(arg).map_err(named)?),
            "bytes" => {
                let byte = |b: &Value| b.as_u64().and_then(|b| u8::try_from(b).ok());
                let bytes = arg
                    .as_array()
                    .and_then(|list| list.iter().map(byte).collect());
                Self::Bytes(
                    bytes.ok_or_else(|| named("not a list of numbers from 0 to 255".to_owned()))?,
                )
            }
            "huge" => {
                known(&["bytes", "prefix", "suffix"])?;
                let part = |name| arg.get(name).map_or(Ok(String::new()), text).map_err(named);
                Self::Huge {
                    bytes: number(&arg["bytes"]).map_err(named)?,
                    prefix: part("prefix")?,
                    suffix: part("suffix")?,
                }
            }
            "sleep" => Self::Sleep(Duration::from_millis(number(arg).map_err(named)?)),
            "repeat" => {
                known(&["times", "until", "steps"])?;
                Self::Repeat {
                    times: number(&arg["times"]).map_err(named)?,
                    until: arg.get("until").map(text).transpose().map_err(named)?,
                    steps: steps(&arg["steps"]).map_err(named)?,
                }
            }
            "once" => {
                known(&["mark", "steps"])?;
                Self::Once {
                    mark: text(&arg["mark"]).map_err(named)?,
                    steps: steps(&arg["steps"]).map_err(named)?,
                }
            }
            "if" => {
                known(&["params", "then", "else"])?;
                let branch = |name| arg.get(name).map_or(Ok(Vec::new()), steps).map_err(named);
                Self::If {
                    params: text(&arg["params"]).map_err(named)?,
                    then: branch("then")?,
                    otherwise: branch("else")?,
                }
            }
            "exit" => {
                let code = arg.as_i64().and_then(|code| i32::try_from(code).ok());
                Self::Exit(code.ok_or_else(|| named(format!("not an exit code: {arg}")))?)
            }
            "spawn" => Self::parse_spawn(arg).map_err(named)?,
            "echoAnswer" => flag(Self::EchoAnswer)?,
            "default" => flag(Self::Default)?,
            "hang" => flag(Self::Hang)?,
            "closeStdout" => flag(Self::CloseStdout)?,
            "ignoreTerm" => flag(Self::IgnoreTerm)?,
            _ => return Err(format!("unknown step \"{key}\" (known: {STEPS})")),
        })
    }

    fn parse_spawn(arg: &Value) -> Result<Self, String> {
        fields(arg, &["command", "setsid"])?;
        let words = arg["command"].as_array().filter(|words| !words.is_empty());
        let words = words.ok_or("command: not a list of words")?;
        let setsid = match arg.get("setsid") {
            None => false,
            Some(setsid) => setsid.as_bool().ok_or("setsid: not true or false")?,
        };
        Ok(Self::Spawn {
            command: words.iter().map(text).collect::<Result<_, _>>()?,
            setsid,
        })
    }

    /// Returns the name of a step that answers or awaits something, which `start` and `eof` cannot do.
    fn needs_call(&self) -> Option<&'static str> {
        match self {
            Self::Ask { .. } => Some("ask"),
            Self::EchoAnswer => Some("echoAnswer"),
            Self::Reply(_) => Some("reply"),
            Self::Error(_) => Some("error"),
            Self::Default => Some("default"),
            Self::Wait(_) => Some("wait"),
            Self::Repeat { until: Some(_), .. } => Some("until"),
            Self::If { .. } => Some("if"),
            _ => None,
        }
    }
}

fn text(value: &Value) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("not a text: {value}"))
}

fn number(value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("not a number: {value}"))
}

fn fields(value: &Value, known: &[&str]) -> Result<(), String> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("not an object: {value}"))?;
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "unknown field \"{key}\" (known: {})",
            known.join(", ")
        )),
        None => Ok(()),
    }
}
