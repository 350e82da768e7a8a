//! What every mock server accepts on its command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::MockError;
use crate::count::CallLog;
use crate::http::ReplyForm;
use crate::record::FrameLog;
use crate::server::RevisionSet;

/// Flags of every mock server.
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// Which protocol revisions to speak: those with sessions, 2026-07-28, or both.
    #[arg(long, value_enum, default_value_t = RevisionSet::Both)]
    pub eras: RevisionSet,
    /// Append one line to FILE for every tools/call that arrives, before it acts.
    #[arg(long, value_name = "FILE")]
    pub count: Option<PathBuf>,
    /// Append every frame that arrives to FILE, as it came, before it acts.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Serve Streamable HTTP at this address instead of standard input and output; port 0 takes a free one.
    /// The endpoint's URL is the first line of standard output.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// How requests over HTTP are answered.
    #[arg(long, value_enum, default_value_t = ReplyForm::Auto, requires = "http")]
    pub replies: ReplyForm,
    /// Serve calls and nothing else, with blocking calls and a thread a connection: the least that a server
    /// over HTTP costs. No sessions, no streams, no headers looked at.
    #[arg(long, requires = "http", conflicts_with = "replies")]
    pub bare: bool,
}

impl ServerArgs {
    pub(crate) fn recorder(&self) -> Result<Option<FrameLog>, MockError> {
        self.record.as_deref().map(FrameLog::open).transpose()
    }

    pub(crate) fn counter(&self) -> Result<Option<CallLog>, MockError> {
        self.count.as_deref().map(CallLog::open).transpose()
    }
}
