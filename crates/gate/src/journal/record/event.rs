//! The names that records of kind `auth`, `config` and `system` are found by: closed sets, one table each.
//!
//! Whoever else writes records of kind `system` (a face) has a set of its own.

use crate::closed_set;

closed_set! {
    /// What a record of kind `auth` is about.
    pub enum AuthEvent {
        KeyRefused "key_refused": "a caller's key was refused; `coalesced` says how often within the interval, `reason` why";
        TokenRefused "token_refused": "an access token of an issuer was refused, or a request had none; `coalesced` says how often within the interval, `reason` why";
        KeyBegun "key_begun": "a key became valid, or valid for something else: it was created, rotated or changed; `subject_id` is its caller, `message` says what it may be used for";
        KeyEnded "key_ended": "a key is no longer valid: it was revoked or replaced, or it expired; `subject_id` is its caller";
        UserRefused "user_refused": "a process of another user was refused, or one whose user could not be found out; `coalesced` says how often within the interval, `subject_id` which user";
        AccountChanged "account_changed": "an account, its tokens or its budgets are changed over HTTP; `message` says what, `subject_id` who does it. Written before the change; where that fails, a second one with the status `failure` says so";
        SessionStarted "session_started": "a client has opened a session over HTTP";
        SessionEnded "session_ended": "a session over HTTP has ended; `end_reason` says how";
    }
}

closed_set! {
    /// How a session over HTTP ended.
    pub enum EndReason {
        Normal "normal": "the client closed it";
        Timeout "timeout": "nothing was asked in it for as long as `session_idle` allows";
        AuthExpired "auth_expired": "the key or access token that opened it is no longer valid";
        Shutdown "shutdown": "the program is shutting down";
        ServerRemoved "server_removed": "the configuration no longer names its server";
    }
}

closed_set! {
    /// What a record of kind `config` is about.
    pub enum ConfigEvent {
        Loaded "loaded": "read at the start, and in force";
        Updated "updated": "read again after a change, and in force";
        ValidationFailed "validation_failed": "read again and refused; what was in force before stays in force";
    }
}

closed_set! {
    /// What a record of kind `system` says of the program and its servers.
    pub enum SystemEvent {
        SessionStarted "session_started": "`run` has begun to guard a server";
        SessionEnded "session_ended": "`run` has ended; `reason` says why, `message` counts the protocol's own messages";
        ServeStarted "serve_started": "`serve` listens; `message` says where";
        ServerAdded "server_added": "a reload has added a server";
        ServerRemoved "server_removed": "a reload has removed a server";
        ApprovalsForgotten "approvals_forgotten": "a person has ended grants with `durward approvals forget`; `message` says which";
        JournalAltered "journal_altered": "a closed segment of the journal is not as it was written; `error_message` says what was found";
        JobEnded "job_ended": "a job that a call started has ended: `op` is that call, `job_id`, `job_kind` and `job_status` the job, `queue_wait_us` how long it waited for a worker, `ran_us` how long it ran";
    }
}

closed_set! {
    /// What the journal itself writes, as records of kind `system`; nobody else can.
    pub enum JournalEvent {
        SegmentOpened "segment_opened": "a segment of the journal begins; names its key, its version and the segment that it continues";
        SegmentClosed "segment_closed": "a segment ends, with a signature over everything in it";
        SegmentRetired "segment_retired": "an old segment was deleted, so that the journal stays within `journal.retain`";
        SegmentAbandoned "segment_abandoned": "the writer of a segment has ended without closing it; where it ends is written down here";
        SegmentSetAside "segment_set_aside": "`durward audit repair` has moved a segment out of the journal, or found it missing; `problem` says what was wrong, `moved_to` where the file is";
        Checkpoint "checkpoint": "a signature over all records so far";
        WitnessFailed "witness_failed": "the signed head could not be copied to a witness";
        WitnessReturned "witness_returned": "a witness takes copies of the signed head again";
    }
}

closed_set! {
    /// How grave a record of kind `system` is.
    pub enum Level {
        Info "info": "part of normal operation";
        Warning "warning": "something is wrong, and was dealt with";
    }
}

closed_set! {
    /// The part of the program that a record of kind `system` or `config` concerns.
    pub enum Component {
        Configuration "configuration": "the file durward.yaml";
        Policy "policy": "the rules in force";
        Mcp "mcp": "sessions, servers and messages of MCP";
        Serve "serve": "the HTTP server";
        Journal "journal": "the journal itself";
    }
}
