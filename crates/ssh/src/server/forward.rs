//! Calls about port forwards.

use serde_json::json;
use toolkit::server::{Answer, Failure, ToolCall};

use super::Ssh;
use super::run::To;
use crate::forwards::{Asked, Bounds, Kind};
use crate::tools::Tool;
use crate::upstream;

impl Ssh {
    pub(super) async fn forward(&self, tool: Tool, call: &ToolCall) -> Result<Answer, Failure> {
        let args = call.args();
        let limits = self.limits();
        let session = self
            .sessions
            .take(args.text("session_id")?, call.session(), limits)?;
        match tool {
            Tool::ForwardList => {
                let forwards = session.forwards.list();
                let count = forwards.len();
                return Ok(Answer::data(json!({"forwards": forwards, "count": count})));
            }
            Tool::ForwardClose => {
                let closed = session.forwards.close(args.text("forward")?)?;
                return Ok(Answer::data(closed));
            }
            _ => {}
        }
        session.forwards.check_room(limits.forwards_max)?;
        let asked = Asked::read(args)?;
        let takes_incoming = asked.kind == Kind::Remote;
        let connection = self
            .connection(&To::from(&*session), takes_incoming)
            .await?;
        let opened = upstream::open_forward(connection, asked, Bounds::of(limits));
        let forward = opened
            .await
            .map_err(|wrong| Failure::new("not_listening", wrong))?;
        let told = session.forwards.add(forward, limits.forwards_max)?;
        Ok(Answer::data(told))
    }
}
