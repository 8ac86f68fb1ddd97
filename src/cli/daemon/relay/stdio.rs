//! The pipes of a relayed client: a thread reads stdin, another one writes stdout.

use acpipe_host::StdoutWriter;
use acpipe_json::frame::{ClientFrame, ClientFrames, Framing};
use anyhow::Context as _;
use bytes::BytesMut;
use std::io::{self, ErrorKind, Read as _, Write as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::Decoder as _;

/// Size of a read in bytes.
const READ_SIZE: usize = 64 * 1024;

/// Number of messages or pieces of output that wait for the other side.
const QUEUED: usize = 16;

/// Stdin and stdout of the client.
pub struct ClientPipes {
    /// `None` after the end of stdin.
    input: Option<mpsc::Receiver<(Framing, ClientFrame)>>,
    output: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<io::Result<()>>,
}

pub enum ClientPipesEvent {
    Frame(Framing, ClientFrame),
    /// The end of stdin.
    Ended,
    /// The output was handed over.
    Written,
    /// Stdout cannot be written any more.
    Closed(io::Error),
}

impl ClientPipes {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(longest_message: usize) -> anyhow::Result<Self> {
        let (to_loop, input) = mpsc::channel(QUEUED);
        let (output, to_write) = mpsc::channel(QUEUED);
        let (ended, written) = oneshot::channel();
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("stdin")
            .spawn(move || read_stdin(ClientFrames::new(longest_message), &to_loop))
            .context("cannot start a thread")?;
        thread("stdout")
            .spawn(move || {
                // The loop may have ended.
                let _ = ended.send(write_stdout(to_write));
            })
            .context("cannot start a thread")?;
        Ok(Self {
            input: Some(input),
            output,
            written,
        })
    }

    /// Returns `true` after the end of stdin.
    pub fn is_ended(&self) -> bool {
        self.input.is_none()
    }

    /// Waits for the next event; `reads` messages of the client. Takes the output. Cancel safe.
    pub async fn next(&mut self, reads: bool, output: &mut Vec<u8>) -> ClientPipesEvent {
        let input = &mut self.input;
        let frame = async {
            match input {
                Some(input) => input.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            frame = frame, if reads => {
                if let Some((framing, frame)) = frame {
                    return ClientPipesEvent::Frame(framing, frame);
                }
                self.input = None;
                ClientPipesEvent::Ended
            }
            place = self.output.reserve(), if !output.is_empty() => match place {
                Ok(place) => {
                    place.send(std::mem::take(output));
                    ClientPipesEvent::Written
                }
                Err(_) => ClientPipesEvent::Closed(ended(&mut self.written)),
            },
            result = &mut self.written => ClientPipesEvent::Closed(match result {
                Ok(Err(error)) => error,
                _ => ErrorKind::BrokenPipe.into(),
            }),
        }
    }

    /// Writes the last output.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub async fn finish(&mut self, last: Vec<u8>) -> io::Result<()> {
        let _ = self.output.send(last).await;
        let (closed, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.output, closed));
        (&mut self.written).await.unwrap_or(Ok(()))
    }
}

fn ended(written: &mut oneshot::Receiver<io::Result<()>>) -> io::Error {
    match written.try_recv() {
        Ok(Err(error)) => error,
        _ => ErrorKind::BrokenPipe.into(),
    }
}

fn read_stdin(mut frames: ClientFrames, to_loop: &mpsc::Sender<(Framing, ClientFrame)>) {
    let (mut buffer, mut piece) = (BytesMut::new(), vec![0; READ_SIZE]);
    let mut stdin = io::stdin().lock();
    loop {
        let read = match stdin.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        buffer.extend_from_slice(&piece[..read]);
        loop {
            let frame = if read == 0 {
                frames.decode_eof(&mut buffer)
            } else {
                frames.decode(&mut buffer)
            };
            let Ok(Some(frame)) = frame else { break };
            if to_loop.blocking_send((frames.framing(), frame)).is_err() {
                return;
            }
        }
        if read == 0 {
            return;
        }
    }
}

fn write_stdout(mut pieces: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(piece) = pieces.blocking_recv() {
        StdoutWriter.write_all(&piece)?;
        StdoutWriter.flush()?;
    }
    Ok(())
}
