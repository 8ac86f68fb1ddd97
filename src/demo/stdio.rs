//! Standard input and output as asynchronous pipes.
//!
//! A blocking read or write cannot be interrupted. Both happen on plain threads, which do not keep the
//! process alive, so that the agent can also end while one of them still waits for the client.

use std::io::{self, Read, Write};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};

/// How much of either stream may be on its way inside the process.
const BUFFER: usize = 64 << 10;

/// Standard input.
pub fn stdin() -> io::Result<DuplexStream> {
    let (mut writer, reader) = duplex(BUFFER);
    let (chunks, mut read) = mpsc::channel::<Vec<u8>>(1);
    let pump = move || {
        let mut buffer = vec![0; BUFFER];
        loop {
            match io::stdin().read(&mut buffer) {
                Ok(count) if count > 0 => {
                    let chunk = buffer.iter().take(count).copied().collect();
                    if chunks.blocking_send(chunk).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Any other error can only mean that nothing more will come, as the end does.
                _ => return,
            }
        }
    };
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(pump)?;
    tokio::spawn(async move {
        while let Some(chunk) = read.recv().await {
            if writer.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    Ok(reader)
}

/// Standard output, and what tells when all that was written to it is out, or why it cannot be.
pub fn stdout() -> io::Result<(DuplexStream, oneshot::Receiver<io::Result<()>>)> {
    let (writer, mut reader) = duplex(BUFFER);
    let (chunks, mut written) = mpsc::channel::<Vec<u8>>(1);
    let (done, told) = oneshot::channel();
    let pump = move || {
        let mut stdout = io::stdout().lock();
        let mut result = Ok(());
        while result.is_ok()
            && let Some(chunk) = written.blocking_recv()
        {
            result = stdout.write_all(&chunk).and_then(|()| stdout.flush());
        }
        done.send(result).ok();
    };
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(pump)?;
    tokio::spawn(async move {
        loop {
            let mut chunk = Vec::with_capacity(BUFFER);
            let read = tokio::select! {
                read = reader.read_buf(&mut chunk) => read,
                // The thread has ended. So does `reader`, and the loop learns that nobody listens.
                () = chunks.closed() => return,
            };
            if !read.is_ok_and(|count| count > 0) || chunks.send(chunk).await.is_err() {
                return;
            }
        }
    });
    Ok((writer, told))
}
