//! Bodies of replies: bytes in memory, or a part of a file that a helper thread reads.
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// The body of a reply.
pub(crate) enum Body {
    /// In memory; taken when sent.
    Whole(Bytes),
    /// In a file.
    File(FilePart),
}

/// The next `remaining` bytes of a file. Reading begins when somebody asks for them.
pub(crate) struct FilePart {
    remaining: u64,
    state: Reading,
}

enum Reading {
    NotBegun(File),
    Begun(mpsc::Receiver<io::Result<Bytes>>),
    Failed,
}

/// What is read from a file at a time, bytes.
const CHUNK: usize = 64 * 1024;
/// Chunks read ahead of the network.
const AHEAD: usize = 4;

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Body {
        Body::Whole(bytes)
    }

    /// The next `len` bytes of `file`, from where it stands.
    pub(crate) fn file(file: File, len: u64) -> Body {
        Body::File(FilePart { remaining: len, state: Reading::NotBegun(file) })
    }
}

impl FilePart {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.remaining == 0 {
            return Poll::Ready(None);
        }
        loop {
            match std::mem::replace(&mut self.state, Reading::Failed) {
                Reading::NotBegun(file) => {
                    let (chunks, read) = mpsc::channel(AHEAD);
                    let len = self.remaining;
                    tokio::task::spawn_blocking(move || read_chunks(file, len, &chunks));
                    self.state = Reading::Begun(read);
                }
                Reading::Begun(mut read) => {
                    let polled = read.poll_recv(cx);
                    self.state = Reading::Begun(read);
                    return match ready!(polled) {
                        Some(Ok(chunk)) => {
                            self.remaining -= chunk.len() as u64;
                            Poll::Ready(Some(Ok(chunk)))
                        }
                        Some(Err(error)) => Poll::Ready(Some(Err(error))),
                        None => Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
                    };
                }
                Reading::Failed => return Poll::Ready(None),
            }
        }
    }
}

/// Ends early when nobody wants more.
fn read_chunks(mut file: File, mut len: u64, chunks: &mpsc::Sender<io::Result<Bytes>>) {
    while len > 0 {
        let mut chunk = vec![0; CHUNK.min(usize::try_from(len).unwrap_or(CHUNK))];
        let read = match file.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                // The connection may be gone; then nobody has to know.
                let _ = chunks.blocking_send(Err(error));
                return;
            }
        };
        chunk.truncate(read);
        len -= read as u64;
        if chunks.blocking_send(Ok(chunk.into())).is_err() {
            return;
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Body::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::File(part) => part.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_empty(),
            Body::File(part) => part.remaining == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Body::Whole(bytes) => bytes.len() as u64,
            Body::File(part) => part.remaining,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::io::{Seek, SeekFrom, Write};

    fn file(contents: &[u8]) -> File {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("firstbyte-body-{}-{number}", std::process::id()));
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all(contents).unwrap();
        file.rewind().unwrap();
        file
    }

    #[tokio::test]
    async fn a_file_arrives_whole() {
        let contents: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        let collected = Body::file(file(&contents), 300_000).collect().await.unwrap();
        assert_eq!(collected.to_bytes(), contents);
    }

    #[tokio::test]
    async fn a_part_of_a_file_is_that_part() {
        let mut file = file(b"0123456789");
        file.seek(SeekFrom::Start(3)).unwrap();
        assert_eq!(Body::file(file, 4).collect().await.unwrap().to_bytes(), "3456");
    }

    #[tokio::test]
    async fn a_file_that_was_cut_meanwhile_is_an_error_and_no_short_reply() {
        let error = Body::file(file(b"012"), 4).collect().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
