//! Calls that run commands.

use serde_json::json;
use toolkit::cancel::Cancel;
use toolkit::server::{Answer, Failure, ReplySink, ToolCall};

use super::Ssh;
use super::run::To;
use crate::command::{Command, Context};
use crate::end::End;
use crate::paths;
use crate::tools::{self, Tool};

impl Ssh {
    pub(super) async fn one(
        &self,
        tool: Tool,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let commands = tools::commands(tool, args)?;
        let opened = self
            .asking(&To::from(&*session), args)
            .opened(commands, &self.context(args, &session.host)?, reply)
            .await?;
        let Some(command) = opened.commands.first() else {
            return Err(Failure::new("unfit_arguments", "there is no command"));
        };
        let mut order = tools::order(
            (command.argv(), &opened.context),
            args,
            &session.host,
            self.limits(),
        )?;
        order.bounds.time = order.bounds.time.saturating_sub(opened.took);
        order.spill = self.outputs.spill(&call.session().caller);
        let ended = self.run(&session, order, reply.cancel()).await?;
        if tool == Tool::Hostname {
            tools::answer(&ended)?;
            let name = String::from_utf8_lossy(&ended.stdout.bytes);
            let name = name.trim();
            return match ended.end {
                End::Exited(0) => Ok(Answer::data(json!({"hostname": name}))),
                _ => Err(
                    Failure::new("command_failed", "the host did not tell its name").with(
                        "stderr",
                        String::from_utf8_lossy(&ended.stderr.bytes).trim(),
                    ),
                ),
            };
        }
        let mut answer = tools::answer(&ended)?;
        if let (Some(data), false) = (&mut answer.structured, opened.elsewhere.is_empty()) {
            data.insert("opened".into(), opened.elsewhere.into());
        }
        Ok(answer)
    }

    pub(super) async fn file(&self, call: &ToolCall, reply: &ReplySink) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let asked = tools::FileAsked::read(args)?;
        let commands = tools::commands(Tool::CatFile, args)?;
        let opened = self
            .asking(&To::from(&*session), args)
            .opened(commands, &Context::default(), reply)
            .await?;
        let argv = opened.commands.first().map_or(&[][..], Command::argv);
        let Some(place) = argv.last() else {
            return Err(Failure::new("unfit_arguments", "there is no path"));
        };
        let guarded = opened
            .is_checked
            .then(|| paths::guarded(asked.bytes_read(), place));
        let argv = guarded.as_deref().unwrap_or(argv);
        let none = Context::default();
        let mut order = tools::order((argv, &none), args, &session.host, self.limits())?;
        order.bounds.time = order.bounds.time.saturating_sub(opened.took);
        order.bounds.stream_bytes_max = usize::try_from(asked.most).unwrap_or(usize::MAX);
        let ended = self.run(&session, order, reply.cancel()).await?;
        tools::of_file(&asked, place, &ended)
    }

    pub(super) async fn network(
        &self,
        tool: Tool,
        call: &ToolCall,
        cancel: &Cancel,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let commands = tools::commands(tool, args)?;
        let none = Context::default();
        let orders: Result<Vec<_>, Failure> = commands
            .iter()
            .map(|command| {
                let what = (command.argv(), &none);
                tools::order(what, args, &session.host, self.limits())
            })
            .collect();
        let runs = orders?
            .into_iter()
            .map(|order| self.run(&session, order, cancel));
        let ended = tools::together(runs).await;
        tools::of_network(tool, args, &session, ended)
    }

    pub(super) async fn batch(
        &self,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let (args, cancel) = (call.args(), reply.cancel());
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let commands = tools::commands(Tool::Batch, args)?;
        let opened = self
            .asking(&To::from(&*session), args)
            .opened(commands.clone(), &self.context(args, &session.host)?, reply)
            .await?;
        let orders: Result<Vec<_>, Failure> = opened
            .commands
            .iter()
            .map(|command| {
                let what = (command.argv(), &opened.context);
                let mut order = tools::order(what, args, &session.host, self.limits())?;
                order.bounds.time = order.bounds.time.saturating_sub(opened.took);
                Ok(order)
            })
            .collect();
        let (orders, total) = (orders?, commands.len());
        let mut results = Vec::new();
        let mut all = true;
        if args.is_set("stop_on_error") {
            for (command, order) in commands.iter().zip(orders) {
                let (result, success) =
                    tools::of_batch(command, self.run(&session, order, cancel).await);
                results.push(result);
                all &= success;
                if !success {
                    break;
                }
            }
        } else {
            let runs = orders
                .into_iter()
                .map(|order| self.run(&session, order, cancel));
            for (command, ended) in commands.iter().zip(crate::tools::together(runs).await) {
                let (result, success) = tools::of_batch(command, ended);
                results.push(result);
                all &= success;
            }
        }
        Ok(Answer::data(json!({
            "executed": results.len(), "results": results, "total": total, "all_success": u8::from(all),
        })))
    }
}
