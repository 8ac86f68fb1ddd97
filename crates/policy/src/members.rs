//! Table of the known members of tool inputs and their roles, by the kind of the tool.
//!
//! A rule that allows by path or command requires that every member is understood. A member with text that is
//! not in the table may name anything and is [`MemberRole::Unknown`].

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRole {
    Path,
    /// Name of a path, usually a directory, to which other paths may be relative.
    Base,
    /// Name of a file if it is a `file:` URI or not a URI.
    Uri,
    /// Directory from which other paths or a command start.
    Directory,
    /// Command line, or program with its arguments.
    Command,
    /// Program or script that runs; not parsed as a line.
    Script,
    Arguments,
    Shell,
    /// Object that contains the actual input.
    Wrapper,
    /// Changes of files by path, as Codex sends them.
    Changes,
    /// Changes of the file beside it; each has its own members.
    Items,
    Patch,
    /// Text that only a change of a file has.
    Edited,
    /// Text that a call changes a file to, if it names one.
    Written,
    /// Search pattern: a glob or an expression.
    Pattern,
    /// Text that names nothing.
    Text,
    /// Text that names nothing, also within a list or an object.
    Tree,
    /// Parsed form of the command beside it.
    Parsed,
    /// Identifier of the agent's own; a path if it does not look like one.
    Label,
    Unknown,
}

/// Kinds of tools with the same members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// `read`, `search`, `think`.
    Read,
    /// `edit`, `delete`, `move`.
    Edit,
    /// `execute`.
    Execute,
    Other,
}

impl Group {
    #[must_use]
    pub fn of(kind: &str) -> Self {
        match kind {
            "read" | "search" | "think" => Self::Read,
            "edit" | "delete" | "move" => Self::Edit,
            "execute" => Self::Execute,
            _ => Self::Other,
        }
    }
}

/// Members of all tools: names in lower case, without `_` and `-`.
const ANY: &[(MemberRole, &[&str])] = &[
    (
        MemberRole::Base,
        &[
            "basepath",
            "dirs",
            "directories",
            "folder",
            "folders",
            "path",
            "paths",
            "root",
            "rootpath",
            "searchpath",
            "targetdirectory",
        ],
    ),
    (
        MemberRole::Path,
        &[
            "abspath",
            "absolutepath",
            "dest",
            "destination",
            "destinationfile",
            "destinationpath",
            "destpath",
            "dst",
            "file",
            "filelist",
            "filename",
            "filenames",
            "filepath",
            "filepaths",
            "files",
            "from",
            "frompath",
            "glob",
            "include",
            "inputfile",
            "inputpath",
            "location",
            "locations",
            "movepath",
            "newfilepath",
            "newpath",
            "notebookpath",
            "oldfilepath",
            "oldpath",
            "out",
            "outfile",
            "output",
            "outputfile",
            "outputpath",
            "relativepath",
            "source",
            "sourcepath",
            "src",
            "srcpath",
            "target",
            "targetfile",
            "targetpath",
            "to",
            "topath",
        ],
    ),
    (
        MemberRole::Uri,
        &[
            "baseuri",
            "documenturi",
            "fileuri",
            "newuri",
            "olduri",
            "uri",
            "uris",
            "url",
            "urls",
        ],
    ),
    (
        MemberRole::Directory,
        &[
            "cwd",
            "workdir",
            "workdirectory",
            "workingdir",
            "workingdirectory",
        ],
    ),
    (MemberRole::Changes, &["changes"]),
    (MemberRole::Items, &["edits"]),
    (
        MemberRole::Patch,
        &["diff", "filediff", "patch", "patchtext", "unifieddiff"],
    ),
    (
        MemberRole::Arguments,
        &[
            "args",
            "arguments",
            "argv",
            "commandargs",
            "parameters",
            "params",
        ],
    ),
    (
        MemberRole::Wrapper,
        &["rawinput", "toolarguments", "toolinput"],
    ),
    (
        MemberRole::Text,
        &[
            "callid",
            "description",
            "encoding",
            "explanation",
            "justification",
            "messageid",
            "outputformat",
            "processid",
            "purpose",
            "rationale",
            "reason",
            "reasoning",
            "requestid",
            "securityrisk",
            "summary",
            "taskprogress",
            "thought",
            "timeout",
            "timeoutms",
            "title",
            "toolcallid",
            "turnid",
        ],
    ),
];

const EXECUTE: &[(MemberRole, &[&str])] = &[
    (MemberRole::Directory, &["dir", "directory", "dirpath"]),
    (MemberRole::Shell, &["shell"]),
    (MemberRole::Label, &["source"]),
    // Codex uses them to propose what to allow from now on, and to show how it parses the command.
    (
        MemberRole::Tree,
        &[
            "availabledecisions",
            "prefixrule",
            "proposedexecpolicyamendment",
        ],
    ),
    (MemberRole::Parsed, &["parsedcmd"]),
    (
        MemberRole::Text,
        &[
            "bashid",
            "filter",
            "mode",
            "sandboxpermissions",
            "sessionid",
            "shellid",
            "taskid",
            "terminalid",
            "yieldtimems",
        ],
    ),
];

/// Members of tools that read, search or plan.
const READ: &[(MemberRole, &[&str])] = &[
    (MemberRole::Script, &["argv", "bash"]),
    (
        MemberRole::Written,
        &["body", "content", "contents", "data"],
    ),
    (MemberRole::Base, &["dir", "directory", "dirpath"]),
    (MemberRole::Pattern, &["globpattern", "pattern", "patterns"]),
    (
        MemberRole::Text,
        &[
            "activeform",
            "exclude",
            "filter",
            "language",
            "linerange",
            "mode",
            "model",
            "outputmode",
            "pages",
            "prompt",
            "q",
            "query",
            "regex",
            "searchterm",
            "subagenttype",
            "subject",
            "symbol",
            "symbolname",
            "type",
            "viewtype",
        ],
    ),
    (
        MemberRole::Tree,
        &[
            "options",
            "plan",
            "queries",
            "questions",
            "tasks",
            "todolist",
            "todos",
        ],
    ),
];

const EDIT: &[(MemberRole, &[&str])] = &[
    (MemberRole::Base, &["dir", "directory", "dirpath"]),
    (
        MemberRole::Text,
        &[
            "cellid",
            "celltype",
            "codeedit",
            "content",
            "contents",
            "editmode",
            "instruction",
            "instructions",
            "language",
            "mode",
            "replace",
            "replacement",
            "search",
            "text",
            "type",
        ],
    ),
];

const OTHER: &[(MemberRole, &[&str])] = &[
    (MemberRole::Base, &["dir", "directory", "dirpath"]),
    (
        MemberRole::Text,
        &[
            "activeform",
            "body",
            "content",
            "header",
            "method",
            "model",
            "prompt",
            "q",
            "query",
        ],
    ),
    (
        MemberRole::Tree,
        &["headers", "options", "plan", "questions", "tasks", "todos"],
    ),
];

/// Members that only tools that change files have.
const EDITED: &[&str] = &[
    "aiproposedcontent",
    "editedcontent",
    "filetext",
    "inserttext",
    "newcontent",
    "newsource",
    "newstr",
    "newstring",
    "newtext",
    "oldcontent",
    "oldsource",
    "oldstr",
    "oldstring",
    "oldtext",
];

/// Members that only tools that run something have.
const SCRIPTS: &[&str] = &[
    "bashcommand",
    "binary",
    "cmdline",
    "commandline",
    "commands",
    "exe",
    "executable",
    "program",
    "script",
    "shellcommand",
];

/// Values of `command` with which text editor tools name their operation: they run nothing.
pub const EDITOR_WORDS: &[&str] = &["create", "insert", "str_replace", "undo_edit", "view"];

impl MemberRole {
    /// Returns `true` if an object with this role has members that are understood.
    #[must_use]
    pub fn holds_members(self) -> bool {
        matches!(
            self,
            Self::Wrapper
                | Self::Arguments
                | Self::Command
                | Self::Path
                | Self::Base
                | Self::Changes
                | Self::Items
                | Self::Tree
                | Self::Parsed
        )
    }

    /// Returns the role below a member that is not understood: names stay names, and no text is considered
    /// harmless.
    #[must_use]
    pub fn below_unknown(self) -> Self {
        match self {
            Self::Text
            | Self::Tree
            | Self::Edited
            | Self::Written
            | Self::Pattern
            | Self::Label
            | Self::Parsed
            | Self::Shell
            | Self::Items => Self::Unknown,
            role => role,
        }
    }

    /// Returns the role of a member; `is_top` is `true` in the input itself and in a wrapper.
    #[must_use]
    pub fn of(key: &str, group: Group, is_top: bool) -> Self {
        let plain = key.replace(['_', '-'], "").to_ascii_lowercase();
        let plain = plain.as_str();
        if matches!(plain, "command" | "cmd") {
            return if is_top { Self::Command } else { Self::Script };
        }
        if SCRIPTS.contains(&plain) {
            return Self::Script;
        }
        if EDITED.contains(&plain) {
            return Self::Edited;
        }
        let own = match group {
            Group::Read => READ,
            Group::Edit => EDIT,
            Group::Execute => EXECUTE,
            Group::Other => OTHER,
        };
        let rows = own.iter().chain(ANY);
        let mut rows = rows.filter(|(_, keys)| keys.contains(&plain));
        match rows.next() {
            Some((Self::Changes | Self::Wrapper, _)) if !is_top => Self::Unknown,
            Some((role, _)) => *role,
            None if plain == "input" && is_top => Self::Wrapper,
            None => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_each_member_once() {
        for rows in [EXECUTE, READ, EDIT, OTHER, ANY] {
            let rows = rows.iter().flat_map(|(_, keys)| keys.iter());
            let mut keys: Vec<_> = rows.chain(EDITED).chain(SCRIPTS).collect();
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), count);
            for key in keys {
                assert!(key.bytes().all(|b| b.is_ascii_lowercase()), "{key}");
            }
        }
    }
}
