//! Bodies of replies: bytes in memory, or a part of a file that a helper thread reads.
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::fs::File;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::{JoinError, JoinHandle};

/// The body of a reply.
pub(crate) enum Body {
    /// In memory; taken when sent.
    Whole(Bytes),
    /// In a file.
    File(FilePart),
}

/// The next `remaining` bytes of a file. Each chunk is read by a helper thread once somebody asks for it, so that a client who takes
/// nothing holds none.
pub(crate) struct FilePart {
    remaining: u64,
    state: Reading,
}

enum Reading {
    Idle(File),
    Busy(JoinHandle<(File, io::Result<Vec<u8>>)>),
    Failed,
}

/// What is read from a file at a time, bytes.
const CHUNK: usize = 64 * 1024;

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Body {
        Body::Whole(bytes)
    }

    /// The next `len` bytes of `file`, from where it stands.
    pub(crate) fn file(file: File, len: u64) -> Body {
        Body::File(FilePart { remaining: len, state: Reading::Idle(file) })
    }
}

impl FilePart {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.remaining == 0 {
            return Poll::Ready(None);
        }
        loop {
            match std::mem::replace(&mut self.state, Reading::Failed) {
                Reading::Idle(file) => {
                    let len = usize::try_from(self.remaining).map_or(CHUNK, |remaining| remaining.min(CHUNK));
                    self.state = Reading::Busy(tokio::task::spawn_blocking(move || read_chunk(file, len)));
                }
                Reading::Busy(mut reading) => {
                    let Poll::Ready(read) = Pin::new(&mut reading).poll(cx) else {
                        self.state = Reading::Busy(reading);
                        return Poll::Pending;
                    };
                    return Poll::Ready(Some(self.take(read)));
                }
                Reading::Failed => return Poll::Ready(None),
            }
        }
    }

    /// An error is the last of it.
    fn take(&mut self, read: Result<(File, io::Result<Vec<u8>>), JoinError>) -> io::Result<Bytes> {
        let (file, chunk) = read.map_err(io::Error::other)?;
        let chunk = chunk?;
        if chunk.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.remaining -= chunk.len() as u64;
        self.state = Reading::Idle(file);
        Ok(chunk.into())
    }
}

/// At most `len` bytes from where the file stands; none at its end.
fn read_chunk(mut file: File, len: usize) -> (File, io::Result<Vec<u8>>) {
    let mut chunk = Vec::with_capacity(len);
    let read = file.by_ref().take(len as u64).read_to_end(&mut chunk);
    (file, read.map(|_| chunk))
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

    /// One helper thread is enough for any number of bodies that nobody reads on.
    #[test]
    fn whoever_reads_no_further_holds_no_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let contents = vec![7; 10 * CHUNK];
        runtime.block_on(async {
            let mut idle = Vec::new();
            for _ in 0..3 {
                let mut body = Body::file(file(&contents), contents.len() as u64);
                assert!(body.frame().await.unwrap().is_ok());
                idle.push(body);
            }
            let all = Body::file(file(&contents), contents.len() as u64).collect().await.unwrap();
            assert_eq!(all.to_bytes(), contents);
        });
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
