//! Ends what revoked callers have open between requests. What holds a [`RevocationFlag`](gate::RevocationFlag) ends by itself.

use std::sync::Arc;

use super::Face;
use gate::journal::EndReason;

impl Face {
    /// Ends a revoked caller's sessions with their calls and streams, suspended calls, what servers keep for the caller between
    /// requests (processes, port forwards, jobs on hosts), and grants.
    pub fn on_revoked(&self, subject_id: &Arc<str>) {
        self.end_federations(Some(subject_id), EndReason::AuthExpired);
        for session in self.sessions.all() {
            if session.caller.subject == *subject_id {
                self.end(&session, EndReason::AuthExpired);
            }
        }
        self.lot.withdraw(|caller, _| *caller == **subject_id);
        for server in self.all_servers() {
            server.pool.end_caller(subject_id);
            if let Some(builtin) = server.builtin() {
                builtin.caller_revoked(subject_id);
            }
            server.gate.approvals().forget();
        }
    }
}
