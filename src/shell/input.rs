//! The client's stdin, on a thread of its own: the descriptor stays as the client made it.

use crate::proto::frame::{ClientFrame, ClientFrames, Framing, give_back};
use bytes::BytesMut;
use std::io::Read;
use tokio::sync::mpsc;
use tokio_util::codec::Decoder;

/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// How many messages may wait for the loop before the client is slowed.
const QUEUE: usize = 64;

/// What comes from the client.
#[derive(Debug)]
pub enum ClientInput {
    /// A message, and how it was framed.
    Frame(Framing, ClientFrame),
    /// What was typed at the terminal in answer to the question of this number; `None` for its end (Ctrl-D).
    Typed(u64, Option<Vec<u8>>),
    /// Nothing more will come.
    End,
}

/// Reads stdin to its end.
///
/// # Errors
/// The thread could not be made.
pub fn read_stdin(max_message: usize) -> std::io::Result<mpsc::Receiver<ClientInput>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            pump(std::io::stdin().lock(), max_message, &sender);
            // The loop is gone only when nobody cares any more.
            let _ = sender.blocking_send(ClientInput::End);
        })?;
    Ok(receiver)
}

fn pump(mut stdin: impl Read, max_message: usize, sender: &mpsc::Sender<ClientInput>) {
    let mut frames = ClientFrames::new(max_message);
    let mut buffer = BytesMut::new();
    let mut piece = vec![0; READ_SIZE];
    loop {
        let n = match stdin.read(&mut piece) {
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        buffer.extend_from_slice(&piece[..n]);
        loop {
            let before = buffer.len();
            let frame = if n == 0 {
                frames.decode_eof(&mut buffer)
            } else {
                frames.decode(&mut buffer)
            };
            give_back(&mut buffer, before);
            let Ok(Some(frame)) = frame else { break };
            let input = ClientInput::Frame(frames.framing(), frame);
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
        if n == 0 {
            return;
        }
    }
}
