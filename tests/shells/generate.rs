//! Generates random lines, most of them in the common grammar of all shells or close to it.

pub struct Dice(u64);

const NAMES: &[&str] = &["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "evil", "x"];
const SEPARATORS: &[&str] = &[
    ";", " ; ", "\n", "\n\n", " && ", "&&", " || ", "||", " | ", "|", " & ", " &&\n", " |\n\t",
    "& ", ";\n", " \\\n&& ",
];
const REDIRECTIONS: &[&str] = &[
    "2>&1",
    "1>&2",
    ">&2",
    ">/dev/null",
    "> /dev/null",
    "2>/dev/null",
    "2> /dev/null",
    ">>/dev/null",
    "</dev/null",
    "1>/dev/null",
    "0</dev/null",
    "2>>/dev/null",
];
const BARE: &[&str] = &[
    "a",
    "b1",
    "-x",
    "--long=v",
    "src/a.rs",
    "./b*",
    "c?d",
    "k=v",
    "~",
    "~/d",
    "HEAD~2",
    "HEAD^",
    "a#b",
    "x@y",
    "1",
    "2",
    "10",
    "%s",
    "+x",
    "a:b",
    "a,b",
    "evil",
    "touch",
    "if",
    "done",
    "in",
    "do",
    "time",
    "-",
    "--",
    "..",
    "/",
    "http://h/p#q",
    "A=evil",
    "a=~",
    "end",
    "then",
    "\\;",
    "\\&",
    "\\ ",
    "a\\ b",
    "\\\"",
    "\\'",
    "\\\\",
    "\\$x",
    "\\#",
    "\\*",
    "\\~",
    "\\!",
    "\\`evil\\`",
    "\\(",
    "\\=x",
    "\\{\\}",
];
const INNER: &[&str] = &[
    "a", "b", " ", "  ", ";", "&", "|", "(", ")", "{", "}", "<", ">", "#", "*", "?", "[", "]", "~",
    "=", "^", "%", "@", ",", ":", "/", ".", "-", "+", "_", "\n", "\t", "é", "日", "🙂", "evil",
    "; evil", "& evil", "| evil", "0", "$(evil)", "`evil`", "${x}", "$x", "!", "!!", "\\", "\\\\",
    "\\n", "%s", "\"", "'", "$", ">made", "\u{a0}", "\u{85}",
];

/// Strings that mutations insert into a line.
const HOSTILE: &[&str] = &[
    " ",
    "\t",
    "\n",
    "\r",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "|&",
    "&>",
    "&|",
    "&!",
    ";;",
    ";&",
    ";|",
    ">",
    ">>",
    ">|",
    ">!",
    "<",
    "<<",
    "<<<",
    "<<-",
    "<>",
    ">&",
    "<&",
    ">&-",
    ">&1-",
    "2>&1-",
    ">&p",
    "3>",
    "{fd}>",
    "&>>",
    "evil",
    " evil ",
    ";evil",
    "\nevil",
    "touch made",
    ">made",
    ">/dev/nullx",
    ">/dev/null/../x",
    "{",
    "}",
    "{}",
    "{evil,a}",
    "a}\n",
    "(",
    ")",
    "((",
    "))",
    "()",
    "[[",
    "]]",
    "[",
    "]",
    "[!a]",
    "$",
    "$(evil)",
    "`evil`",
    "`",
    "${x}",
    "${x:-`evil`}",
    "${",
    "$x",
    "$'",
    "$\"",
    "$[1]",
    "$((1))",
    "'",
    "\"",
    "''",
    "\"\"",
    "\\",
    "\\\n",
    "#",
    " #",
    "~",
    "~+",
    "=",
    " =evil",
    "!",
    " ! ",
    "^",
    "%",
    "*",
    "**",
    "?",
    "@(",
    "+(evil)",
    "*(e:evil:)",
    "é",
    "\u{a0}",
    "\u{3000}",
    "\u{85}",
    "0",
    "1",
    "2",
    "-",
    "--",
    " if ",
    " then ",
    " fi",
    "for ",
    " do ",
    " done",
    "case ",
    " esac",
    " in ",
    "function ",
    "coproc ",
    "time ",
    "eval ",
    "exec ",
    "a=b ",
    "a[1]=2 ",
    "A[$(evil)]=1 ",
    "echo ",
    "cd ",
    ": ",
    ". ",
    "printf ",
    "test ",
    "alias ok=evil\n",
    "<(evil)",
    ">(evil)",
    "=(evil)",
    "a{b,c}",
    "!!",
    "!$",
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{7f}",
    "\u{feff}",
    "noglob ",
    "repeat 2 ",
    "nocorrect ",
    "- ",
    "command ",
    "builtin ",
    "select ",
    "always ",
    "<1-5>",
    "|;",
    "& ;",
    "\\\r\n",
    "\u{0b}",
    "\u{0c}",
    "\u{1c}",
    "ok",
    " ok ",
    "ok()",
    "\nok\n",
    "EOF",
    "<<EOF\n",
    "\nEOF\n",
];

impl Dice {
    pub fn new(seed: usize) -> Self {
        Self(u64::try_from(seed).unwrap())
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n).unwrap()).unwrap()
    }

    fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    fn joined(&mut self, of: &[&'static str], most: usize) -> String {
        (0..self.below(most + 1)).map(|_| self.pick(of)).collect()
    }

    /// Returns any text without control characters.
    pub fn text(&mut self) -> String {
        self.joined(INNER, 5).replace('\u{85}', "")
    }
}

/// Returns a word of a command, quoted in some way.
fn word(dice: &mut Dice) -> String {
    let mut word = String::new();
    for _ in 0..=dice.below(3) / 2 {
        match dice.below(6) {
            0..=2 => word += dice.pick(BARE),
            3 => word.extend(["'", &dice.joined(INNER, 5).replace('\'', ""), "'"]),
            4 => {
                let inner = dice.joined(INNER, 5);
                let inner = inner
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace('$', "\\$");
                let inner = inner.replace('`', "\\`").replace('!', "");
                word.extend(["\"", &inner, "\""]);
            }
            _ => {
                let inner = dice.joined(INNER, 3).replace(['"', '$', '`', '!'], "");
                word.extend(["\"", &inner, "\""]);
            }
        }
    }
    word
}

fn command(dice: &mut Dice) -> String {
    let mut line = dice.pick(NAMES).to_owned();
    for _ in 0..dice.below(4) {
        line += dice.pick(&[" ", " ", " ", "  ", "\t", " \\\n"]);
        line += &if dice.below(8) == 0 {
            dice.pick(REDIRECTIONS).to_owned()
        } else {
            word(dice)
        };
    }
    line
}

/// Returns a line, which in most cases follows the grammar.
pub fn line(dice: &mut Dice) -> String {
    let mut line = command(dice);
    for _ in 0..dice.below(3) {
        line += dice.pick(SEPARATORS);
        line += &command(dice);
    }
    match dice.below(4) {
        0 => line + dice.pick(&[";", " &", "\n", " ", "\t\n", " ;\n"]),
        1 | 2 => changed(dice, &line, 1),
        _ => changed(dice, &line, 3),
    }
}

/// Returns a mutated line of the corpus.
pub fn mutated(dice: &mut Dice, corpus: &[String]) -> String {
    let at = dice.below(corpus.len());
    changed(dice, &corpus[at], 3)
}

/// Returns the line with at most so many changes.
fn changed(dice: &mut Dice, line: &str, most: usize) -> String {
    let mut chars: Vec<char> = line.chars().collect();
    for _ in 0..dice.below(most + 1) {
        let at = dice.below(chars.len() + 1);
        match dice.below(5) {
            0 if at < chars.len() => {
                chars.remove(at);
            }
            1 if at < chars.len() => {
                let end = (at + 1 + dice.below(6)).min(chars.len());
                let part: Vec<char> = chars[at..end].to_vec();
                let to = dice.below(chars.len() + 1);
                chars.splice(to..to, part);
            }
            _ => {
                let part = dice.pick(HOSTILE).chars();
                chars.splice(at..at, part);
            }
        }
    }
    chars.into_iter().collect()
}
