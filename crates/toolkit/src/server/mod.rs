//! The trait behind which a built-in tool server stands.

mod arguments;
mod call;
mod definition;
mod reading;
mod reply;
mod resource;

use std::future::Future;
use std::pin::Pin;

use gate::approval::change::Seen;
use gate::facts::Facts;
use gate::journal::{OpId, RecordedJob};

use crate::measure::Measure;

pub use arguments::{Args, Unfit, read as read_arguments};
pub use call::{SessionRef, ToolCall};
pub use definition::{
    DefinitionFault, NAME_BYTES_MAX, Role, TOOLS_MAX, ToolDef, check as check_tools,
};
pub use reading::{ResourceAnswer, ResourceAsked, ResourceCall, ResourceFault};
pub use reply::{
    Answer, Content, Failure, Found, NEWS_CHARS_MAX, NEWS_MAX, News, Outcome, Progress, ReplySink,
};
pub use resource::{Body, Contents, Resource, Template};

/// Most time that a preview takes, in milliseconds.
pub const PREVIEW_MS_MAX: u64 = 5_000;

/// Who a server says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The name for programs.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How a model is to use it; may be empty.
    pub instructions: &'static str,
}

/// A tool server that lives in this process.
pub trait ToolServer: Send + Sync {
    /// Who it is.
    fn identity(&self) -> Identity;

    /// Its tools, always the same and in the same order.
    fn tools(&self) -> &[ToolDef];

    /// What a call is about, stated before it is judged: `facts` already has what the tool's definition and
    /// the call itself say. Looks at nothing but its arguments: no file, no network, no wait.
    ///
    /// # Errors
    /// [`Unfit`] where the arguments fit the schema and yet make no call.
    fn describe(
        &self,
        tool: &ToolDef,
        args: Args<'_>,
        session: &SessionRef,
        facts: &mut Facts,
    ) -> Result<(), Unfit> {
        let _ = (tool, args, session, facts);
        Ok(())
    }

    /// What a call would write, where its arguments do not say it; asked where a person is about to decide about the
    /// call. Changes nothing and ends within [`PREVIEW_MS_MAX`] milliseconds.
    fn preview(
        &self,
        tool: &ToolDef,
        args: Args<'_>,
        session: &SessionRef,
    ) -> impl Future<Output = Option<Seen>> + Send {
        let _ = (tool, args, session);
        std::future::ready(None)
    }

    /// Does what a judged call asks for. The future is polled on a thread that serves others: what computes
    /// or blocks goes elsewhere. It is dropped where nobody waits any more.
    fn call(&self, call: ToolCall, reply: ReplySink) -> impl Future<Output = Outcome> + Send;

    /// The kinds of resources that it has, always the same. A server without any answers no request about resources.
    fn templates(&self) -> &[Template] {
        &[]
    }

    /// Answers a judged request about resources; polled and dropped as [`Self::call`] is.
    fn resources(
        &self,
        call: ResourceCall,
    ) -> impl Future<Output = Result<ResourceAnswer, ResourceFault>> + Send {
        drop(call);
        let none = "this server has no resources".to_owned();
        std::future::ready(Err(ResourceFault::Missing(none)))
    }

    /// This process serves from now on: what an earlier one left under way may be taken up. Called in a runtime, before the
    /// first call; waits for nothing.
    fn begin(&self) {}

    /// Completes files that must not be left half-written. Called after the last call; the process may end as soon as it
    /// returns.
    fn end(&self) {}

    /// A session has ended; what was kept for it goes.
    fn session_ended(&self, session: &SessionRef) {
        let _ = session;
    }

    /// The credential of a caller is revoked: what outlasts its sessions ends. Called in a runtime; waits for nothing.
    fn caller_revoked(&self, caller: &std::sync::Arc<str>) {
        let _ = caller;
    }

    /// Where the ends of jobs are recorded that its calls begin. Told once, before the first call.
    fn record_jobs(&self, recorder: JobRecorder) {
        drop(recorder);
    }

    /// What it has counted, the values of one name one after the other. Waits for nothing.
    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }
}

/// Writes into the journal how a job went that this call began.
pub type JobRecorder = std::sync::Arc<dyn Fn(Option<OpId>, RecordedJob<'_>) + Send + Sync>;

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`ToolServer`] as an object; every server is one.
pub trait DynToolServer: Send + Sync {
    /// As [`ToolServer::identity`].
    fn identity(&self) -> Identity;
    /// As [`ToolServer::tools`].
    fn tools(&self) -> &[ToolDef];
    /// As [`ToolServer::describe`].
    ///
    /// # Errors
    /// As there.
    fn describe(
        &self,
        tool: &ToolDef,
        args: Args<'_>,
        session: &SessionRef,
        facts: &mut Facts,
    ) -> Result<(), Unfit>;
    /// As [`ToolServer::preview`].
    fn preview_boxed<'a>(
        &'a self,
        tool: &'a ToolDef,
        args: Args<'a>,
        session: &'a SessionRef,
    ) -> BoxFuture<'a, Option<Seen>>;
    /// As [`ToolServer::call`].
    fn call_boxed(
        self: std::sync::Arc<Self>,
        call: ToolCall,
        reply: ReplySink,
    ) -> BoxFuture<'static, Outcome>;
    /// As [`ToolServer::templates`].
    fn templates(&self) -> &[Template];
    /// As [`ToolServer::resources`].
    fn resources_boxed(
        self: std::sync::Arc<Self>,
        call: ResourceCall,
    ) -> BoxFuture<'static, Result<ResourceAnswer, ResourceFault>>;
    /// As [`ToolServer::begin`].
    fn begin(&self);
    /// As [`ToolServer::end`].
    fn end(&self);
    /// As [`ToolServer::session_ended`].
    fn session_ended(&self, session: &SessionRef);
    /// As [`ToolServer::caller_revoked`].
    fn caller_revoked(&self, caller: &std::sync::Arc<str>);
    /// As [`ToolServer::record_jobs`].
    fn record_jobs(&self, recorder: JobRecorder);
    /// As [`ToolServer::measures`].
    fn measures(&self) -> Vec<Measure>;
}

impl<S: ToolServer + 'static> DynToolServer for S {
    fn identity(&self) -> Identity {
        ToolServer::identity(self)
    }

    fn tools(&self) -> &[ToolDef] {
        ToolServer::tools(self)
    }

    fn describe(
        &self,
        tool: &ToolDef,
        args: Args<'_>,
        session: &SessionRef,
        facts: &mut Facts,
    ) -> Result<(), Unfit> {
        ToolServer::describe(self, tool, args, session, facts)
    }

    fn preview_boxed<'a>(
        &'a self,
        tool: &'a ToolDef,
        args: Args<'a>,
        session: &'a SessionRef,
    ) -> BoxFuture<'a, Option<Seen>> {
        Box::pin(ToolServer::preview(self, tool, args, session))
    }

    fn call_boxed(
        self: std::sync::Arc<Self>,
        call: ToolCall,
        reply: ReplySink,
    ) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { self.call(call, reply).await })
    }

    fn templates(&self) -> &[Template] {
        ToolServer::templates(self)
    }

    fn resources_boxed(
        self: std::sync::Arc<Self>,
        call: ResourceCall,
    ) -> BoxFuture<'static, Result<ResourceAnswer, ResourceFault>> {
        Box::pin(async move { self.resources(call).await })
    }

    fn begin(&self) {
        ToolServer::begin(self);
    }

    fn end(&self) {
        ToolServer::end(self);
    }

    fn session_ended(&self, session: &SessionRef) {
        ToolServer::session_ended(self, session);
    }

    fn caller_revoked(&self, caller: &std::sync::Arc<str>) {
        ToolServer::caller_revoked(self, caller);
    }

    fn record_jobs(&self, recorder: JobRecorder) {
        ToolServer::record_jobs(self, recorder);
    }

    fn measures(&self) -> Vec<Measure> {
        ToolServer::measures(self)
    }
}
