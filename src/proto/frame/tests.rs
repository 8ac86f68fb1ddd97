//! Lines and messages out of bytes in any pieces.

use super::*;

/// Feeds `input` in pieces of `size` bytes and collects every item.
fn feed<D: Decoder<Error = io::Error>>(mut d: D, input: &[u8], size: usize) -> Vec<D::Item> {
    let mut buf = BytesMut::new();
    let mut items = Vec::new();
    for piece in input.chunks(size.max(1)) {
        buf.extend_from_slice(piece);
        while let Some(item) = d.decode(&mut buf).unwrap() {
            items.push(item);
        }
    }
    while let Some(item) = d.decode_eof(&mut buf).unwrap() {
        items.push(item);
    }
    items
}

fn agent_lines(input: &[u8], max: usize, size: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for batch in feed(LineBatches::new(max), input, size) {
        match batch {
            Batch::Lines(b) => {
                seen.extend(lines(&b).map(|l| String::from_utf8_lossy(l.text).into_owned()));
            }
            Batch::TooLong(o) => seen.push(format!(
                "<{} {}…{}>",
                o.len,
                String::from_utf8_lossy(&o.head),
                String::from_utf8_lossy(&o.tail)
            )),
        }
    }
    seen
}

#[test]
fn any_chunking_gives_the_same_lines() {
    let input = b"{\"a\":1}\n\r\n\xff\xfe\nlonger than twelve\n{\"b\":2}\r\nlast";
    let whole = agent_lines(input, 12, input.len());
    assert_eq!(
        whole,
        [
            "{\"a\":1}",
            "\r",
            "\u{fffd}\u{fffd}",
            "<18 longer than twelve…longer than twelve>",
            "{\"b\":2}\r",
            "last"
        ]
    );
    for size in 1..input.len() {
        let seen = agent_lines(input, 12, size);
        let lengths = |v: &[String]| {
            v.iter()
                .map(|s| s.split('…').next().unwrap_or("").len().min(4))
                .collect::<Vec<_>>()
        };
        assert_eq!(lengths(&seen), lengths(&whole), "pieces of {size}");
        assert_eq!(seen.len(), whole.len(), "pieces of {size}");
    }
}

#[test]
fn an_overlong_line_keeps_its_ends_and_frees_the_rest() {
    let mut input = b"{\"id\":7,\"result\":\"".to_vec();
    input.resize(100_000, b'x');
    input.extend_from_slice(b"\",\"jsonrpc\":\"2.0\"}\nnext\n");
    let items = feed(LineBatches::new(1000), &input, 777);
    let [Batch::TooLong(long), Batch::Lines(next)] = &items[..] else {
        panic!("{items:?}")
    };
    assert!(long.head.starts_with(b"{\"id\":7,"));
    assert!(long.tail.ends_with(b"\"jsonrpc\":\"2.0\"}"));
    assert_eq!(&next[..], b"next\n");
}

fn client(input: &[u8], max: usize, size: usize) -> Vec<String> {
    feed(ClientFrames::new(max), input, size)
        .into_iter()
        .map(|f| match f {
            ClientFrame::Message(m) => String::from_utf8_lossy(&m).into_owned(),
            ClientFrame::TooLong(n) => format!("<too long {n}>"),
            ClientFrame::BadHeader(h) => format!("<bad {h}>"),
        })
        .collect()
}

#[test]
fn both_framings_are_told_by_the_first_bytes() {
    let lsp =
        b"Content-Length: 2\r\n\r\n{}content-length:3\r\nX: y\r\n\r\n[1]Content-Length: 99\r\n\r\n";
    let mut long = lsp.to_vec();
    long.extend([b'x'; 99]);
    long.extend_from_slice(b"Nope: 1\r\n\r\nContent-Length: 2\r\n\r\n{}");
    for size in [1, 2, 3, 7, 1000] {
        assert_eq!(
            client(&long, 50, size),
            ["{}", "[1]", "<too long 99>", "<bad Nope: 1>", "{}"]
        );
        assert_eq!(
            client(b"\n {\"a\":1}\n\n[2]", 50, size),
            [" {\"a\":1}", "[2]"]
        );
        let mixed = b"Content-Length: 2\n\n{}Content-Length: 2\r\n\r\n[]";
        assert_eq!(client(mixed, 50, size), ["{}", "[]"]);
    }
}

#[test]
fn frames_are_answered_in_kind() {
    let mut out = Vec::new();
    write_framed(&mut out, Framing::ContentLength, |o| {
        o.extend_from_slice(b"{}");
    });
    write_framed(&mut out, Framing::Lines, |o| o.extend_from_slice(b"{}"));
    assert_eq!(out, b"Content-Length: 2\r\n\r\n{}{}\n");
}
