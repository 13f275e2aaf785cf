//! Bodies of replies: bytes in memory, and parts of files that a helper thread reads.
use super::disk::OpenFile;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a reply: a sequence of pieces.
pub(crate) struct Body {
    pieces: VecDeque<Piece>,
    /// The read of the next chunk of the first piece, on a helper thread.
    reading: Option<Reading>,
}

/// A part of a body.
pub(crate) enum Piece {
    /// Bytes in memory.
    Memory(Bytes),
    /// Part of a file. A helper thread reads each chunk on demand, so that no chunk is held for a
    /// stalled client.
    File(Arc<OpenFile>, Range<u64>),
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;

/// Most bytes read from a file at a time.
const CHUNK: u64 = 64 * 1024;

impl Body {
    /// A body in memory.
    pub(crate) fn whole(bytes: Bytes) -> Body {
        Body::new([Piece::Memory(bytes)])
    }

    /// A body of pieces, without the empty ones.
    pub(crate) fn new(pieces: impl IntoIterator<Item = Piece>) -> Body {
        Body { pieces: pieces.into_iter().filter(|piece| piece.len() > 0).collect(), reading: None }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let (file, part) = match self.pieces.front_mut() {
            None => return Poll::Ready(None),
            Some(Piece::Memory(bytes)) => {
                let bytes = std::mem::take(bytes);
                self.pieces.pop_front();
                return Poll::Ready(Some(Ok(bytes)));
            }
            Some(Piece::File(file, part)) => (file, part),
        };
        let reading = self.reading.get_or_insert_with(|| begin_reading(file, part));
        let chunk = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        match &chunk {
            Ok(chunk) => {
                part.start += chunk.len() as u64;
                if part.is_empty() {
                    self.pieces.pop_front();
                }
            }
            // An error ends the body.
            Err(_) => self.pieces.clear(),
        }
        Poll::Ready(Some(chunk.map(Bytes::from)))
    }
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Memory(bytes) => bytes.len() as u64,
            Piece::File(_, part) => part.end - part.start,
        }
    }
}

fn begin_reading(file: &Arc<OpenFile>, part: &Range<u64>) -> Reading {
    let (file, part) = (file.clone(), part.start..part.end.min(part.start + CHUNK));
    let lane = file.lane().clone();
    Box::pin(async move { lane.run(move || read(file.file()?, &part)).await? })
}

/// Reads all bytes of `part`. A file that ends early is an error: the reply has announced its
/// length.
pub(crate) fn read(file: &File, part: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; (part.end - part.start) as usize];
    file.read_exact_at(&mut chunk, part.start)?;
    Ok(chunk)
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(Piece::len).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::Disk;
    use super::*;
    use http_body_util::BodyExt;
    use std::io::Write;
    use std::time::Duration;

    fn file(contents: &[u8]) -> Arc<OpenFile> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("firstbyte-body-{}-{number}", std::process::id()));
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all(contents).unwrap();
        Arc::new(OpenFile::new(file, Disk::new(Duration::from_secs(60)).lane(b"")))
    }

    fn body(contents: &[u8], part: Range<u64>) -> Body {
        Body::new([Piece::File(file(contents), part)])
    }

    #[tokio::test]
    async fn a_file_arrives_whole() {
        let contents: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        let collected = body(&contents, 0..300_000).collect().await.unwrap();
        assert_eq!(collected.to_bytes(), contents);
    }

    /// One helper thread is enough for any number of bodies that are not read.
    #[test]
    fn whoever_reads_no_further_holds_no_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let contents = vec![7; 10 * CHUNK as usize];
        let len = contents.len() as u64;
        runtime.block_on(async {
            let mut idle = Vec::new();
            for _ in 0..3 {
                let mut body = body(&contents, 0..len);
                assert!(body.frame().await.unwrap().is_ok());
                idle.push(body);
            }
            let all = body(&contents, 0..len).collect().await.unwrap();
            assert_eq!(all.to_bytes(), contents);
        });
    }

    #[tokio::test]
    async fn parts_of_a_file_are_those_parts() {
        let file = file(b"0123456789");
        let text = |text: &'static str| Piece::Memory(Bytes::from_static(text.as_bytes()));
        let pieces = [text("a"), Piece::File(file.clone(), 3..7), text("b"), Piece::File(file, 0..1)];
        assert_eq!(Body::new(pieces).collect().await.unwrap().to_bytes(), "a3456b0");
    }

    #[tokio::test]
    async fn a_file_that_was_cut_meanwhile_is_an_error_and_no_short_reply() {
        let error = body(b"012", 0..4).collect().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
