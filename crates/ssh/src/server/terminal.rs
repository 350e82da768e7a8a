//! Calls about terminals.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolkit::cancel::Cancel;
use toolkit::server::{Answer, Args, Failure, ReplySink, ToolCall};

use super::Ssh;
use super::run::To;
use crate::recording::Recorder;
use crate::sessions::Session;
use crate::size::Size;
use crate::sudo;
use crate::terminals::Terminal;
use crate::tools::{self, Tool};

/// How long a call that closes a terminal waits for the end of its program: TERM, KILL, and a little.
const END_TOLD: Duration = Duration::from_secs(6);

impl Ssh {
    pub(super) async fn terminal(
        &self,
        tool: Tool,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let wanted = tools::wanted(args)?;
        let wait = || args.count("wait_ms").map(Duration::from_millis);
        let name = match tool {
            Tool::TerminalOpen => self.open_terminal(&session, args, reply).await?,
            _ => args.text("terminal")?.to_owned(),
        };
        let terminal = session.terminals.named(&name)?;
        let screen = &terminal.screen;
        if tool == Tool::TerminalClose {
            let from = screen.length();
            terminal.stop();
            session.terminals.forget(&name);
            // Nothing matches this but the end.
            let never = regex::Regex::new("$^a").ok();
            let part = screen
                .wait(from, never.as_ref(), END_TOLD, reply.cancel())
                .await;
            return Ok(tools::of_terminal(&name, part));
        }
        // What is shown from here on, unless the call says otherwise: of all, or of what follows the typed text.
        let shown_before = match tool {
            Tool::TerminalSend => screen.length(),
            _ => 0,
        };
        let asked = args.get("from").and_then(Value::as_u64);
        let from = asked.unwrap_or(shown_before);
        if tool == Tool::TerminalSend {
            terminal.type_in(tools::typed(args)?.into_bytes())?;
        }
        let part = screen
            .wait(from, wanted.as_ref(), wait()?, reply.cancel())
            .await;
        Ok(tools::of_terminal(&name, part))
    }

    /// Starts a program on a terminal; gives the terminal's name.
    async fn open_terminal(
        &self,
        session: &Session,
        args: Args<'_>,
        reply: &ReplySink,
    ) -> Result<String, Failure> {
        let commands = tools::commands(Tool::TerminalOpen, args)?;
        if commands.iter().any(|command| sudo::is(command.argv())) {
            let wrong = "terminals run nothing by sudo: its password is not typed into them";
            return Err(Failure::new("no_sudo", wrong));
        }
        let to = To::from(session);
        let asking = self.asking(&to, args);
        let opened = asking
            .opened(commands, &self.context(args, &session.host)?, reply)
            .await?;
        let Some(command) = opened.commands.into_iter().next() else {
            return Err(Failure::new("unfit_arguments", "there is no command"));
        };
        let limits = self.limits();
        let what = (command.argv(), &opened.context);
        let mut order = tools::order(what, args, &session.host, limits)?;
        let asked = args.get("timeout_ms").and_then(Value::as_u64);
        let time_ms = asked.unwrap_or(limits.terminal_ms_default);
        order.bounds.time = Duration::from_millis(time_ms.min(limits.terminal_ms_max));
        order.bounds.stream_bytes_max = 0;
        let stop = Cancel::default();
        let (size, context) = (tools::size(args)?, opened.context.clone());
        let recorder = self.recorder(session, command.program(), size).await?;
        let most = limits.terminal_bytes_max;
        let what = (command, context);
        let (terminal, inside) = Terminal::new(what, size, most, recorder, stop.clone());
        order.terminal = Some(inside);
        let name =
            session
                .terminals
                .add(Arc::new(terminal), &session.host.name, limits.terminals_max)?;
        match self.begin(&to, order, stop, reply.cancel()).await {
            Ok(_) => Ok(name),
            Err(failure) => {
                session.terminals.forget(&name);
                Err(failure)
            }
        }
    }

    /// A recording of a terminal, where the operator wants them.
    async fn recorder(
        &self,
        session: &Session,
        program: &str,
        size: Size,
    ) -> Result<Option<(Recorder, String)>, Failure> {
        let Some(folder) = &self.hosts.recordings else {
            return Ok(None);
        };
        let about = (session.host.name.as_str(), program);
        let most = self.limits().recording_bytes_max;
        let begun = self.recordings.start(folder, about, size, most).await;
        begun.map(Some).map_err(|error| {
            let wrong =
                format!("the recording cannot be written, so there is no terminal: {error}");
            Failure::new("not_recorded", wrong)
        })
    }
}
