//! A session as one HTML page that loads nothing. Text of users and agents is untrusted: it is escaped, HTML in Markdown
//! is shown as text, and the content security policy allows no script and no resource.

use crate::cli::file_label::{file_facts, file_target};
use crate::cli::sessions::age::exact;
use crate::cli::sessions::conversation::{
    Author, ConversationCall, ConversationEntry, ConversationItem,
};
use acpipe_core::store::Card;
use acpipe_model::printable::printable;
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use std::io::{self, Write};

/// Colours of `acpipe trace`, and the style of the page.
const STYLE: [&str; 2] = [
    include_str!("../../trace/page/palette.css"),
    include_str!("page.css"),
];

/// Beginnings of addresses that become links.
const LINKED: [&str; 3] = ["https://", "http://", "mailto:"];

/// Writes the beginning of the page, up to the messages.
pub fn head(card: &Card, out: &mut dyn Write) -> io::Result<()> {
    let title = escaped(super::title(card));
    let [palette, style] = STYLE;
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"generator\" content=\"acpipe sessions export\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{palette}{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n"
    )?;
    for (name, value) in super::facts(card) {
        writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
    }
    out.write_all(b"</dl>\n<main>\n")
}

/// Writes the end of the page.
pub fn end(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"</main>\n</body>\n</html>\n")
}

/// Writes a message.
pub fn entry(entry: &ConversationEntry, out: &mut dyn Write) -> io::Result<()> {
    let class = if entry.role == Author::User {
        " class=\"user\""
    } else {
        ""
    };
    let author = escaped(super::author(&entry.role));
    write!(out, "<article{class}>\n<h2>{author}")?;
    if let Some(at) = &entry.at {
        let (exact, at) = (escaped(&exact(at)), escaped(at));
        write!(out, " <time datetime=\"{at}\">{exact}</time>")?;
    }
    writeln!(out, "</h2>")?;
    for item in &entry.items {
        write_item(item, &entry.role, out)?;
    }
    writeln!(out, "</article>")
}

fn write_item(item: &ConversationItem, role: &Author, out: &mut dyn Write) -> io::Result<()> {
    match item {
        ConversationItem::Text(text) if *role == Author::Agent => {
            writeln!(out, "{}", rendered(text))
        }
        ConversationItem::Text(text) => writeln!(out, "<p>{}</p>", escaped(text)),
        ConversationItem::Thought(text) => {
            let text = rendered(text);
            writeln!(
                out,
                "<details><summary>Thoughts</summary>\n{text}\n</details>"
            )
        }
        ConversationItem::File(file) => {
            let facts = [Some(file_facts(file)), file_target(file)];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            let facts = escaped(&facts.join(" "));
            writeln!(out, "<p class=\"note\">File: {facts}</p>")
        }
        ConversationItem::Tool(call) => tool(call, out),
        ConversationItem::Plan(entries) => {
            writeln!(out, "<ul class=\"plan\">")?;
            for (progress, text) in entries {
                writeln!(out, "<li>{} {}</li>", progress.mark(), escaped(text))?;
            }
            writeln!(out, "</ul>")
        }
        ConversationItem::Decision(decision) => {
            writeln!(out, "<p class=\"note\">{}</p>", escaped(&decision.reason))
        }
        ConversationItem::Question(question, outcome) => writeln!(
            out,
            "<p>{}<br><span class=\"note\">{}</span></p>",
            escaped(question),
            escaped(outcome)
        ),
        ConversationItem::Note(note) => writeln!(out, "<p class=\"note\">{}</p>", escaped(note)),
        ConversationItem::Error(error) => {
            writeln!(out, "<p class=\"error\">{}</p>", escaped(error))
        }
    }
}

fn tool(call: &ConversationCall, out: &mut dyn Write) -> io::Result<()> {
    let outcome = call.outcome.name();
    let class = outcome.split(' ').next().unwrap_or_default();
    writeln!(
        out,
        "<details><summary><code>{}</code> {} <span class=\"{class}\">{outcome}</span></summary>",
        escaped(&call.name),
        escaped(&call.title)
    )?;
    for (path, line) in &call.locations {
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        writeln!(out, "<p class=\"note\">{}{line}</p>", escaped(path))?;
    }
    if let Some(decision) = &call.decision {
        writeln!(out, "<p class=\"note\">{}</p>", escaped(&decision.reason))?;
    }
    for text in [&call.input, &call.output] {
        if !text.trim().is_empty() {
            writeln!(out, "<pre>{}</pre>", escaped(text.trim_end()))?;
        }
    }
    writeln!(out, "</details>")
}

/// Escapes text for HTML, and makes control characters visible.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Maximum number of blocks and spans around a text.
const MAX_DEPTH: usize = 64;

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns `true` if the HTML of a text stays in proportion to it: a browser has limits for depth, and each row of a table
/// gets the cells that it lacks.
fn is_in_proportion(text: &str) -> bool {
    let (mut depth, mut events) = (0_usize, 0);
    Parser::new_ext(text, options()).all(|event| {
        events += 1;
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        depth <= MAX_DEPTH && events <= 1000 + 2 * text.len()
    })
}

/// Returns Markdown as HTML. HTML in it is shown as text, images are links, and addresses of other schemes are text. A
/// text that would be too deep or too large is shown as it is.
fn rendered(text: &str) -> String {
    let text = printable(text);
    if !is_in_proportion(&text) {
        return format!("<pre>{}</pre>\n", escaped(&text));
    }
    // Open links and images: whether each is linked, and its address.
    let mut links: Vec<(bool, String)> = Vec::new();
    let events = Parser::new_ext(&text, options()).map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Text(text) => Event::Text(printable(&text).into_owned().into()),
        Event::Start(
            Tag::Link {
                dest_url, title, ..
            }
            | Tag::Image {
                dest_url, title, ..
            },
        ) => {
            let begin = dest_url.to_ascii_lowercase();
            let is_linked = LINKED.iter().any(|scheme| begin.starts_with(scheme));
            links.push((is_linked, dest_url.to_string()));
            if is_linked {
                Event::Start(Tag::Link {
                    link_type: LinkType::Inline,
                    dest_url,
                    title,
                    id: CowStr::Borrowed(""),
                })
            } else {
                Event::Text(CowStr::Borrowed(""))
            }
        }
        Event::End(TagEnd::Link | TagEnd::Image) => match links.pop() {
            Some((false, url)) if !url.is_empty() => Event::Text(format!(" ({url})").into()),
            Some((false, _)) => Event::Text(CowStr::Borrowed("")),
            _ => Event::End(TagEnd::Link),
        },
        other => other,
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_harmless_html() {
        let cases = [
            (
                "**a** `<b>`",
                "<p><strong>a</strong> <code>&lt;b&gt;</code></p>\n",
            ),
            (
                "<script>alert(1)</script>",
                "&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            (
                "a <img src=x onerror=y> b",
                "<p>a &lt;img src=x onerror=y&gt; b</p>\n",
            ),
            ("[a](https://x)", "<p><a href=\"https://x\">a</a></p>\n"),
            ("[a](javascript:x)", "<p>a (javascript:x)</p>\n"),
            (
                "![a](https://x/i.png)",
                "<p><a href=\"https://x/i.png\">a</a></p>\n",
            ),
            ("![a](i.png)", "<p>a (i.png)</p>\n"),
            (
                "[a](https://x\"onclick=y)",
                "<p><a href=\"https://x%22onclick=y\">a</a></p>\n",
            ),
            (
                "```\n</pre><b>\n```",
                "<pre><code>&lt;/pre&gt;&lt;b&gt;\n</code></pre>\n",
            ),
            ("&#27;[2J \u{202e}x", "<p>␛[2J &lt;U+202E&gt;x</p>\n"),
        ];
        for (text, want) in cases {
            assert_eq!(rendered(text), want, "{text}");
        }
        let table = format!(
            "{}\n{}\n{}",
            "|a".repeat(999),
            "|-".repeat(999),
            "|a\n".repeat(999)
        );
        for hostile in [
            ">".repeat(2000),
            "- ".repeat(2000),
            "[".repeat(2000) + &"](b)".repeat(2000),
            table,
        ] {
            let html = rendered(&hostile);
            assert!(html.len() < 20 * hostile.len(), "{}", html.len());
            assert!(html.matches("<blockquote>").count() <= MAX_DEPTH, "{html}");
        }
        assert_eq!(
            escaped("<a b='c' d=\"e\">&"),
            "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;"
        );
    }
}
