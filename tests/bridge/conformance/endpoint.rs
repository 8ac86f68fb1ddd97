//! HTTP endpoint that understands the words of the list.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Form of the events of a protocol.
#[derive(Clone)]
struct Form {
    word: fn(&Value) -> Option<String>,
    begin: Vec<Value>,
    piece: fn(&str) -> Value,
    end: Vec<Value>,
}

/// Starts an endpoint and returns its address. `word` finds the word in a request; `begin`, `piece` and `end` are
/// the events around and for the text.
pub fn start(
    word: fn(&Value) -> Option<String>,
    begin: Vec<Value>,
    piece: fn(&str) -> Value,
    end: Vec<Value>,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let form = Form {
        word,
        begin,
        piece,
        end,
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let form = form.clone();
            // A client that leaves early ends its connection alone.
            thread::spawn(move || serve(&stream, &form));
        }
    });
    format!("http://{address}/v1")
}

/// Answers the request of a connection.
fn serve(mut stream: &TcpStream, form: &Form) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body)?;
    let word = (form.word)(&body).unwrap_or_default();
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )?;
    let mut send = |events: &[Value]| {
        events
            .iter()
            .try_for_each(|event| write!(stream, "data: {event}\n\n"))
    };
    send(&form.begin)?;
    let pieces: &[&str] = match word.as_str() {
        "count" => &["1 ", "2 ", "3"],
        "hang" | "crash" => &["half"],
        _ => &["hi"],
    };
    for piece in pieces {
        send(&[(form.piece)(piece)])?;
    }
    match word.as_str() {
        // Ends when the client closes the connection.
        "hang" => drop(reader.read_to_end(&mut Vec::new())),
        // Half an event, then the end.
        "crash" => stream.write_all(b"data: {\"ty")?,
        _ => {
            send(&form.end)?;
            stream.write_all(b"data: [DONE]\n\n")?;
            // The client reads to the end before the connection is reset.
            stream.shutdown(std::net::Shutdown::Write)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            drop(reader.read_to_end(&mut Vec::new()));
        }
    }
    Ok(())
}
