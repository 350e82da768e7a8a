//! A stream in the words of another dialect.

use super::super::stream_state::StreamEvent;
use super::super::usage::Tokens;
use super::ask::StreamPiece;
use super::fields::LeftOut;
use super::{CallerForm, ProviderForm, ReplyStamp, SignedThought};
use super::{chat, gemini, messages, responses};
use wire::sse::push_remark;

#[derive(Debug)]
enum StreamReader {
    Chat(chat::ChatReader),
    Messages(messages::MessagesReader),
    Gemini(gemini::GeminiReader),
}

#[derive(Debug)]
enum StreamWriter {
    Chat(chat::ChatWriter),
    Messages(messages::MessagesWriter),
    Responses(Box<responses::ResponsesWriter>),
}

/// Longest thoughts with a kept signature, in bytes.
const SIGNED_BYTES_MAX: usize = 1024 * 1024;
/// Most blocks of thoughts with a kept signature.
const SIGNED_MAX: usize = 256;

/// Says a stream in another dialect, event by event.
#[derive(Debug)]
pub struct Translator {
    reader: StreamReader,
    writer: StreamWriter,
    tokens: Tokens,
    /// Parts that carry something the model wrote.
    pieces: u64,
    started: bool,
    finished: bool,
    failure: Option<String>,
    /// What of the reply was left out.
    left_out: LeftOut,
    /// Whether the signatures of its thoughts are kept: they are the caller's to bring back.
    keeps_signed: bool,
    /// The thought that has no signature yet.
    thought: String,
    signed: Vec<SignedThought>,
    wants_usage: bool,
    /// The id of a reply that has none of its own.
    id: String,
}

impl Translator {
    /// Returns a stream that has not begun.
    #[must_use]
    pub fn new(from: ProviderForm, to: CallerForm, stamp: ReplyStamp<'_>) -> Self {
        Self {
            reader: match from {
                ProviderForm::Chat => {
                    StreamReader::Chat(chat::ChatReader::new((stamp.id, stamp.created)))
                }
                ProviderForm::Messages => {
                    StreamReader::Messages(messages::MessagesReader::default())
                }
                ProviderForm::Gemini => StreamReader::Gemini(gemini::GeminiReader::new(stamp.id)),
            },
            writer: match to {
                CallerForm::Chat => StreamWriter::Chat(chat::ChatWriter::new(stamp.created)),
                CallerForm::Messages => StreamWriter::Messages(messages::MessagesWriter::default()),
                CallerForm::Responses => {
                    StreamWriter::Responses(Box::new(responses::ResponsesWriter::new(stamp)))
                }
            },
            tokens: Tokens::default(),
            pieces: 0,
            started: false,
            finished: false,
            failure: None,
            left_out: LeftOut::new(),
            keeps_signed: from == ProviderForm::Messages && to == CallerForm::Chat,
            thought: String::new(),
            signed: Vec::new(),
            wants_usage: true,
            id: stamp.id.to_owned(),
        }
    }

    /// Reads the data of an event, and writes its translation. In a stream of chat completions the usage is written if
    /// `wants_usage` is set.
    pub fn see(&mut self, data: &[u8], wants_usage: bool, out: &mut Vec<u8>) -> StreamEvent {
        let Ok(data) = std::str::from_utf8(data) else {
            return StreamEvent::Malformed;
        };
        self.wants_usage = wants_usage;
        let mut pieces = Vec::new();
        let read = match &mut self.reader {
            StreamReader::Chat(reader) => reader.read(data, &mut pieces),
            StreamReader::Messages(reader) => reader.read(data, &mut pieces),
            StreamReader::Gemini(reader) => reader.read(data, &mut pieces),
        };
        if read.is_none() {
            return StreamEvent::Malformed;
        }
        let mut said = StreamEvent::Part;
        for piece in &mut pieces {
            match piece {
                StreamPiece::Start { id, .. } => {
                    self.started = true;
                    if id.is_empty() {
                        *id = self.id.clone().into();
                    }
                }
                StreamPiece::Usage(tokens) => {
                    // The end of messages repeats the input only if a server's tool has added to it.
                    if tokens.input < self.tokens.input {
                        tokens.input = None;
                    }
                    self.tokens.overlay(*tokens);
                    *tokens = self.tokens;
                }
                StreamPiece::Thinking(text) if self.keeps_signed => {
                    self.pieces += 1;
                    if self.thought.len() + text.len() <= SIGNED_BYTES_MAX {
                        self.thought.push_str(text);
                    } else {
                        self.keeps_signed = false;
                    }
                }
                StreamPiece::Signature(text) if self.keeps_signed => {
                    self.pieces += 1;
                    self.signed.push(SignedThought {
                        text: std::mem::take(&mut self.thought),
                        signature: text.to_string(),
                    });
                    self.keeps_signed = self.signed.len() < SIGNED_MAX;
                }
                StreamPiece::LeftOut(name) => {
                    if self.left_out.insert(name.clone()) {
                        push_remark(out, &format!("left out: {name}"));
                    }
                    continue;
                }
                StreamPiece::Stop(_) => self.finished = true,
                StreamPiece::Failed(why) => {
                    self.failure.clone_from(why);
                    return StreamEvent::Failed;
                }
                // An end without a beginning, or without a reason, is a cut.
                StreamPiece::End if !self.started || !self.finished => {
                    return StreamEvent::Malformed;
                }
                StreamPiece::End => said = StreamEvent::End,
                _ => self.pieces += 1,
            }
            self.write(piece, out);
        }
        if matches!(&self.writer, StreamWriter::Responses(writer) if writer.is_full()) {
            return StreamEvent::Malformed;
        }
        said
    }

    fn write(&mut self, piece: &StreamPiece<'_>, out: &mut Vec<u8>) {
        match &mut self.writer {
            StreamWriter::Chat(writer) => writer.write(piece, self.wants_usage, out),
            // These have to report a usage, even if the provider did not.
            StreamWriter::Messages(writer) => {
                if matches!(piece, StreamPiece::End) {
                    let seen = super::super::watch::estimate_tokens(
                        self.tokens,
                        self.finished,
                        self.pieces,
                    );
                    writer.write(&StreamPiece::Usage(seen), out);
                }
                writer.write(piece, out);
            }
            StreamWriter::Responses(writer) => {
                if matches!(piece, StreamPiece::End) {
                    let seen = super::super::watch::estimate_tokens(
                        self.tokens,
                        self.finished,
                        self.pieces,
                    );
                    writer.write(&StreamPiece::Usage(seen), out);
                }
                writer.write(piece, out);
            }
        }
    }

    /// Takes the thoughts of the reply with their signatures; none if there were too many.
    pub fn take_signed(&mut self) -> Vec<SignedThought> {
        let signed = std::mem::take(&mut self.signed);
        match self.keeps_signed {
            true => signed,
            false => Vec::new(),
        }
    }

    /// Returns whether the model has given its stop reason: then only the end mark is missing.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// Writes the end of a stream without the provider's end mark.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.write(&StreamPiece::End, out);
    }

    /// Returns why the provider gave up, in its own words.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns the usage so far: as reported, or one token for each part seen if the output was not reported.
    #[must_use]
    pub fn used_tokens(&self) -> Tokens {
        super::super::watch::estimate_tokens(self.tokens, self.finished, self.pieces)
    }
}
