//! Dimensions of the matrix: the agent's behaviour, the stored session, and the client's request.

/// Defines an enum for the values of a dimension, in order, with the text of each.
macro_rules! dimension {
    ($(#[doc = $doc:literal])* $name:ident { $($value:ident = $words:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($value,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            pub fn words(self) -> &'static str {
                match self { $(Self::$value => $words,)* }
            }
        }
    };
}

dimension! {
    /// The agent's response to `session/resume`.
    Resume {
        NotOffered = "not offered",
        Ok = "ok",
        Replays = "replays all the same",
        Lies = "lies: the prompt finds no session",
        Refused = "refused (-32002)",
        Fails = "internal error (-32603)",
        AnotherId = "another id in _meta",
        Hangs = "hangs",
        Auth = "auth required",
    }
}

dimension! {
    /// The agent's response to `session/load`.
    Load {
        NotOffered = "not offered",
        Ok = "ok",
        Late = "replays after its answer",
        WentOn = "ok, went on elsewhere",
        Differs = "ok, another history",
        Empty = "replays nothing",
        Refused = "refused (-32002)",
        AnotherId = "another id in _meta",
        Hangs = "hangs",
        Auth = "auth required",
    }
}

dimension! {
    /// State of the session in the store.
    Stored {
        History = "the history",
        Session = "the session without messages",
        Nothing = "nothing: adopted by agentSessionId",
    }
}

dimension! {
    /// The strategy that the client requests.
    RequestedStrategy {
        Auto = "auto",
        Resume = "resume",
        Load = "load",
        New = "new",
        LoadOrNew = "[load, new]",
    }
}

dimension! {
    /// The agent's response to `session/list`.
    List {
        NotOffered = "not offered",
        Has = "has the id",
        Lacks = "lacks the id",
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub stored: Stored,
    pub wish: RequestedStrategy,
    pub resume: Resume,
    pub load: Load,
    pub list: List,
    /// Whether a history that the agent has lost is archived.
    pub clear: bool,
}

impl Cell {
    /// Returns the texts that the agent replays on `session/load`.
    pub fn replayed(self) -> &'static [&'static str] {
        match self.load {
            Load::Ok | Load::Late => &HISTORY,
            Load::WentOn => &[
                "once: question",
                "once: answer",
                "once: more?",
                "once: more",
            ],
            Load::Differs => &["once: another question", "once: answer", "once: more?"],
            _ => &[],
        }
    }

    /// Returns the texts of the stored messages.
    pub fn history(self) -> &'static [&'static str] {
        match self.stored {
            Stored::History => &HISTORY,
            Stored::Session | Stored::Nothing => &[],
        }
    }
}

/// Texts of the earlier turn: messages of the user and of the agent alternate.
pub const HISTORY: [&str; 2] = ["once: question", "once: answer"];
