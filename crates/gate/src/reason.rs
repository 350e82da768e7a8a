//! Why a call did not pass: a closed set, at once metric label, journal field and documented code. A
//! leaf: it imports nothing of ours but labels.

use crate::label::ClosedSet;

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A deny rule matched.
    DenyRule,
    /// No rule allows it.
    NoRule,
    /// It touches Durward's own files.
    ProtectedPath,
    /// Its arguments hold more than is looked through for Durward's own files.
    ArgumentsUnread,
    /// A deny rule may match; what would decide it cannot be known.
    Undecidable,
    /// A person was asked and said no.
    ApprovalDenied,
    /// A person was asked and did not answer in time.
    ApprovalTimeout,
    /// The caller went away or cancelled while a person was asked.
    ApprovalWithdrawn,
    /// A person has to be asked, and as many calls wait for people as may.
    ApprovalQueueFull,
    /// A person has to be asked, and as many calls of this caller wait as may.
    ApprovalTooManyWaiting,
    /// A person has to be asked, and this caller has asked often enough for a minute.
    ApprovalTooManyAsked,
    /// Only the client's own person may answer, and this client cannot be asked.
    ApprovalUnreachable,
    /// Only the client's own person may answer, and what the client sent is no answer.
    ApprovalUnfit,
    /// The tool's definition is not the one that was approved.
    DefinitionChanged,
    /// Definitions are pinned, and the pins cannot be read or kept.
    PinsUnreadable,
    /// The name holds characters that cannot be seen.
    UnseenName,
    /// A server asks its client to open an address that is no web page's.
    Address,
    /// The server has not listed a tool of this name.
    UnknownTool,
    /// A call that may change what is found at the places of this one has not ended in time.
    PlaceUnsettled,
    /// A rule of `inspect:` denies part of the message.
    Inspected,
    /// The checker of a rule of `inspect:` could not be asked about the message.
    Unchecked,
    /// The decision could not be written down.
    Journal,
    /// Durward is shutting down.
    Draining,
    /// Too many calls and lists in too short a time.
    RateLimit,
    /// One tool was called too often within its window.
    ToolRateLimit,
    /// The caller has caused as many bytes of journal records as it may in a minute.
    JournalBytesLimit,
    /// Too many calls are under way.
    UnderWayLimit,
    /// The call takes long to read, and as many such calls wait as may.
    ReadingQueueFull,
    /// What the caller may use is used up.
    BudgetSpent,
    /// The store of the budgets cannot be reached, or grants nothing now.
    BudgetUnavailable,
    /// What became known after the decision wants a person, who can no longer be asked.
    ApprovalTooLate,
    /// What became known after the decision contradicts what was judged.
    FactsChanged,
    /// The caller's key was taken back, or its time is over, before the call was judged.
    CallerRevoked,
}

impl Reason {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 33] = [
        Self::DenyRule,
        Self::NoRule,
        Self::ProtectedPath,
        Self::ArgumentsUnread,
        Self::Undecidable,
        Self::ApprovalDenied,
        Self::ApprovalTimeout,
        Self::ApprovalWithdrawn,
        Self::ApprovalQueueFull,
        Self::ApprovalTooManyWaiting,
        Self::ApprovalTooManyAsked,
        Self::ApprovalUnreachable,
        Self::ApprovalUnfit,
        Self::DefinitionChanged,
        Self::PinsUnreadable,
        Self::UnseenName,
        Self::Address,
        Self::UnknownTool,
        Self::PlaceUnsettled,
        Self::Inspected,
        Self::Unchecked,
        Self::Journal,
        Self::Draining,
        Self::RateLimit,
        Self::ToolRateLimit,
        Self::JournalBytesLimit,
        Self::UnderWayLimit,
        Self::ReadingQueueFull,
        Self::BudgetSpent,
        Self::BudgetUnavailable,
        Self::ApprovalTooLate,
        Self::FactsChanged,
        Self::CallerRevoked,
    ];

    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::DenyRule => "denied_by_rule",
            Self::NoRule => "no_rule_allows",
            Self::ProtectedPath => "protected_path",
            Self::ArgumentsUnread => "arguments_unread",
            Self::Undecidable => "undecidable",
            Self::ApprovalDenied => "approval_denied",
            Self::ApprovalTimeout => "approval_timeout",
            Self::ApprovalWithdrawn => "approval_withdrawn",
            Self::ApprovalQueueFull => "approval_queue_full",
            Self::ApprovalTooManyWaiting => "approval_too_many_waiting",
            Self::ApprovalTooManyAsked => "approval_too_many_asked",
            Self::ApprovalUnreachable => "approval_unreachable",
            Self::ApprovalUnfit => "approval_unfit",
            Self::DefinitionChanged => "definition_changed",
            Self::PinsUnreadable => "pins_unreadable",
            Self::UnseenName => "unseen_name",
            Self::Address => "address_not_web",
            Self::UnknownTool => "unknown_tool",
            Self::PlaceUnsettled => "place_unsettled",
            Self::Inspected => "inspection_denied",
            Self::Unchecked => "inspection_unavailable",
            Self::Journal => "journal_failed",
            Self::Draining => "draining",
            Self::RateLimit => "rate_limited",
            Self::ToolRateLimit => "tool_rate_limited",
            Self::JournalBytesLimit => "journal_bytes_limited",
            Self::UnderWayLimit => "too_many_under_way",
            Self::ReadingQueueFull => "reading_queue_full",
            Self::BudgetSpent => "budget_spent",
            Self::BudgetUnavailable => "budget_unavailable",
            Self::ApprovalTooLate => "approval_too_late",
            Self::FactsChanged => "facts_changed",
            Self::CallerRevoked => "caller_expelled",
        }
    }

    /// One sentence for the caller; `rule` is the rule that decided.
    #[must_use]
    pub fn sentence(self, rule: &str) -> String {
        match self {
            Self::DenyRule => format!("refused by the policy: rule \"{rule}\" denies this call"),
            Self::NoRule => "refused by the policy: no rule allows this call".into(),
            Self::ProtectedPath => "refused: the call touches a protected path".into(),
            Self::ArgumentsUnread => {
                "refused: the arguments are too large to be searched for protected paths (8 MiB, 4096 paths, 8 levels of decoding); declare large texts as content in servers.NAME.arguments".into()
            }
            Self::Undecidable => format!(
                "refused: rule \"{rule}\" may deny this call, and a fact that it needs is unknown"
            ),
            Self::ApprovalDenied => {
                format!("refused: rule \"{rule}\" asks for a person's approval, and it was denied")
            }
            Self::ApprovalTimeout => format!(
                "refused: rule \"{rule}\" asks for a person's approval, and nobody answered in time; `durward approvals watch` shows calls that wait"
            ),
            Self::ApprovalWithdrawn => format!(
                "refused: rule \"{rule}\" asks for a person's approval, and the call was withdrawn before the answer"
            ),
            Self::ApprovalQueueFull => format!(
                "refused: rule \"{rule}\" asks for a person's approval, and too many calls wait for one already; try again later"
            ),
            Self::ApprovalTooManyWaiting => format!(
                "refused: rule \"{rule}\" asks for a person's approval, and too many calls of this caller wait for one already; wait for their answers"
            ),
            Self::ApprovalTooManyAsked => format!(
                "refused: rule \"{rule}\" asks for a person's approval, and this caller has asked too often within a minute; try again later"
            ),
            Self::ApprovalUnreachable => format!(
                "refused: rule \"{rule}\" asks for approval at the client, and this client cannot be asked (it has not declared elicitation)"
            ),
            Self::ApprovalUnfit => format!(
                "refused: rule \"{rule}\" asks for approval at the client, and the client's reply is not one of the offered answers"
            ),
            Self::DefinitionChanged => {
                "refused: the tool's definition differs from the approved one; the user has to review it".into()
            }
            Self::PinsUnreadable => {
                "refused: the pinned definitions of this server cannot be read or written; the user has to repair them".into()
            }
            Self::UnseenName => {
                "refused: the name contains invisible characters, so it is not listed".into()
            }
            Self::Address => Self::not_web().into(),
            Self::UnknownTool => "refused: the server lists no tool of this name".into(),
            Self::PlaceUnsettled => {
                "refused: another call that may change the same files has not ended within 5 seconds; make the call again when it has ended".into()
            }
            Self::Inspected => Self::inspected(rule),
            Self::Unchecked => format!(
                "refused: the checker of the rule \"{rule}\" did not answer; make the call again later"
            ),
            Self::Journal => "refused: the decision could not be written to the journal".into(),
            Self::Draining => "refused: shutting down".into(),
            Self::RateLimit => reached("limits.requests on calls and lists of one caller"),
            Self::ToolRateLimit => reached("limits.per_tool on calls of one tool"),
            Self::JournalBytesLimit => {
                reached("limits.journal_bytes on journal records of one caller within a minute")
            }
            Self::UnderWayLimit => reached("limits.concurrency on calls under way at once"),
            Self::ReadingQueueFull => {
                "refused: the call takes long to read, and too many such calls wait already; send shorter strings, or make the call again later"
                    .into()
            }
            Self::BudgetSpent => {
                "refused: this call may use more than is left of the caller's budget; ask for less, or wait for the next window"
                    .into()
            }
            Self::BudgetUnavailable => {
                "refused: the caller has a budget, and the store that counts it cannot be reached or grants nothing now"
                    .into()
            }
            Self::ApprovalTooLate => format!(
                "refused: rule \"{rule}\" asks for a person's approval because of a fact that became known after the decision, when it is too late to ask"
            ),
            Self::FactsChanged => "refused: a fact that became known after the decision contradicts it".into(),
            Self::CallerRevoked => "refused: the key that the call was made with is no longer valid".into(),
        }
    }

    fn not_web() -> &'static str {
        "refused: the server asks the client to open an address, and it is not http or https, or there are several"
    }

    fn inspected(rule: &str) -> String {
        format!("refused: the rule \"{rule}\" denies part of the message; leave that part out")
    }

    /// What the caller can do about it, in sentences for a model.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::DenyRule
            | Self::NoRule
            | Self::ProtectedPath
            | Self::Undecidable
            | Self::Address
            | Self::FactsChanged => {
                "The same call will be refused again: do something else, or tell the user what you need and why."
            }
            Self::ArgumentsUnread => {
                "Send less in one call, or tell the user what you need and why."
            }
            Self::Inspected => {
                "Make the call without what the rule denies, or tell the user what you need and why."
            }
            Self::Unchecked => {
                "The same call can pass once the checker answers: make it again later, or tell the user."
            }
            Self::ApprovalDenied | Self::ApprovalWithdrawn => {
                "Do not repeat this call unless the user asks for it."
            }
            Self::ApprovalTimeout => {
                "Tell the user that a call waits for an answer before you make it again."
            }
            Self::ApprovalUnreachable | Self::ApprovalUnfit | Self::ApprovalTooLate => {
                "Making the call again changes nothing: tell the user."
            }
            Self::DefinitionChanged => {
                "Do not call this tool; tell the user to review it with `durward pins diff`."
            }
            Self::UnseenName | Self::UnknownTool => {
                "List the tools, and call one of those by its name."
            }
            Self::PlaceUnsettled => {
                "The same call can pass once the other one has ended: make calls on the same files one after the other."
            }
            Self::CallerRevoked => "No call with this key can pass: tell the user.",
            Self::PinsUnreadable | Self::Journal => {
                "No call can pass until this is repaired: tell the user."
            }
            Self::BudgetUnavailable => "Make the call again in a minute.",
            Self::Draining => "Make the call again when Durward has started again.",
            Self::ApprovalQueueFull
            | Self::ApprovalTooManyWaiting
            | Self::ApprovalTooManyAsked
            | Self::RateLimit
            | Self::ToolRateLimit
            | Self::JournalBytesLimit
            | Self::UnderWayLimit
            | Self::ReadingQueueFull
            | Self::BudgetSpent => "The same call can pass later: make fewer calls at a time.",
        }
    }

    /// Whether the same call may pass later without anybody changing anything.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Draining
            | Self::RateLimit
            | Self::ToolRateLimit
            | Self::JournalBytesLimit
            | Self::UnderWayLimit
            | Self::ReadingQueueFull
            | Self::PlaceUnsettled
            | Self::Unchecked
            | Self::BudgetSpent
            | Self::BudgetUnavailable
            | Self::ApprovalTimeout
            | Self::ApprovalQueueFull
            | Self::ApprovalTooManyWaiting
            | Self::ApprovalTooManyAsked => true,
            Self::DenyRule
            | Self::NoRule
            | Self::ProtectedPath
            | Self::ArgumentsUnread
            | Self::Undecidable
            | Self::ApprovalDenied
            | Self::ApprovalWithdrawn
            | Self::ApprovalUnreachable
            | Self::ApprovalUnfit
            | Self::DefinitionChanged
            | Self::PinsUnreadable
            | Self::UnseenName
            | Self::Address
            | Self::UnknownTool
            | Self::Inspected
            | Self::ApprovalTooLate
            | Self::FactsChanged
            | Self::CallerRevoked
            | Self::Journal => false,
        }
    }
}

impl ClosedSet for Reason {
    const EVERY: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.label()
    }
}

/// Why a call may not pass, whatever the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quarantine {
    /// Its definition is not the approved one.
    Changed,
    /// The pins of its server cannot be read or kept.
    Unreadable,
    /// Its name holds characters that cannot be seen.
    UnseenName,
    /// The address that it asks to open is no web page's.
    Address,
}

impl Quarantine {
    /// The reason of the refusal.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Changed => Reason::DefinitionChanged,
            Self::Unreadable => Reason::PinsUnreadable,
            Self::UnseenName => Reason::UnseenName,
            Self::Address => Reason::Address,
        }
    }
}

fn reached(limit: &str) -> String {
    format!("refused: the limit {limit} is reached")
}
