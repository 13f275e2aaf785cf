//! A reader of zstd files, based on the block decoder of `ruzstd`.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::error::Error;
use std::io::{self, BufRead, Read};

/// Reads the frames of a zstd file, one after another. Returns everything decoded before an error
/// first.
pub(super) struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    error: Option<io::Error>,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(source: R) -> Zstd<R> {
        Zstd { source, decoder: FrameDecoder::new(), error: None }
    }

    /// Decodes one more block, of this frame or the next. Returns false if there is none.
    fn advance(&mut self) -> io::Result<bool> {
        if !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.source, one).map_err(undecoded)?;
            return Ok(true);
        }
        // The whole frame has been read, or no further block would be requested.
        let written = self.decoder.get_checksum_from_data();
        if written.is_some() && written != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the decompressed zstd data does not match its checksum: some of these packets may be wrong",
            ));
        }
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.init(&mut self.source) {
            Ok(()) => Ok(true),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                if skipped == u64::from(length) { Ok(true) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
            Err(error) => Err(undecoded(error)),
        }
    }

    /// Releases the data that the decoder keeps for later blocks. It does so only after the frame's
    /// last block, so this feeds it an empty one.
    fn end_frame(&mut self) {
        if !self.decoder.is_finished() {
            // The error is known already.
            let _ = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
        }
    }
}

/// A last block of no bytes, uncompressed (RFC 8878 §3.1.1.2), and room for the frame's checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 || buffer.is_empty() {
                return self.decoder.read(buffer);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => {
                    self.error = Some(error);
                    self.end_frame();
                }
            }
        }
    }
}

/// Converts a decoder's error. An error of the source is returned unchanged, however deep inside.
fn undecoded(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        match one.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::UnexpectedEof => {
                return io::Error::new(io.kind(), "its zstd data ends in the middle of a block");
            }
            Some(io) => return io::Error::new(io.kind(), io.to_string()),
            None => cause = one.source(),
        }
    }
    let what = match error {
        FrameDecoderError::ReadFrameHeaderError(_) | FrameDecoderError::FrameHeaderError(_) => {
            "a zstd frame has an invalid header"
        }
        FrameDecoderError::WindowSizeTooBig { .. } => "a zstd frame needs more memory than the limit",
        FrameDecoderError::FailedToReadBlockHeader(_) => "a zstd block has an invalid header",
        FrameDecoderError::DictNotProvided { .. } => {
            "its zstd data needs a dictionary, which is not available"
        }
        _ => "a zstd block cannot be decoded",
    };
    io::Error::new(io::ErrorKind::InvalidData, what)
}
