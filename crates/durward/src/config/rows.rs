//! What applies, as rows of key, value and origin.

use super::settings::{Origin, Setting, Settings};
use super::state_store::StateStore;
use super::values::{self, Choice, Size, Span};

/// One line of what applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: &'static str,
    /// Empty where nothing is set.
    pub value: String,
    pub origin: Origin,
}

impl Settings {
    /// What applies, key by key, without the servers.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.serving_rows();
        rows.extend([row("policy", &self.policy, |file| match file {
            Some(file) => file.display().to_string(),
            None => "the starter policy".to_owned(),
        })]);
        rows.extend(self.identity.rows());
        rows.extend(self.models.rows());
        rows.extend(self.inspect.row());
        rows.extend(self.limit_rows());
        rows.extend(self.approval_rows());
        rows.extend([
            row("journal.sync", &self.sync, ToString::to_string),
            row("journal.verify", &self.verify, worded),
            row("journal.warn_below", &self.warn_below, ToString::to_string),
            row("call_timeout", &self.call_timeout, ToString::to_string),
            row("tool_timeout", &self.tool_timeout, |tools| spans(tools)),
            row("refusals", &self.refusals, worded),
            row("insecure_http", &self.insecure_http, worded),
            row(
                "breaker.failures",
                &self.breaker.failures,
                ToString::to_string,
            ),
            row("breaker.open", &self.breaker.open, ToString::to_string),
            row(
                "breaker.open_max",
                &self.breaker.open_max,
                ToString::to_string,
            ),
        ]);
        rows.extend(self.journal_rows());
        if let Some(state) = &self.state_dir {
            rows.push(row("state_dir", state, |dir| dir.display().to_string()));
        }
        rows.push(row("confine", &self.confine, |confine| {
            confine.label().to_owned()
        }));
        if let Some(tls) = &self.tls {
            rows.push(row("tls.cert", &tls.cert, |file| {
                file.display().to_string()
            }));
            rows.push(row("tls.key", &tls.key, |file| file.display().to_string()));
        }
        let list = |texts: &Vec<String>| {
            if texts.is_empty() {
                "loopback names".to_owned()
            } else {
                texts.join(", ")
            }
        };
        rows.extend([
            row("allowed_hosts", &self.allowed_hosts, list),
            row("allowed_origins", &self.allowed_origins, list),
            row("descriptions.links", &self.links, ToString::to_string),
            row(
                "descriptions.length_max",
                &self.description_length_max,
                |max| max.map_or_else(|| "no limit".to_owned(), |max| max.to_string()),
            ),
            row("pin", &self.pin, ToString::to_string),
            row("watch", &self.watch, worded),
        ]);
        rows.extend(self.otel.rows());
        rows.extend(self.state.iter().flat_map(StateStore::rows));
        rows
    }

    fn serving_rows(&self) -> Vec<Row> {
        let serving = &self.serving;
        vec![
            row("listen", &self.listen, ToString::to_string),
            row("root", &serving.root, |root| {
                root.clone().unwrap_or_else(|| "none".to_owned())
            }),
            row("prefix", &serving.prefix, worded),
            row("search_above", &serving.search_above, |most| {
                most.map_or_else(|| "never".to_owned(), |most| most.to_string())
            }),
            row("require_key", &serving.require_key, worded),
            row("share", &serving.share, worded),
            row("session_idle", &serving.session_idle, ToString::to_string),
            row("lenient", &serving.lenient, worded),
            row("threads", &serving.threads, |threads| {
                threads.map_or_else(
                    || "one for each processor up to 16".to_owned(),
                    |threads| threads.to_string(),
                )
            }),
        ]
    }

    fn approval_rows(&self) -> Vec<Row> {
        let notify = &self.approval.notify;
        let notify = notify.value.values().map(|(key, value)| Row {
            key,
            value,
            origin: notify.origin,
        });
        let mut rows = vec![
            row(
                "approval.timeout",
                &self.approval.timeout,
                ToString::to_string,
            ),
            row(
                "approval.remember",
                &self.approval.remember,
                ToString::to_string,
            ),
            row(
                "approval.pending_max",
                &self.approval.pending_max,
                ToString::to_string,
            ),
            row(
                "approval.waiting_max",
                &self.approval.waiting_max,
                ToString::to_string,
            ),
            row(
                "approval.per_minute",
                &self.approval.per_minute,
                ToString::to_string,
            ),
        ];
        rows.extend(notify);
        rows
    }

    /// What of the journal is only there where it is configured.
    fn journal_rows(&self) -> Vec<Row> {
        let retain = self.retain.as_ref();
        let witness = self.witness.as_ref();
        let retain = retain.map(|size| row("journal.retain", size, ToString::to_string));
        let witness =
            witness.map(|file| row("journal.witness", file, |file| file.display().to_string()));
        retain.into_iter().chain(witness).collect()
    }

    fn limit_rows(&self) -> Vec<Row> {
        let limits = &self.limits;
        vec![
            row("limits.requests.rate", &limits.rate, ToString::to_string),
            row("limits.requests.burst", &limits.burst, ToString::to_string),
            row(
                "limits.per_tool.calls",
                &limits.tool_calls,
                ToString::to_string,
            ),
            row(
                "limits.per_tool.window",
                &limits.tool_window,
                ToString::to_string,
            ),
            row("limits.per_tool.then", &limits.tool_then, worded),
            row(
                "limits.per_tool.concurrency",
                &limits.tool_concurrency,
                |most| {
                    most.map_or_else(|| "no bound of its own".to_owned(), |most| most.to_string())
                },
            ),
            row(
                "limits.concurrency",
                &limits.concurrency,
                ToString::to_string,
            ),
            row(
                "limits.response_bytes",
                &limits.response_bytes,
                ToString::to_string,
            ),
            row(
                "limits.request_bytes",
                &limits.request_bytes,
                ToString::to_string,
            ),
            row("limits.journal_bytes", &limits.journal_bytes, |most| {
                let derived = || Size(limits.for_gate().journal_bytes());
                most.unwrap_or_else(derived).to_string()
            }),
        ]
    }
}

/// Times of single tools, as they are shown.
pub fn spans(tools: &[(String, Span)]) -> String {
    let one = |(tool, span): &(String, Span)| format!("{} {span}", tool.escape_debug());
    if tools.is_empty() {
        return "none".to_owned();
    }
    tools.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(super) fn row<T>(key: &'static str, setting: &Setting<T>, show: impl Fn(&T) -> String) -> Row {
    Row {
        key,
        value: show(&setting.value),
        origin: setting.origin,
    }
}

/// A word of a closed set, as it is shown.
fn worded<T: Choice + PartialEq>(value: &T) -> String {
    values::word(*value).to_owned()
}
