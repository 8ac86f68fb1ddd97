//! The neutral protocol over a WebSocket.

use super::chat::approving_turn;
use super::{Server, token};
use crate::harness::{FAKE_AGENT, chosen_options};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub struct Socket(TcpStream);

impl Socket {
    /// Connects with this token. Returns the head of the response, too.
    pub fn connect(server: &Server, token: &str) -> (Self, String) {
        let mut stream = server.connect();
        let address = server.address;
        let head = format!(
            "GET /rpc HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: acpipe, acpipe.token.{token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (Self(stream), String::from_utf8(head).unwrap())
    }

    fn send(&mut self, opcode: u8, content: &[u8]) {
        let length = u8::try_from(content.len()).unwrap();
        assert!(length < 126);
        let mut frame = vec![0x80 | opcode, 0x80 | length, 0, 0, 0, 0];
        frame.extend(content);
        self.0.write_all(&frame).unwrap();
    }

    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            length => usize::from(length),
        };
        let mut content = vec![0; length];
        self.0.read_exact(&mut content).unwrap();
        (head[0] & 0x0f, content)
    }

    /// Reads messages up to one with this text.
    pub fn read_until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.receive().1).contains(text) {}
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(1, request.to_string().as_bytes());
        loop {
            let (opcode, content) = self.receive();
            assert_eq!(opcode, 1);
            let message: Value = serde_json::from_slice(&content).unwrap();
            if message["id"] == 1 {
                return message;
            }
        }
    }
}

#[test]
fn websocket_carries_one_message_in_each_frame() {
    let server = Server::start(&json!({}));
    let (mut socket, head) = Socket::connect(&server, &server.token);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(
        head.to_lowercase()
            .contains("sec-websocket-protocol: acpipe\r\n"),
        "{head}"
    );
    let answer = socket.call("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(answer["result"]["serverInfo"]["name"], "acpipe");
    socket.send(2, b"{}");
    let (opcode, content) = socket.receive();
    assert_eq!((opcode, &content[..2]), (8, &1003_u16.to_be_bytes()[..]));
    server.daemon.stop();
}

#[test]
fn websocket_of_an_observer_changes_nothing() {
    let server = Server::start(&json!({}));
    let (mut full, _) = Socket::connect(&server, &server.token);
    full.call("initialize", &json!({"protocolVersion": 1}));
    full.call("agent/connect", &json!({}));
    full.call("session/ensure", &json!({"sessionId": "s"}));
    let (mut socket, _) = Socket::connect(&server, &token(&server.daemon, "token.observer"));
    socket.call("initialize", &json!({"protocolVersion": 1}));
    let refused = socket.call("session/ensure", &json!({"sessionId": "s"}));
    assert_eq!(refused["error"]["data"]["kind"], "forbidden");
    let own = json!({"sessionId": "s"});
    for (method, params) in [
        ("agent/connect", json!({})),
        ("agent/register", json!({"agent": "x", "command": "sh"})),
        ("agent/updateEnvironment", json!({"set": {"A": "b"}})),
        ("session/prompt", json!({"sessionId": "s", "message": "x"})),
        ("execute", json!({"message": "x"})),
        ("session/cancel", own.clone()),
        ("session/close", own.clone()),
        ("session/clear", own.clone()),
        ("message/clear", own.clone()),
    ] {
        let refused = socket.call(method, &params);
        assert_eq!(refused["error"]["data"]["kind"], "forbidden", "{method}");
    }
    // Neither way to follow a session makes it a controller.
    socket.call(
        "session/subscribe",
        &json!({"sessionId": "s", "chunks": true}),
    );
    let is_observer = |socket: &mut Socket| {
        let all = socket.call("session/clients", &own)["result"]["clients"].clone();
        let mine = all
            .as_array()
            .unwrap()
            .iter()
            .find(|client| client["isSelf"] == true);
        mine.unwrap()["role"] == "observer"
    };
    assert!(is_observer(&mut socket));
    let controller = json!({"sessionId": "s", "role": "controller"});
    let refused = socket.call("session/attach", &controller);
    assert_eq!(refused["error"]["data"]["kind"], "forbidden", "{refused}");
    socket.call("session/attach", &own);
    assert!(is_observer(&mut socket));
    let (_, head) = Socket::connect(&server, &"0".repeat(64));
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    server.daemon.stop();
}

/// Its permissions are those of the daemon's own settings, also in the session of a client that has others.
#[test]
fn browser_in_a_session_of_others_prompts_under_the_stricter_permissions() {
    for (daemons, opener) in [
        ("deny", "approve"),
        ("approve", "deny"),
        ("approve", "approve"),
    ] {
        let server = Server::with_permissions(daemons, &approving_turn());
        let script = server.daemon.world.script(&approving_turn());
        let options = ["--permissions", opener, "--", FAKE_AGENT, &script];
        let mut first = server.daemon.client(&options);
        first.ensure("c");
        server.chat("u1", "go");
        let (mut socket, _) = Socket::connect(&server, &server.token);
        socket.call("initialize", &json!({"protocolVersion": 1}));
        socket.call("session/prompt", &json!({"sessionId": "c", "message": "x"}));
        let want = if daemons == opener { "yes" } else { "no" };
        let log = server.daemon.world.log();
        assert_eq!(chosen_options(&log), [want, want], "{daemons} {opener}");
        server.daemon.stop();
    }
}
