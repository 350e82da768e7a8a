//! Policies, frames and records that several rows share.

use super::super::row::Lack;

/// Every tool passes.
pub(crate) const ALLOW: &str =
    r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
/// A person is asked about every call.
pub(crate) const ASK: &str =
    r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}}]}"#;
/// The client's own person is asked about every call.
pub(crate) const ASK_CLIENT: &str = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},"approvers":["client"]}]}"#;
/// Tools pass, and what servers ask of clients.
pub(crate) const ALLOW_QUESTIONS: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},{"id":"questions","effect":"allow","conditions":{"mcp_method":["elicitation/create","sampling/createMessage","roots/list"]}}]}"#;
/// Tools pass; what servers ask of clients does not.
pub(crate) const DENY_QUESTIONS: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},{"id":"no-questions","effect":"deny","conditions":{"mcp_method":["elicitation/create","sampling/createMessage","roots/list"]}}]}"#;

/// The call that most rows make.
pub(crate) const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta}}}"#;
/// The same as the server gets it.
pub(crate) const CALL_ARRIVED: &str = r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta}}}"#;
/// Its answer.
pub(crate) const ECHOED: &str = r#"{"jsonrpc":"2.0","id":7,"result":{echoed:x}}"#;
/// What the client gets of a result that asks what a rule denies.
pub(crate) const DENIED_QUESTION: &str = r#"{"jsonrpc":"2.0","id":7,"result":{refused|refused by the policy: rule \"no-questions\" denies this call. The same call will be refused again: do something else, or tell the user what you need and why.|"decision":"deny","final_rule":"no-questions","matched_rules":["no-questions"],"path":null,"reason":"denied_by_rule","retryable":false,"tool_name":null|}}"#;
/// What a server's own request is answered with where a rule denies it.
pub(crate) const DENIED_REQUEST: &str = r#"{"jsonrpc":"2.0","id":"mock-ask-1","error":{"code":-31001,"message":"refused by the policy: rule \"no-questions\" denies this call","data":{"decision":"deny","final_rule":"no-questions","matched_rules":["no-questions"],"path":null,"reason":"denied_by_rule","retryable":false,"tool_name":null}}}"#;
/// The answer of a server that was refused so: it tells what it was told.
pub(crate) const TOLD_OF_DENIAL: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"code\":-31001,\"message\":\"refused by the policy: rule \\\"no-questions\\\" denies this call\",\"data\":{\"decision\":\"deny\",\"final_rule\":\"no-questions\",\"matched_rules\":[\"no-questions\"],\"path\":null,\"reason\":\"denied_by_rule\",\"retryable\":false,\"tool_name\":null}}"},{"type":"text","text":"x"}],"isError":false}}"#;
/// The form that the client's person is shown, as a request and as a result.
pub(crate) const FORM: &str = r#"{"id":"durward-approval-ID","jsonrpc":"2.0","method":"elicitation/create","params":{"message":"May this call pass? echo on server peer\nrule: ask\narguments: {\"text\": \"x\"}","requestedSchema":{"properties":{"answer":{"enum":["allow once","deny"],"title":"Your answer","type":"string"}},"required":["answer"],"type":"object"}}}"#;
pub(crate) const FORM_RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"durward_approval":{"method":"elicitation/create","params":{"message":"May this call pass? echo on server peer\nrule: ask\narguments: {\"text\": \"x\"}","requestedSchema":{"properties":{"answer":{"enum":["allow once","deny"],"title":"Your answer","type":"string"}},"required":["answer"],"type":"object"}}}},"requestState":"durward-approval-ID","resultType":"input_required"}}"#;

/// The records of the call that most rows make: allowed, and how it ended.
pub(crate) const ALLOWED: &str = "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=echo direction=to_server request_id=7 resource_type=tool";
pub(crate) const SUCCESS: &str =
    "operation 1 status=Success method=tools/call tool_name=echo request_id=7";
pub(crate) const CANCELLED: &str =
    "operation 1 status=Cancelled method=tools/call tool_name=echo request_id=7";
/// The records of the call that shows that life goes on.
pub(crate) const ALLOWED_AFTER: &str = "decision 2 decision=allow final_rule=tools mcp_method=tools/call tool_name=echo direction=to_server request_id=8 resource_type=tool";
pub(crate) const SUCCESS_AFTER: &str =
    "operation 2 status=Success method=tools/call tool_name=echo request_id=8";
/// That call, as it is sent, as it arrives, and its answer.
pub(crate) const AFTER: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo","arguments":{"text":"after"}{meta}}}"#;
pub(crate) const AFTER_ARRIVED: &str = r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/call","params":{"name":"echo","arguments":{"text":"after"}{meta}}}"#;
pub(crate) const AFTER_ECHOED: &str = r#"{"jsonrpc":"2.0","id":8,"result":{echoed:after}}"#;

pub(crate) const NO_MODERN_REQUESTS: Lack = Lack {
    cells: "*/modern/*",
    why: "2026-07-28 has no requests to clients; they are asked by input_required",
};
pub(crate) const NO_LEGACY_INPUT_REQUIRED: Lack = Lack {
    cells: "*/legacy/*",
    why: "revisions before 2026-07-28 have no input_required; the client is asked by a request",
};

pub(crate) const ASKS_NOTHING: Lack = Lack {
    cells: "*/*/builtin",
    why: "the built-in echo asks its client for nothing",
};
pub(crate) const NEVER_DIES: Lack = Lack {
    cells: "*/*/builtin",
    why: "a built-in server ends with `durward`, and not before",
};
/// What is known to read only may be allowed for a while; of the mock's tool nobody says so.
pub(crate) const READS: &[(&str, &str)] = &[(
    r#""enum":["allow once","deny"]"#,
    r#""enum":["allow once","allow for 10 minutes","deny"]"#,
)];
/// The call of the mock that never answers, as a call of the built-in server that takes ten minutes.
pub(crate) const WAITS: &[(&str, &str)] = &[
    (
        r#""id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}"#,
        r#""id":7,"method":"tools/call","params":{"name":"wait","arguments":{"ms":600000}"#,
    ),
    (
        "tool_name=echo direction=to_server request_id=7",
        "tool_name=wait direction=to_server request_id=7",
    ),
    ("tool_name=echo request_id=7", "tool_name=wait request_id=7"),
];
