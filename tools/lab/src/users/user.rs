//! One user: asks, checks, pauses, asks again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::args::UsersPlan;
use super::kind::UserKind;
use super::reply::{ModelReply, OBSERVATION, read};
use super::tally::{TallyRow, TurnTally, TurnTimes};
use crate::driver::HttpConnection;
use crate::interrupt::InterruptFlag;

/// The longest sleep between two looks at the clock and at Ctrl-C.
const NAP_MAX: Duration = Duration::from_millis(50);
/// Wait of a user before it retries a failed connection.
const RECONNECT_WAIT: Duration = Duration::from_millis(200);

/// A user at work.
pub(super) struct SimulatedUser<'a> {
    pub plan: &'a UsersPlan,
    pub interrupt: &'a InterruptFlag,
    pub kind: UserKind,
    pub number: u32,
    pub until: Instant,
    /// Distinguishes the names of this run's users.
    pub salt: u64,
}

/// One exchange: the body, and its times.
struct ModelExchange {
    body: Vec<u8>,
    total_ms: f64,
    first_ms: f64,
}

impl SimulatedUser<'_> {
    /// Works until the time is over; gives what became of it.
    pub fn work(&self) -> TurnTally {
        let mut tally = TurnTally::default();
        let mut connection = None;
        let mut key = self.plan.key.clone();
        if self.kind == UserKind::Auth || self.plan.register {
            match self.register(&mut connection) {
                Ok((token, turn)) => {
                    key = Some(token);
                    tally.add(TallyRow::Registration, Ok(turn));
                }
                Err(why) => {
                    tally.add(TallyRow::Registration, Err(why));
                    return tally;
                }
            }
        }
        let mut drawn = self.salt ^ u64::from(self.number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        while !self.is_over() {
            let told = self.turn(&mut connection, key.as_deref(), self.kind.model());
            self.after(&mut connection, &mut tally, TallyRow::Of(self.kind), told);
            if self.kind == UserKind::Rotation
                && let Some(model) = &self.plan.beside
                && !self.is_over()
            {
                let told = self.turn(&mut connection, key.as_deref(), model);
                self.after(&mut connection, &mut tally, TallyRow::Beside, told);
            }
            if self.plan.pauses {
                let (shortest, longest) = self.kind.pause_ms();
                drawn = drawn
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let spread = (drawn >> 33) % (longest - shortest + 1);
                self.nap(Duration::from_millis(shortest + spread));
            }
        }
        tally
    }

    fn after(
        &self,
        connection: &mut Option<HttpConnection>,
        tally: &mut TurnTally,
        row: TallyRow,
        told: Result<TurnTimes, String>,
    ) {
        if told.is_err() {
            // The rest of a wrong reply must not be read as the next one.
            *connection = None;
        }
        tally.add(row, told);
    }

    fn is_over(&self) -> bool {
        self.interrupt.is_set() || Instant::now() >= self.until
    }

    fn nap(&self, how_long: Duration) {
        let end = (Instant::now() + how_long).min(self.until);
        while !self.interrupt.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left.min(NAP_MAX));
        }
    }

    /// One turn of a conversation: a request, or two if the model asks for a tool.
    fn turn(
        &self,
        connection: &mut Option<HttpConnection>,
        key: Option<&str>,
        model: &str,
    ) -> Result<TurnTimes, String> {
        let mut body = self.kind.request(model);
        let (mut said, mut reply) = self.ask(connection, key, &body)?;
        let mut turn = self.turn_times(&said, &reply);
        if self.kind == UserKind::AgentReasoning {
            let id = reply.asks()?.to_owned();
            answer_tool(&mut body, &reply, &id);
            (said, reply) = self.ask(connection, key, &body)?;
            reply.quotes()?;
            let second = self.turn_times(&said, &reply);
            turn.total_ms += second.total_ms;
            turn.simulated_ms += second.simulated_ms;
        } else {
            reply.is_sentence()?;
        }
        turn.model = reply.model;
        Ok(turn)
    }

    fn turn_times(&self, said: &ModelExchange, reply: &ModelReply) -> TurnTimes {
        TurnTimes {
            total_ms: said.total_ms,
            first_ms: Some(said.first_ms),
            simulated_ms: (reply.tokens * self.plan.token_ms) as f64,
            model: String::new(),
        }
    }

    fn ask(
        &self,
        connection: &mut Option<HttpConnection>,
        key: Option<&str>,
        body: &Value,
    ) -> Result<(ModelExchange, ModelReply), String> {
        let (status, said) = self.post(connection, "/v1/chat/completions", key, body)?;
        if status != 200 {
            return Err(describe_refusal(status, &said.body));
        }
        let reply = read(&said.body)?;
        Ok((said, reply))
    }

    fn register(
        &self,
        connection: &mut Option<HttpConnection>,
    ) -> Result<(String, TurnTimes), String> {
        let name = format!("lab-{:08x}-{}", self.salt >> 32, self.number);
        let body = json!({ "username": name });
        let (status, said) = self.post(connection, "/v1/auth/register", None, &body)?;
        let user: Value = serde_json::from_slice(&said.body).unwrap_or_default();
        match user.get("token").and_then(Value::as_str) {
            Some(token) if status == 200 => {
                let turn = TurnTimes {
                    total_ms: said.total_ms,
                    ..TurnTimes::default()
                };
                Ok((token.to_owned(), turn))
            }
            _ => Err(describe_refusal(status, &said.body)),
        }
    }

    fn post(
        &self,
        connection: &mut Option<HttpConnection>,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> Result<(u16, ModelExchange), String> {
        let body = body.to_string();
        let mut headers = vec![
            "content-type: application/json".to_owned(),
            format!("content-length: {}", body.len()),
        ];
        headers.extend(key.map(|key| format!("authorization: Bearer {key}")));
        let mut request = self.plan.host.at(path).head("POST", &headers);
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body.as_bytes());
        let own = match connection {
            Some(own) => own,
            None => match HttpConnection::open(&self.plan.host, self.plan.timeout_ms) {
                Ok(opened) => connection.insert(opened),
                Err(error) => {
                    self.nap(RECONNECT_WAIT);
                    return Err(error.to_string());
                }
            },
        };
        let reply = own
            .exchange(&request)
            .map_err(|(_, error)| format!("the connection failed: {error}"))?;
        let said = ModelExchange {
            body: own.body().to_vec(),
            total_ms: ms(reply.elapsed_ns),
            first_ms: ms(reply.first_ns),
        };
        Ok((reply.status, said))
    }
}

/// Puts the model's request and the tool's result behind what was said.
fn answer_tool(body: &mut Value, reply: &ModelReply, id: &str) {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    if let Some(turns) = body.get_mut("messages").and_then(Value::as_array_mut) {
        turns.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        turns.push(json!({ "role": "tool", "tool_call_id": id, "content": OBSERVATION }));
    }
}

/// Returns a refusal by its status and its own word, so that 401 and 429 are distinguished.
fn describe_refusal(status: u16, body: &[u8]) -> String {
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let code = told.pointer("/error/code").and_then(Value::as_str);
    format!("HTTP {status} {}", code.unwrap_or(""))
        .trim_end()
        .to_owned()
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
