//! What is combined: what the agent does, what is stored, what the client wants.

/// Words for the values of a dimension, in order.
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
    /// What the agent does with `session/resume`.
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
    /// What the agent does with `session/load`.
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
    /// What acpipe has of the session.
    Stored {
        History = "the history",
        Session = "the session without messages",
        Nothing = "nothing: adopted by agentSessionId",
    }
}

dimension! {
    /// What the client asks for.
    Wish {
        Auto = "auto",
        Resume = "resume",
        Load = "load",
        New = "new",
        LoadOrNew = "[load, new]",
    }
}

dimension! {
    /// What the agent's `session/list` tells.
    List {
        NotOffered = "not offered",
        Has = "has the id",
        Lacks = "lacks the id",
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub stored: Stored,
    pub wish: Wish,
    pub resume: Resume,
    pub load: Load,
    pub list: List,
    /// A history that the agent lost is archived.
    pub clear: bool,
}

impl Cell {
    /// What the agent repeats when it loads.
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

    /// The stored messages.
    pub fn history(self) -> &'static [&'static str] {
        match self.stored {
            Stored::History => &HISTORY,
            Stored::Session | Stored::Nothing => &[],
        }
    }
}

/// What was said before: the user's messages and the agent's in turn.
pub const HISTORY: [&str; 2] = ["once: question", "once: answer"];
