//! Random messages on the wire, by class: nesting, wrong headers, ids, invalid bytes. `CASES=1000000` runs
//! more of each; a failure names its case.

use acpipe_json::frame::{ClientFrame, ClientFrames, sniff};
use acpipe_json::rpc::Message;
use acpipe_json::{DEEPEST, MARK, is_deeper, rpc, shallow};
use bytes::BytesMut;
use serde_json::Value;
use std::env;
use tokio_util::codec::Decoder as _;

/// Default number of cases of each class.
const CASES: u64 = 2_000;

/// Pseudorandom numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

fn each_case(mut check: impl FnMut(&mut Random)) {
    let cases = env::var("CASES").ok().and_then(|cases| cases.parse().ok());
    for case in 0..cases.unwrap_or(CASES) {
        let mut random = Random(case.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mut random)));
        assert!(done.is_ok(), "case {case}");
    }
}

/// Returns a scalar that a reader may misread.
fn scalar(random: &mut Random) -> &'static str {
    random.one_of(&[
        "1",
        "null",
        "\"\"",
        r#""[{\"""#,
        r#""\\""#,
        r#""\ud800""#,
        r#""\u0000""#,
        "1e999",
        "\"é🙂\"",
        r#""]}""#,
        "true",
        "-0.0",
    ])
}

/// Returns a JSON text of so many levels, with siblings and white space at some of them.
fn nested(levels: usize, random: &mut Random) -> String {
    let (mut before, mut after) = (String::new(), Vec::new());
    for _ in 0..levels {
        if random.below(2) == 0 {
            before += random.one_of(&["[", "[ ", "[\t[],", "[\"[\","]);
            after.push(random.one_of(&["]", " ]", ",{}]", ",[[]]]"]));
        } else {
            before += random.one_of(&["{\"a\":", "{ \"\\ud800\" : ", "{\"b\":[1],\"{\":"]);
            after.push(random.one_of(&["}", ",\"z\":\"}\"}", " }"]));
        }
    }
    before += scalar(random);
    before.extend(after.into_iter().rev());
    before
}

/// Restores the marked strings of a flattened text.
fn restored(json: &str) -> String {
    let mut whole = String::new();
    let mut rest = json;
    let begin = format!("\"{MARK}");
    while let Some(at) = rest.find(&begin) {
        whole += &rest[..at];
        let mut strings = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<String>();
        let text = strings.next().unwrap().unwrap();
        whole += text.strip_prefix(MARK).unwrap();
        rest = &rest[at + strings.byte_offset()..];
    }
    whole + rest
}

#[test]
fn deep_json_is_flattened_and_can_be_restored() {
    each_case(|random| {
        let levels = match random.below(8) {
            0 => 1_000 + random.below(5_000),
            _ => random.below(300),
        };
        let json = nested(levels, random);
        let flat = shallow(&json);
        assert!(!is_deeper(flat.as_bytes(), DEEPEST));
        let _: &serde_json::value::RawValue = serde_json::from_str(&flat).unwrap();
        // White space that becomes a string is written as a space.
        assert_eq!(restored(&flat).replace('\t', " "), json.replace('\t', " "));
    });
}

/// Returns the frames of bytes that arrive in pieces of this size.
fn frames(input: &[u8], max: usize, size: usize) -> Vec<ClientFrame> {
    let (mut decoder, mut buffer, mut frames) =
        (ClientFrames::new(max), BytesMut::new(), Vec::new());
    for piece in input.chunks(size) {
        buffer.extend_from_slice(piece);
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
    }
    while let Some(frame) = decoder.decode_eof(&mut buffer).unwrap() {
        frames.push(frame);
    }
    frames
}

#[test]
fn wrong_content_length_never_swallows_a_valid_message() {
    each_case(|random| {
        let (mut input, mut good) = (Vec::new(), Vec::new());
        if random.below(4) == 0 {
            input.extend_from_slice("\u{feff}".as_bytes());
        }
        for n in 0..=random.below(6) {
            let body = format!("{{\"id\":{n},\"x\":{}}}", scalar(random));
            let ends = random.one_of(&["\r\n\r\n", "\n\n", "\n\r\n", "\r\n\n", "\r\nX: y\n\r\n"]);
            let name = random.one_of(&["Content-Length: ", "content-length:", "CONTENT-LENGTH : "]);
            input.extend_from_slice(format!("{name}{}{ends}{body}", body.len()).as_bytes());
            good.push(body);
            let lie = match random.below(9) {
                0 => "Content-Length: 18446744073709551615\r\n\r\n{\"lie\":1}".to_owned(),
                1 => format!(
                    "Content-Length: {}\r\n\r\n{{\"lie\":1}}",
                    600 + random.below(1 << 30)
                ),
                2 => format!("Content-Length: -{}\r\n\r\n", random.below(100)),
                3 => "Content-Length: 3\r\nContent-Length: 4\r\n\r\n".to_owned(),
                4 => "Content-Length: 99999999999999999999999999\n\n".to_owned(),
                5 => "Content-Length: 1e3\r\n\r\n[1]\r\n".to_owned(),
                6 => "X: y\r\n\r\n".to_owned(),
                7 => format!("{{\"{}\":1}}\n", "x".repeat(random.below(300))),
                _ => String::new(),
            };
            input.extend_from_slice(lie.as_bytes());
        }
        let whole = frames(&input, 500, input.len());
        for size in [1, 2 + random.below(100)] {
            assert_eq!(
                frames(&input, 500, size),
                whole,
                "{:?}",
                String::from_utf8_lossy(&input)
            );
        }
        let said = whole.iter().filter_map(|frame| match frame {
            ClientFrame::Message(bytes) => Some(bytes.as_ref()),
            _ => None,
        });
        let mut said = said.peekable();
        for body in &good {
            assert!(
                said.by_ref().any(|m| m == body.as_bytes()),
                "{body}: {}",
                String::from_utf8_lossy(&input)
            );
        }
    });
}

#[test]
fn id_of_a_request_is_never_lost() {
    each_case(|random| {
        let id = random.one_of(&[
            "7",
            "\"a\\\"}\"",
            "\"\\ud800\"",
            "-1.5e3",
            "\"\\u0000\"",
            "99999999999999999999",
            "\"é\"",
        ]);
        let mut members = vec![format!("\"id\" : {id}"), "\"method\":\"m\"".to_owned()];
        for _ in 0..random.below(5) {
            let key = random.one_of(&[
                "\\ud800",
                "x\\udfff",
                "\\u0000",
                "",
                "i\\u0064x",
                "\u{feff}",
                "id ",
                "\\\"id\\\"",
            ]);
            let value = match random.below(3) {
                0 => format!("{{\"id\":5,\"\\ud800\":{}}}", scalar(random)),
                1 => nested(random.below(300), random),
                _ => scalar(random).to_owned(),
            };
            members.insert(
                random.below(members.len() + 1),
                format!("\"{key}\":{value}"),
            );
        }
        let line = format!("{{{}}}", members.join(random.one_of(&[",", " , ", ",\t"])));
        for text in [line.as_str(), &shallow(&line)] {
            match rpc::parse(text) {
                Ok(Message::Request { id: read, .. }) => assert_eq!(read.get(), id, "{text}"),
                other => panic!("{other:?}: {text}"),
            }
        }
        // Over the cap: the parameters are huge, and the id comes before or after them.
        let params = format!(
            "\"params\":{{\"id\":3,\"text\":\"{}\"}}",
            "x, \\\"id\\\":4}".repeat(800)
        );
        let own = [
            format!("\"id\":{id}"),
            "\"method\":\"m\"".to_owned(),
            "\"jsonrpc\":\"2.0\"".to_owned(),
        ];
        let mut members = own.to_vec();
        members.insert(random.below(4), params);
        let line = format!("{{{}}}\n", members.join(","));
        for size in [1 + random.below(5_000), line.len()] {
            let [ClientFrame::TooLong(long)] = &frames(line.as_bytes(), 1_000, size)[..] else {
                panic!("{line}");
            };
            let found = sniff(&long.head, &long.tail);
            assert_eq!(found.id.as_deref(), Some(id), "{line}");
            assert_eq!(found.method.as_deref(), Some("m"), "{line}");
        }
    });
}

#[test]
fn invalid_bytes_in_a_line_do_not_affect_its_neighbours() {
    each_case(|random| {
        let mut input = Vec::new();
        if random.below(3) == 0 {
            input.extend_from_slice("\u{feff}".as_bytes());
        }
        let mut good = Vec::new();
        for n in 0..=random.below(8) {
            let line = format!("{{\"id\":{n}}}");
            input.extend_from_slice(line.as_bytes());
            good.push(line);
            input.extend_from_slice(
                random
                    .one_of(&["\n", "\r\n", "\n\n", " \r\n\r\n"])
                    .as_bytes(),
            );
            let odd: &[u8] = [
                &b"\xff\xfe"[..],
                b"{\"a\":\"\xc3\"}",
                b"\0",
                b"{\"a\":\"\x00\"}",
                "\u{feff}".as_bytes(),
                b"\xed\xa0\x80",
                b"",
            ][random.below(7)];
            input.extend_from_slice(odd);
            input.push(b'\n');
        }
        let whole = frames(&input, 500, input.len());
        assert_eq!(frames(&input, 500, 1 + random.below(40)), whole);
        let mut said = whole.iter().filter_map(|frame| match frame {
            ClientFrame::Message(bytes) => serde_json::from_slice::<Value>(bytes).ok(),
            _ => None,
        });
        for line in good {
            let want: Value = serde_json::from_str(&line).unwrap();
            assert!(
                said.any(|value| value == want),
                "{line}: {:?}",
                String::from_utf8_lossy(&input)
            );
        }
    });
}
