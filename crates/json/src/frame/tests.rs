//! Tests of the decoders, with input in pieces of every size.

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
            ClientFrame::TooLong(o) => format!("<too long {}>", o.len),
            ClientFrame::BadHeader(h) => format!("<bad {h}>"),
        })
        .collect()
}

#[test]
fn framing_is_detected_from_the_first_bytes() {
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

#[test]
fn byte_order_mark_before_the_first_line_is_skipped() {
    let mark = "\u{feff}";
    for size in [1, 2, 3, 100] {
        let line = format!("{mark}{{}}\n{mark}[]");
        assert_eq!(client(line.as_bytes(), 50, size), ["{}", "\u{feff}[]"]);
        assert_eq!(agent_lines(line.as_bytes(), 50, size)[0], "{}");
        let header = format!("{mark}Content-Length: 2\r\n\r\n{{}}");
        assert_eq!(client(header.as_bytes(), 50, size), ["{}"]);
        // A part of a byte order mark is ordinary data.
        assert_eq!(client(b"\xef\xbb", 50, size), ["\u{fffd}"]);
        assert_eq!(agent_lines(b"\xef\xbb", 50, size), ["\u{fffd}"]);
        assert_eq!(agent_lines(mark.as_bytes(), 50, size), [""; 0]);
    }
}

#[test]
fn invalid_content_length_does_not_swallow_the_next_message() {
    let good = "Content-Length: 2\r\n\r\n{}";
    let cases: &[(&str, &[&str])] = &[
        // Rejected at once; the body is skipped up to the next header.
        (
            "Content-Length: 18446744073709551615\r\n\r\n{\"id\":1}",
            &["<bad Content-Length: 18446744073709551615>"],
        ),
        (
            "Content-Length: 18446744073709551616\r\n\r\n",
            &["<bad Content-Length: 18446744073709551616>"],
        ),
        // A length over the limit with a shorter body.
        ("Content-Length: 4000\r\n\r\n{\"id\":1}", &["<too long 8>"]),
        ("Content-Length: -5\r\n\r\n", &["<bad Content-Length: -5>"]),
        ("Content-Length: +2\r\n\r\n", &["<bad Content-Length: +2>"]),
        (
            "Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
            &["<bad Content-Length: 2\r\nContent-Length: 3>"],
        ),
        ("Content-Length: 2\r\nContent-Length: 2\r\n\r\n[]", &["[]"]),
        ("Content-Length: 0\r\n\r\n", &[""]),
        // Bytes between two messages.
        ("{\"x\":1}\n", &["<bad {\"x\":1}>"]),
        // Both line endings, also mixed.
        ("Content-Length: 2\n\r\n[]", &["[]"]),
        ("Content-Length: 2\r\n\n[]", &["[]"]),
        ("\r\n\n Content-Length :2\nX: y\r\n\r\n[]", &["[]"]),
    ];
    for (before, want) in cases {
        // The first message determines the framing.
        let input = format!("{good}{before}{good}");
        let want = [&["{}"], *want, &["{}"]].concat();
        for size in [1, 2, 3, 7, 1000] {
            let got = client(input.as_bytes(), 1000, size);
            assert_eq!(got, want, "{before:?} {size}");
        }
    }
}

#[test]
fn header_block_without_end_is_reported_once() {
    let good = "Content-Length: 2\r\n\r\n{}";
    for line in ["x", "Content-Length: 5\n", "Content-Length: 5"] {
        let endless = line.repeat(8_000 / line.len());
        for size in [1, 64, 4096, 1 << 20] {
            let got = client(format!("{good}{endless}").as_bytes(), 1000, size);
            assert_eq!(got[0], "{}");
            let bad = got
                .iter()
                .filter(|frame| frame.contains("without an end"))
                .count();
            assert!(
                bad >= 1 && got.len() <= 3 + endless.len() / 17,
                "{line:?} {size}: {}",
                got.len()
            );
        }
    }
}

#[test]
fn head_and_tail_of_an_overlong_message_do_not_depend_on_the_pieces() {
    let body = format!(
        r#"{{"id":7,"params":"{}","method":"m"}}"#,
        "x".repeat(20_000)
    );
    let input = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let lines = format!("{body}\n");
    for size in [1, 100, 4096, 1 << 20] {
        for input in [&input, &lines] {
            let items = feed(ClientFrames::new(100), input.as_bytes(), size);
            let [ClientFrame::TooLong(long)] = &items[..] else {
                panic!("{items:?}")
            };
            assert_eq!(long.len, body.len() as u64);
            assert_eq!(long.head, body.as_bytes()[..SNIFF_HEAD]);
            assert_eq!(long.tail, body.as_bytes()[body.len() - SNIFF_TAIL..]);
            let found = sniff(&long.head, &long.tail);
            assert_eq!(found.id.as_deref(), Some("7"));
            assert_eq!(found.method.as_deref(), Some("m"));
        }
    }
}
