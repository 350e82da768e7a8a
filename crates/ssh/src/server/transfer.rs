//! Calls that move files.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolkit::server::{Answer, Failure, ReplySink, ToolCall};

use super::Ssh;
use super::run::To;
use crate::tools::{self, Tool};
use crate::transfers::{self, Transfer};
use crate::{edits, files, paths, upstream};

impl Ssh {
    /// Moves a file, or lists a directory.
    pub(super) async fn transfer(
        &self,
        tool: Tool,
        call: &ToolCall,
        reply: &ReplySink,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let asked = tools::Asked::read(args)?;
        let local = match tool {
            Tool::ListDir | Tool::Edit => PathBuf::new(),
            _ => files::place(&self.hosts.local_folders, asked.local)
                .map_err(|wrong| Failure::new("local_file", wrong))?,
        };
        let to = To::from(&*session);
        let asking = self.asking(&to, args);
        let (places, _, took) = asking.judged(&[asked.path], |_| true, reply).await?;
        let place = places.first().map_or("", String::as_str);
        let began = Instant::now();
        let moving = async {
            let slot = self.slot(&to).await?;
            let lost = || Failure::new("connection_lost", "the channel is gone").retryable();
            let (channel, _taken) = slot.take().ok_or_else(lost)?;
            let begun = upstream::Sftp::begin(channel).await;
            let mut sftp = begun.map_err(|error| paths::unled(&session.host, &error))?;
            if tool == Tool::Edit {
                let edited = edits::edit(&mut sftp, place, &tools::edits(args)).await?;
                let ms = began.elapsed().as_secs_f64() * 1e3;
                return Ok(tools::of_edit(place, &edited, ms));
            }
            let transfer = Transfer {
                path: place,
                local,
                overwrite: args.is_set("overwrite"),
                resume: args.is_set("resume"),
                mode: tools::mode(args),
                most: self.limits().transfer_bytes_max,
                shown: call.shown(),
            };
            let moved = match tool {
                Tool::Get => transfers::get(&mut sftp, transfer).await?,
                Tool::Put => transfers::put(&mut sftp, transfer).await?,
                _ => {
                    let most = usize::try_from(args.count("limit")?).unwrap_or(usize::MAX);
                    let listed = sftp.list(place, most).await;
                    let (entries, is_all) =
                        listed.map_err(|error| transfers::at_host(place, &error))?;
                    return Ok(tools::of_directory(place, entries, is_all));
                }
            };
            let ms = began.elapsed().as_secs_f64() * 1e3;
            Ok(tools::of_transfer(&asked, place, &moved, ms))
        };
        let asked_ms = args.get("timeout_ms").and_then(Value::as_u64);
        let most_ms = self.limits().command_ms_max;
        let time = Duration::from_millis(asked_ms.unwrap_or(most_ms).min(most_ms));
        let time = time.saturating_sub(took);
        let late = match tool {
            Tool::Edit => "the change took too long; look whether the file was changed",
            _ => "the transfer took too long; what was moved is kept: set resume to go on",
        };
        tokio::select! {
            moved = tokio::time::timeout(time, moving) => {
                moved.map_err(|_| Failure::new("timed_out", late).retryable())?
            }
            () = reply.cancel().cancelled() => Err(Failure::new("cancelled", "the transfer was cancelled; what was moved is kept")),
        }
    }
}
