//! One command at many hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Semaphore;
use toolkit::cancel::Cancel;
use toolkit::server::{Answer, Args, Failure, ReplySink, SessionRef, ToolCall};

use super::Ssh;
use super::run::To;
use crate::command::{Command, Context};
use crate::hosts::{Host, Links};
use crate::tools::{self, Rolling, Round, Tool};
use crate::upstream::Ended;

/// A host with what runs there, or why it cannot.
struct Ready {
    to: To,
    command: Result<(Command, Context), Failure>,
}

impl Ssh {
    pub(super) async fn fan_out(
        &self,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let rolling = Rolling::read(args)?;
        let hosts = self.fan_hosts(args)?;
        let commands = tools::commands(Tool::FanOut, args)?;
        let context = tools::context(args)?;
        // The first host is the one that the call was judged for.
        for host in hosts.iter().skip(1) {
            let name: Arc<str> = host.name.as_str().into();
            reply.found_at(Some(name), Vec::new()).await?;
        }
        let what = (commands.as_slice(), &context);
        let by = call.session();
        let ready = self
            .ready((&hosts, by), what, (args, rolling), reply)
            .await?;
        let budget = Budget::new(rolling);
        let (first, rest) = ready.split_at(rolling.canary.min(ready.len()));
        let mut rounds = self.round(first, args, &budget, reply).await;
        let is_well = rounds.iter().all(|round| !round.has_failed());
        if !is_well {
            budget.is_over.store(true, Ordering::Relaxed);
        }
        rounds.extend(self.round(rest, args, &budget, reply).await);
        let failed = rounds.iter().filter(|round| round.has_failed()).count();
        let most = rolling.failures_max;
        let stopped = if !is_well {
            Some("the canary failed".to_owned())
        } else if failed > most {
            Some(format!("{failed} hosts failed, and {most} may"))
        } else if reply.cancel().is_cancelled() {
            Some("the call was cancelled".to_owned())
        } else {
            None
        };
        Ok(tools::of_fan_out(rounds, stopped))
    }

    fn fan_hosts(&self, args: Args<'_>) -> Result<Vec<Arc<Host>>, Failure> {
        let names = tools::fan_hosts(&self.hosts, args)?;
        let named = names.into_iter().filter_map(|name| self.hosts.named(name));
        let hosts: Vec<Arc<Host>> = named.cloned().collect();
        let asks = |host: &&Arc<Host>| host.credential.takes_password();
        if let Some(host) = hosts.iter().find(asks) {
            let wrong = format!(
                "{} is logged in to with a caller's password: call ssh_connect for it alone",
                host.name
            );
            return Err(Failure::new("password_needed", wrong));
        }
        Ok(hosts)
    }

    /// Finds out where the command's paths lead at every host, and has that judged, before anything runs.
    async fn ready(
        &self,
        (hosts, by): (&[Arc<Host>], &SessionRef),
        (commands, context): (&[Command], &Context),
        (args, rolling): (Args<'_>, Rolling),
        reply: &ReplySink,
    ) -> Result<Vec<Ready>, Failure> {
        let at_once = Semaphore::new(rolling.at_once);
        let one = async |at: usize, host: &Arc<Host>| {
            let _running = at_once.acquire().await;
            let to = To::of(host, by);
            let mut asking = self.asking(&to, args);
            asking.further = at > 0;
            let mut context = context.clone();
            if at == 0 {
                // At the others nobody has judged yet where relative paths lead.
                context.home = self.pool.home(host);
            }
            let opened = asking.opened(commands.to_vec(), &context, reply).await;
            let command = opened.and_then(|opened| {
                let command = opened.commands.into_iter().next();
                let context = opened.context;
                let none = || Failure::new("unfit_arguments", "there is no command");
                command.map(|command| (command, context)).ok_or_else(none)
            });
            Ready { to, command }
        };
        let all = hosts.iter().enumerate().map(|(at, host)| one(at, host));
        let ready = tools::together(all).await;
        // What the rules refuse at one host they refuse altogether; nothing has run.
        for ready in &ready {
            if let Err(failure) = &ready.command
                && failure.code == "refused"
                && ready.to.host.links == Links::Checked
            {
                return Err(failure.clone());
            }
        }
        Ok(ready)
    }

    /// Runs these hosts, some at a time, as long as the budget lasts.
    async fn round(
        &self,
        ready: &[Ready],
        args: Args<'_>,
        budget: &Budget,
        reply: &ReplySink,
    ) -> Vec<Round> {
        let cancel = reply.cancel();
        let most = tools::fan_stream_bytes_max(self.limits().answer_bytes_max, ready.len());
        let one = async |ready: &Ready| {
            let _running = budget.at_once.acquire().await;
            let name = &ready.to.host.name;
            let round = if budget.is_over.load(Ordering::Relaxed) || cancel.is_cancelled() {
                Round::not_run(name)
            } else {
                Round::of(name, self.fan_one(ready, args, most, cancel).await)
            };
            if round.has_failed() {
                budget.failed();
            }
            reply.ended_at(name.as_str().into(), round.outcome()).await;
            round
        };
        tools::together(ready.iter().map(one)).await
    }

    async fn fan_one(
        &self,
        ready: &Ready,
        args: Args<'_>,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        let (command, context) = ready.command.as_ref().map_err(Failure::clone)?;
        let mut order = tools::order(
            (command.argv(), context),
            args,
            &ready.to.host,
            self.limits(),
        )?;
        order.bounds.stream_bytes_max = most;
        self.run_at(&ready.to, order, cancel).await
    }
}

/// What is left before a call stops.
struct Budget {
    at_once: Semaphore,
    failures: AtomicUsize,
    failures_max: usize,
    is_over: AtomicBool,
}

impl Budget {
    fn new(rolling: Rolling) -> Self {
        Self {
            at_once: Semaphore::new(rolling.at_once),
            failures: AtomicUsize::new(0),
            failures_max: rolling.failures_max,
            is_over: AtomicBool::new(false),
        }
    }

    fn failed(&self) {
        if self.failures.fetch_add(1, Ordering::Relaxed) >= self.failures_max {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }
}
