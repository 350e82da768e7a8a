//! A stream in the words of another dialect.

use super::super::stream_state::Said;
use super::super::usage::Tokens;
use super::ask::Piece;
use super::fields::LeftOut;
use super::{Format, Front, SignedThought, Stamp};
use super::{chat, gemini, messages, responses};
use wire::sse::push_remark;

#[derive(Debug)]
enum Reader {
    Chat(chat::Reader),
    Messages(messages::Reader),
    Gemini(gemini::Reader),
}

#[derive(Debug)]
enum Writer {
    Chat(chat::Writer),
    Messages(messages::Writer),
    Responses(Box<responses::Writer>),
}

/// Longest thoughts whose signatures are kept, in bytes.
const SIGNED_BYTES_MAX: usize = 1024 * 1024;
/// Most blocks of thoughts whose signatures are kept.
const SIGNED_MAX: usize = 256;

/// Says a stream in another dialect, event by event.
#[derive(Debug)]
pub struct Translator {
    reader: Reader,
    writer: Writer,
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
    /// A stream that has not begun.
    #[must_use]
    pub fn new(from: Format, to: Front, stamp: Stamp<'_>) -> Self {
        Self {
            reader: match from {
                Format::Chat => Reader::Chat(chat::Reader::new((stamp.id, stamp.created))),
                Format::Messages => Reader::Messages(messages::Reader::default()),
                Format::Gemini => Reader::Gemini(gemini::Reader::new(stamp.id)),
            },
            writer: match to {
                Front::Chat => Writer::Chat(chat::Writer::new(stamp.created)),
                Front::Messages => Writer::Messages(messages::Writer::default()),
                Front::Responses => Writer::Responses(Box::new(responses::Writer::new(stamp))),
            },
            tokens: Tokens::default(),
            pieces: 0,
            started: false,
            finished: false,
            failure: None,
            left_out: LeftOut::new(),
            keeps_signed: from == Format::Messages && to == Front::Chat,
            thought: String::new(),
            signed: Vec::new(),
            wants_usage: true,
            id: stamp.id.to_owned(),
        }
    }

    /// Looks at the data of an event, and writes what is to be passed on. In a stream of chat completions
    /// what was used goes to whoever wants it.
    pub fn see(&mut self, data: &[u8], wants_usage: bool, out: &mut Vec<u8>) -> Said {
        let Ok(data) = std::str::from_utf8(data) else {
            return Said::Malformed;
        };
        self.wants_usage = wants_usage;
        let mut pieces = Vec::new();
        let read = match &mut self.reader {
            Reader::Chat(reader) => reader.read(data, &mut pieces),
            Reader::Messages(reader) => reader.read(data, &mut pieces),
            Reader::Gemini(reader) => reader.read(data, &mut pieces),
        };
        if read.is_none() {
            return Said::Malformed;
        }
        let mut said = Said::Part;
        for piece in &mut pieces {
            match piece {
                Piece::Start { id, .. } => {
                    self.started = true;
                    if id.is_empty() {
                        *id = self.id.clone().into();
                    }
                }
                Piece::Usage(tokens) => {
                    // The end of messages repeats the input only where a server's tool has added to it.
                    if tokens.input < self.tokens.input {
                        tokens.input = None;
                    }
                    self.tokens.overlay(*tokens);
                    *tokens = self.tokens;
                }
                Piece::Thinking(text) if self.keeps_signed => {
                    self.pieces += 1;
                    if self.thought.len() + text.len() <= SIGNED_BYTES_MAX {
                        self.thought.push_str(text);
                    } else {
                        self.keeps_signed = false;
                    }
                }
                Piece::Signature(text) if self.keeps_signed => {
                    self.pieces += 1;
                    self.signed.push(SignedThought {
                        text: std::mem::take(&mut self.thought),
                        signature: text.to_string(),
                    });
                    self.keeps_signed = self.signed.len() < SIGNED_MAX;
                }
                Piece::LeftOut(name) => {
                    if self.left_out.insert(name.clone()) {
                        push_remark(out, &format!("left out: {name}"));
                    }
                    continue;
                }
                Piece::Stop(_) => self.finished = true,
                Piece::Failed(why) => {
                    self.failure.clone_from(why);
                    return Said::Failed;
                }
                // An end without a beginning, or without a reason, is a cut.
                Piece::End if !self.started || !self.finished => return Said::Malformed,
                Piece::End => said = Said::End,
                _ => self.pieces += 1,
            }
            self.write(piece, out);
        }
        if matches!(&self.writer, Writer::Responses(writer) if writer.is_full()) {
            return Said::Malformed;
        }
        said
    }

    fn write(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        match &mut self.writer {
            Writer::Chat(writer) => writer.write(piece, self.wants_usage, out),
            // These have to say what was used, also where nobody has told it.
            Writer::Messages(writer) => {
                if matches!(piece, Piece::End) {
                    let seen = super::super::watch::used(self.tokens, self.finished, self.pieces);
                    writer.write(&Piece::Usage(seen), out);
                }
                writer.write(piece, out);
            }
            Writer::Responses(writer) => {
                if matches!(piece, Piece::End) {
                    let seen = super::super::watch::used(self.tokens, self.finished, self.pieces);
                    writer.write(&Piece::Usage(seen), out);
                }
                writer.write(piece, out);
            }
        }
    }

    /// Takes the thoughts of the reply with their signatures; none where there were too many.
    pub fn take_signed(&mut self) -> Vec<SignedThought> {
        let signed = std::mem::take(&mut self.signed);
        match self.keeps_signed {
            true => signed,
            false => Vec::new(),
        }
    }

    /// Whether the model has said why it stopped: what is missing then is only the end mark.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// Writes the end of a stream whose provider left the end mark out.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.write(&Piece::End, out);
    }

    /// Why the provider gave up, in its own words.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// What was used so far: as told, and where the output was not told, one token for each part seen.
    #[must_use]
    pub fn used(&self) -> Tokens {
        super::super::watch::used(self.tokens, self.finished, self.pieces)
    }
}
