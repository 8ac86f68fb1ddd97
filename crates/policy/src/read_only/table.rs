//! Programs that only read, with their safe options.
//!
//! A letter is in `valued` only if every implementation takes the rest of the word as its value: for `tree`,
//! `-Po` is `-P -o`. These options are omitted on purpose: `--output` and `-o` of git and sort, `--ext-diff`,
//! `--textconv`, `-O` of git grep, `--pre`, `--hostname-bin` and `-z` of rg, `-exec`, `-ok`, `-delete`,
//! `-fprint` and `-fls` of find, `-o` and `-R` of tree, `-C` of file, a second operand of uniq, `-s` of date,
//! `-l` of diff, `-f` of tail, `--dirty` of git describe (it refreshes the index), `--show-signature` of git
//! (it runs gpg), `-m` of git log (see [`VALUES`]).

#[derive(Debug, Clone, Copy)]
pub enum Operands {
    /// Files, revisions or patterns, which are read.
    Any,
    /// None: the program would create something of that name.
    None,
    /// A format: `+%F`.
    Format,
}

/// Program, or one of its commands.
#[derive(Debug, Clone, Copy)]
pub struct ReadOnlyProgram {
    /// Words with which the command begins.
    pub words: &'static [&'static str],
    /// Letters of options without a value.
    pub short: &'static str,
    /// Letters of options with a value.
    pub valued: &'static str,
    /// Names of options with two dashes, separated by spaces.
    pub long: &'static [&'static str],
    /// Complete words, separated by spaces.
    pub exact: &'static str,
    /// `true` if digits are options: `-5`.
    pub numbers: bool,
    pub operands: Operands,
    /// `true` if the program prints its words, whatever they are.
    pub prints: bool,
}

const fn program(words: &'static [&'static str]) -> ReadOnlyProgram {
    ReadOnlyProgram {
        words,
        short: "",
        valued: "",
        long: &[],
        exact: "",
        numbers: false,
        operands: Operands::Any,
        prints: false,
    }
}

impl ReadOnlyProgram {
    const fn short(mut self, short: &'static str, valued: &'static str) -> Self {
        (self.short, self.valued) = (short, valued);
        self
    }

    const fn long(mut self, long: &'static [&'static str]) -> Self {
        self.long = long;
        self
    }

    const fn exact(mut self, exact: &'static str) -> Self {
        self.exact = exact;
        self
    }

    const fn numbers(mut self) -> Self {
        self.numbers = true;
        self
    }

    const fn alone(mut self) -> Self {
        self.operands = Operands::None;
        self
    }

    const fn format(mut self) -> Self {
        self.operands = Operands::Format;
        self
    }

    const fn prints(mut self) -> Self {
        self.prints = true;
        self
    }
}

/// Options of all git commands that show differences.
pub const DIFF: &str = "abbrev anchored binary cc check color color-moved color-words combined-all-paths compact-summary \
    diff-algorithm diff-filter dirstat dst-prefix exit-code find-copies find-copies-harder find-renames \
    full-index function-context histogram ignore-all-space ignore-blank-lines ignore-space-at-eol \
    ignore-space-change ignore-submodules indent-heuristic inter-hunk-context minimal name-only name-status \
    no-color no-ext-diff no-indent-heuristic no-patch no-prefix no-relative no-renames no-textconv numstat patch \
    patch-with-stat patience pickaxe-all pickaxe-regex quiet raw relative shortstat src-prefix stat stat-width \
    submodule summary text unified word-diff word-diff-regex";

/// Options of all git commands that walk commits.
pub const LOG: &str = "abbrev-commit after all all-match ancestry-path author author-date-order before boundary branches cherry \
    cherry-mark cherry-pick children committer date date-order decorate decorate-refs diff-merges encoding \
    exclude expand-tabs extended-regexp first-parent fixed-strings follow format full-history glob graph grep \
    invert-grep left-right log-size mailmap max-count max-parents merge merges min-parents no-abbrev-commit \
    no-decorate no-expand-tabs no-mailmap no-merges no-notes no-walk not notes oneline parents perl-regexp \
    pretty reflog regexp-ignore-case relative-date remotes reverse show-pulls simplify-by-decoration since skip \
    source tags topo-order until use-mailmap walk-reflogs";

/// Options of all git commands that list names.
pub const REFS: &str = "abbrev color column contains format ignore-case list merged no-abbrev no-color no-column no-contains \
    no-merged points-at sort";

const GREP: &str = "after-context basic-regexp before-context binary-files byte-offset color colour context count \
    dereference-recursive exclude exclude-dir exclude-from extended-regexp file files-with-matches \
    files-without-match fixed-strings ignore-case include initial-tab invert-match label line-buffered \
    line-number line-regexp max-count no-filename no-ignore-case no-messages null null-data only-matching \
    perl-regexp quiet recursive regexp silent text with-filename word-regexp";

const RG: &str = "after-context before-context byte-offset case-sensitive color colors column context context-separator count \
    count-matches crlf encoding engine field-match-separator file files files-with-matches files-without-match \
    fixed-strings follow glob glob-case-insensitive heading hidden iglob ignore-case ignore-file include-zero \
    invert-match json line-number line-regexp max-columns max-columns-preview max-count max-depth max-filesize \
    multiline multiline-dotall no-config no-filename no-heading no-ignore no-ignore-dot no-ignore-global \
    no-ignore-parent no-ignore-vcs no-line-number no-messages no-require-git no-unicode null null-data \
    one-file-system only-matching passthru path-separator pcre2 pretty quiet regexp replace smart-case sort \
    sortr stats text threads trim type type-add type-list type-not unrestricted version vimgrep with-filename \
    word-regexp";

const FIND: &str = "! ( ) , -H -L -P -a -amin -and -anewer -atime -cmin -cnewer -ctime -daystart -depth -empty -executable \
    -false -follow -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname -ls -maxdepth \
    -mindepth -mmin -mount -mtime -name -newer -newermt -nogroup -not -nouser -o -or -path -perm -print -print0 \
    -printf -prune -quit -readable -regex -regextype -samefile -size -true -type -uid -used -user -wholename \
    -writable -xdev -xtype";

/// Values of an option, if not all of them are safe.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these, separated by spaces, in the same word as the option.
    Named(&'static str),
    /// None, or one of these.
    OptionalNamed(&'static str),
    /// None, or a format of commits: one of git's own, or one with placeholders. Another name, also an abbreviation, is
    /// that of a format in the configuration, which may contain `%G?`.
    CommitFormat,
}

/// Options of [`DIFF`] and [`LOG`] for some values of which git runs a program of its configuration: merge drivers for
/// `--diff-merges=remerge`, which `on` and `m` (and the letter `-m`) stand for if `log.diffMerges` says so, and the
/// external diff of a submodule for `--submodule=diff`.
pub const VALUES: &[(&str, Values)] = &[
    (
        "diff-merges",
        Values::Named("off none first-parent 1 separate combined c dense-combined cc"),
    ),
    ("format", Values::CommitFormat),
    ("pretty", Values::CommitFormat),
    ("submodule", Values::OptionalNamed("short log")),
];

/// Formats of commits that git has, none of which verifies signatures.
pub const COMMIT_FORMATS: &str = "oneline short medium full fuller reference email mboxrd raw";

/// Rows of the table; the longest row with which a command begins applies.
pub const PROGRAMS: &[ReadOnlyProgram] = &[
    // Files and directories.
    program(&["ls"])
        .short("1aAbBcCdDfFgGhHiklLmnopqQrRsStuUvxXZ", "")
        .long(&["all almost-all author classify color dereference directory file-type format full-time \
            group-directories-first human-readable indicator-style inode no-group numeric-uid-gid quote-name \
            recursive reverse si size sort time time-style"]),
    program(&["cat"]).short("AbeEnstTuv", "").long(&["number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank"]),
    program(&["head"])
        .short("qvz", "nc")
        .long(&["bytes lines quiet silent verbose"])
        .numbers(),
    program(&["tail"])
        .short("qvz", "nc")
        .long(&["bytes lines quiet silent verbose"])
        .numbers(),
    program(&["wc"]).short("clmwL", "").long(&["bytes chars lines max-line-length words"]),
    program(&["nl"]).short("p", "bnsvwi"),
    program(&["tac"]),
    program(&["rev"]),
    program(&["stat"])
        .short("Ltx", "c")
        .long(&["dereference format printf terse"]),
    program(&["file"]).short("bhikLr", "").long(&["brief dereference keep-going mime mime-encoding mime-type"]),
    program(&["du"]).short("abchHkLmsSx0", "d").long(&["all apparent-size bytes exclude human-readable max-depth one-file-system si summarize total"]),
    program(&["df"]).short("ahHikmPT", "").long(&["human-readable inodes local portability print-type si total"]),
    program(&["tree"])
        .short("aAcCdDfFghiIlLnNpPqQrsStuvx", "")
        .numbers()
        .long(&["dirsfirst du filelimit gitignore ignore-case matchdirs noreport prune si"]),
    program(&["basename"]).short("az", "s"),
    program(&["dirname"]).short("z", ""),
    program(&["realpath"])
        .short("emLPqsz", "")
        .long(&["relative-base relative-to"]),
    program(&["readlink"]).short("efmnqsvz", ""),
    program(&["md5sum"]).short("bct", "").long(&["check"]),
    program(&["sha1sum"]).short("bct", "").long(&["check"]),
    program(&["sha256sum"]).short("bct", "").long(&["check"]),
    program(&["sha512sum"]).short("bct", "").long(&["check"]),
    program(&["shasum"]).short("bct", "a"),
    program(&["find"]).exact(FIND).short("bcGkMw", "").numbers(),
    // Texts.
    program(&["grep"])
        .short("abcEFGhHiIlLnoPqrRsTUvwxyzZ", "ABCemf")
        .long(&[GREP])
        .numbers(),
    program(&["egrep"])
        .short("abcEFGhHiIlLnoPqrRsTUvwxyzZ", "ABCemf")
        .long(&[GREP])
        .numbers(),
    program(&["fgrep"])
        .short("abcEFGhHiIlLnoPqrRsTUvwxyzZ", "ABCemf")
        .long(&[GREP])
        .numbers(),
    program(&["rg"])
        .short("0.abcFhHiIlLnNopPqsSuUvVwx", "ABCdeEfgjmMrtT")
        .long(&[RG]),
    program(&["cut"]).short("nsz", "bcdf").long(&["bytes characters complement delimiter fields only-delimited output-delimiter"]),
    program(&["tr"]).short("cCdst", ""),
    program(&["sort"])
        .short("bcCdfghiMmnrRsuVz", "kt")
        .long(&["check dictionary-order field-separator general-numeric-sort human-numeric-sort ignore-case \
            ignore-leading-blanks key month-sort numeric-sort reverse stable unique version-sort zero-terminated"]),
    program(&["uniq"])
        .short("cdDiuz", "fsw")
        .long(&["all-repeated count ignore-case repeated unique"])
        .alone(),
    program(&["comm"]).short("123z", ""),
    program(&["cmp"]).short("bls", ""),
    program(&["diff"])
        .short("abBcdeEiNpqrstTuwyZ", "CIUWx")
        .long(&["brief color context exclude ignore-all-space ignore-blank-lines ignore-case ignore-space-change \
            label minimal new-file recursive report-identical-files side-by-side suppress-common-lines text \
            unified"]),
    program(&["jq"]).short("aCcejMnRrsS", "").long(&["arg argjson color-output compact-output exit-status indent join-output monochrome-output null-input \
            raw-input raw-output slurp sort-keys tab"]),
    // The system.
    program(&["pwd"]).short("LP", "").alone(),
    program(&["echo"]).prints(),
    program(&["true"]),
    program(&["false"]),
    program(&["which"]).short("as", ""),
    program(&["whoami"]).alone(),
    program(&["id"]).short("gGnruz", ""),
    program(&["uname"]).short("aimnoprsv", "").alone(),
    program(&["nproc"]).long(&["all"]).alone(),
    program(&["date"])
        .short("uR", "")
        .long(&["iso-8601 rfc-3339 rfc-email utc"])
        .format(),
    // git.
    program(&["git", "--version"]).alone(),
    program(&["git", "version"]).alone(),
    program(&["git", "status"]).short("bsvz", "u").long(&["ahead-behind branch column find-renames ignored ignore-submodules long no-ahead-behind no-column \
            no-renames null porcelain renames short show-stash untracked-files verbose"]),
    program(&["git", "log"])
        .short("abcEFgipPqRstuwWz", "BCGLMnSU")
        .long(&[DIFF, LOG])
        .numbers(),
    program(&["git", "show"])
        .short("abcEFgipPqRstuwWz", "BCGLMnSU")
        .long(&[DIFF, LOG])
        .numbers(),
    program(&["git", "diff"])
        .short("abcpqRstuwWz", "BCGMSU")
        .long(&[DIFF, "base cached merge-base ours staged theirs"])
        .numbers(),
    program(&["git", "stash", "list"])
        .short("pq", "n")
        .long(&[DIFF, LOG])
        .numbers(),
    program(&["git", "stash", "show"])
        .short("pu", "U")
        .long(&[DIFF, "include-untracked only-untracked"]),
    program(&["git", "reflog"])
        .short("q", "n")
        .long(&[DIFF, LOG])
        .numbers()
        .alone(),
    program(&["git", "reflog", "show"])
        .short("q", "n")
        .long(&[DIFF, LOG])
        .numbers(),
    program(&["git", "rev-list"])
        .long(&[LOG, "count objects"])
        .short("", "n")
        .numbers(),
    program(&["git", "shortlog"])
        .short("ens", "")
        .long(&[LOG, "email group numbered summary"]),
    program(&["git", "blame"])
        .short("cefnpstw", "LMCS")
        .long(&["abbrev color-by-age color-lines date first-parent ignore-rev incremental line-porcelain porcelain \
            reverse root show-email show-name show-number since"]),
    program(&["git", "grep"])
        .short("acEFGhHiIlLnopPqvwWz", "ABCefm")
        .long(&["after-context all-match and basic-regexp before-context break cached color column context count \
            extended-regexp files-with-matches files-without-match fixed-strings full-name function-context \
            heading ignore-case invert-match line-number max-count max-depth name-only no-color no-recursive not \
            null only-matching or perl-regexp quiet recursive show-function text threads untracked word-regexp"]),
    program(&["git", "ls-files"])
        .short("cdfikmostuvz", "x")
        .long(&["abbrev cached deduplicate deleted directory eol error-unmatch exclude exclude-standard format \
            full-name ignored killed modified no-empty-directory others recurse-submodules stage unmerged \
            with-tree"]),
    program(&["git", "ls-tree"]).short("dlrtz", "").long(&["abbrev format full-name full-tree long name-only name-status object-only"]),
    program(&["git", "cat-file"]).short("epst", ""),
    program(&["git", "rev-parse"]).short("q", "").long(&["abbrev-ref absolute-git-dir all branches default git-common-dir git-dir is-bare-repository \
            is-inside-git-dir is-inside-work-tree quiet remotes revs-only short show-cdup show-prefix \
            show-toplevel symbolic symbolic-full-name tags verify"]),
    program(&["git", "describe"]).long(&["abbrev all always candidates contains exact-match exclude first-parent long match tags"]),
    program(&["git", "merge-base"]).short("a", "").long(&["all fork-point independent is-ancestor octopus"]),
    program(&["git", "name-rev"]).long(&["always name-only refs tags"]),
    program(&["git", "count-objects"])
        .short("vH", "")
        .long(&["human-readable verbose"]),
    program(&["git", "check-ignore"])
        .short("nqvz", "")
        .long(&["no-index non-matching quiet verbose"]),
    program(&["git", "show-ref"]).short("dqs", "").long(&["abbrev branches dereference hash head heads quiet tags verify"]),
    program(&["git", "for-each-ref"]).long(&[REFS, "count exclude"]),
    program(&["git", "branch"])
        .short("airv", "")
        .long(&[REFS, "all remotes show-current verbose"])
        .alone(),
    program(&["git", "tag"])
        .short("il", "n")
        .long(&[REFS])
        .alone(),
    program(&["git", "remote"])
        .short("v", "")
        .long(&["verbose"])
        .alone(),
    program(&["git", "remote", "get-url"]).long(&["all push"]),
    program(&["git", "worktree", "list"])
        .short("vz", "")
        .long(&["porcelain verbose"])
        .alone(),
    program(&["git", "config", "--get"]),
    program(&["git", "config", "--get-all"]),
    program(&["git", "config", "--list"])
        .long(&["global local name-only show-origin show-scope system"])
        .alone(),
    program(&["git", "config", "-l"]).alone(),
];
