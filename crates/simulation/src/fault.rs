//! What can be wrong with a call, under the names that clients of the bridge know.

use std::fmt;

use pbpk::error::{LoadError, SetError};
use pbpk::population::{PlanError, PopulationError};
use pbpk::regimen::RegimenError;
use pbpk::run::RunError;
use pbpk::watch::Interrupt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolkit::jobs::{JobError, JobFault};
use toolkit::outputs::OutputError;
use toolkit::server::{Failure, Unfit};

/// The closed set of names, with the HTTP status of each and whether a retry can help.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident $status:literal $retryable:literal;)*) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[$about])* $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the name in errors.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            /// Returns the status over HTTP.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$kind => $status,)* }
            }

            /// Returns whether the same call may succeed later without anybody changing anything.
            #[must_use]
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$kind => $retryable,)* }
            }
        }
    };
}

kinds! {
    /// An argument that makes no sense, a path outside the folders, a file of the wrong type.
    InvalidInput 400 false;
    /// No credential, or one that is not good.
    Unauthorized 401 false;
    /// A rule says no.
    Forbidden 403 false;
    /// No such simulation, parameter, job, result, chunk or tool.
    NotFound 404 false;
    /// A name that is taken, or an idempotency key of another request.
    Conflict 409 false;
    /// The file is no simulation, or one without anything to simulate.
    UnsupportedModel 400 false;
    /// The file is a simulation with an error in it.
    ModelInvalid 400 false;
    /// The call changes something without a confirmation.
    ConfirmationRequired 428 false;
    /// Too many calls.
    RateLimited 429 true;
    /// Too much is kept or under way.
    Busy 429 true;
    /// The tool or option is known and not there in this version.
    NotImplemented 501 false;
    /// An unforeseen fault.
    InternalError 500 false;
    /// A back end failed.
    InteropError 502 true;
    /// A back end is not installed.
    EnvironmentMissing 503 false;
    /// It took too long.
    Timeout 504 true;
    /// The solver gave up.
    SolverFailure 500 false;
    /// A value became negative that must not.
    NegativeValue 500 false;
    /// More solver steps than allowed.
    TooMuchWork 500 false;
    /// The caller gave it up.
    Cancelled 409 false;
}

/// One thing that is wrong, as clients read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultDetail {
    /// What is wrong.
    pub issue: String,
    /// Which argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A word for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Why a call did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Its kind.
    pub kind: Kind,
    /// The fault, and what to do.
    pub message: String,
    /// More about it.
    pub details: Vec<FaultDetail>,
}

impl Fault {
    /// Returns a fault without details.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// Returns a fault of one argument.
    #[must_use]
    pub fn of(kind: Kind, field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            details: vec![FaultDetail {
                issue: message.clone(),
                field: Some(field.to_owned()),
                hint: None,
                code: None,
            }],
            kind,
            message,
        }
    }

    /// Returns an argument that cannot be used.
    #[must_use]
    pub fn input(field: &str, message: impl Into<String>) -> Self {
        Self::of(Kind::InvalidInput, field, message)
    }

    /// Something that is not there.
    #[must_use]
    pub fn missing(field: &str, message: impl Into<String>) -> Self {
        Self::of(Kind::NotFound, field, message)
    }

    /// Returns the same with what to do, in its last detail.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(last) = self.details.last_mut() {
            last.hint = Some(hint.into());
        }
        self
    }

    /// Returns the same with a word for programs, in its last detail.
    #[must_use]
    pub fn code(mut self, code: &str) -> Self {
        if let Some(last) = self.details.last_mut() {
            last.code = Some(code.to_owned());
        }
        self
    }

    /// As a job keeps it.
    #[must_use]
    pub fn of_job(&self) -> JobFault {
        let mut fault = JobFault::new(self.kind.label(), self.message.clone());
        if !self.details.is_empty() {
            fault.details.insert("details".into(), json!(self.details));
        }
        fault
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let mut failure = Self::new(fault.kind.label(), fault.message);
        failure.retryable = fault.kind.is_retryable();
        failure = failure.with("status", fault.kind.status());
        if !fault.details.is_empty() {
            failure = failure.with("details", json!(fault.details));
        }
        failure
    }
}

impl From<Unfit> for Fault {
    fn from(unfit: Unfit) -> Self {
        let detail = |fault: &toolkit::schema::Fault| FaultDetail {
            issue: fault.wrong.clone(),
            field: Some(fault.member.clone()),
            hint: None,
            code: Some(
                if fault.wrong == "is required" {
                    "missing"
                } else {
                    "value_error"
                }
                .to_owned(),
            ),
        };
        Self {
            kind: Kind::InvalidInput,
            message: unfit.to_string(),
            details: unfit.faults.iter().map(detail).collect(),
        }
    }
}

impl From<JobError> for Fault {
    fn from(error: JobError) -> Self {
        let message = error.to_string();
        match error {
            JobError::NotFound => Self::missing("jobId", message),
            JobError::Conflict { .. } => Self::of(Kind::Conflict, "Idempotency-Key", message),
            JobError::CallerFull { .. } | JobError::Full { .. } => Self::new(Kind::Busy, message),
            JobError::TooLong { .. } => Self::new(Kind::InvalidInput, message),
            JobError::Superseded { .. } | JobError::Store(_) => {
                Self::new(Kind::InternalError, message)
            }
        }
    }
}

impl From<OutputError> for Fault {
    fn from(error: OutputError) -> Self {
        let kind = match &error {
            OutputError::Handle(_) | OutputError::NoStream => Kind::NotFound,
            OutputError::TooManyStreams | OutputError::File(_) | OutputError::Store(_) => {
                Kind::InternalError
            }
        };
        Self::new(kind, error.to_string())
    }
}

impl From<state::KvError> for Fault {
    fn from(error: state::KvError) -> Self {
        Self::new(Kind::InternalError, error.to_string())
    }
}

impl From<Interrupt> for Fault {
    fn from(cause: Interrupt) -> Self {
        match cause {
            Interrupt::Cancelled => Self::new(Kind::Cancelled, "cancelled"),
            Interrupt::Deadline => Self::new(Kind::Timeout, "the time is over"),
        }
    }
}

impl From<PopulationError> for Fault {
    fn from(error: PopulationError) -> Self {
        match error {
            PopulationError::Interrupted(cause) => cause.into(),
            error => Self::input("cohort", error.to_string()),
        }
    }
}

impl From<PlanError> for Fault {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Set(error) => error.into(),
            PlanError::Compile(error) => Self::new(Kind::ModelInvalid, error.to_string()),
            PlanError::Interrupted(cause) => cause.into(),
        }
    }
}

impl From<RegimenError> for Fault {
    fn from(error: RegimenError) -> Self {
        match error {
            RegimenError::Interrupted { cause } => cause.into(),
            error => Self::input("regimen", error.to_string()).code("value_error"),
        }
    }
}

impl From<LoadError> for Fault {
    fn from(error: LoadError) -> Self {
        let kind = match &error {
            LoadError::UnsupportedRoot { .. } | LoadError::Project => Kind::UnsupportedModel,
            LoadError::Io { .. } | LoadError::ChangedWhileRead { .. } => Kind::InvalidInput,
            LoadError::Interrupted { cause } => Self::from(*cause).kind,
            LoadError::Xml { .. }
            | LoadError::Limit { .. }
            | LoadError::Invalid { .. }
            | LoadError::UnknownId { .. }
            | LoadError::UnresolvedPath { .. }
            | LoadError::Formula { .. }
            | LoadError::Cycle { .. } => Kind::ModelInvalid,
        };
        Self::of(kind, "filePath", error.to_string())
    }
}

impl From<SetError> for Fault {
    fn from(error: SetError) -> Self {
        let message = error.to_string();
        match error {
            SetError::UnknownPath { nearest, .. } => {
                let fault = Self::missing("parameterPath", message);
                if nearest.is_empty() {
                    fault
                } else {
                    fault.hint(format!("did you mean {}?", nearest.join(" or ")))
                }
            }
            SetError::Ambiguous { .. } => Self::input("parameterPath", message),
            SetError::NotSettable { .. } => {
                Self::input("parameterPath", message).code("not_settable")
            }
            SetError::NotANumber { .. } | SetError::OutOfRange { .. } | SetError::Cycle { .. } => {
                Self::input("value", message).code("value_error")
            }
            SetError::Unit { accepted, .. } => Self::input("unit", message)
                .hint(format!("write one of {}", accepted.join(", ")))
                .code("unit"),
        }
    }
}

impl From<&RunError> for Fault {
    fn from(error: &RunError) -> Self {
        let kind = match error {
            RunError::EmptyGrid
            | RunError::NoDerivative { .. }
            | RunError::NotComparable { .. }
            | RunError::Cycle { .. } => Kind::ModelInvalid,
            RunError::NegativeStart { .. } | RunError::Negative { .. } => Kind::NegativeValue,
            RunError::TooMuchWork { .. } => Kind::TooMuchWork,
            RunError::CannotStart { .. } | RunError::Solver { .. } => Kind::SolverFailure,
            RunError::Interrupted { cause, .. } => Self::from(*cause).kind,
        };
        Self::new(kind, error.to_string())
    }
}

/// Returns the envelope of an error over HTTP.
#[must_use]
pub fn envelope(
    kind: &str,
    message: &str,
    correlation: &str,
    retryable: bool,
    details: Option<&Value>,
) -> Value {
    let mut error = json!({
        "code": kind, "message": message, "correlationId": correlation, "retryable": retryable,
    });
    if let (Some(error), Some(details)) = (error.as_object_mut(), details) {
        error.insert("details".into(), details.clone());
    }
    json!({"error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_statuses_are_errors() {
        for (at, kind) in Kind::ALL.iter().enumerate() {
            assert!((400..600).contains(&kind.status()), "{kind:?}");
            let earlier = Kind::ALL.iter().take(at);
            assert!(
                earlier
                    .into_iter()
                    .all(|other| other.label() != kind.label())
            );
        }
    }

    #[test]
    fn a_failure_has_its_details_and_an_unset_key_is_left_out() {
        let fault =
            Fault::missing("parameterPath", "no quantity has the path 'x'").hint("did you mean y?");
        let failure = Failure::from(fault).json();
        assert_eq!(failure["code"], "NotFound");
        assert_eq!(
            failure["details"],
            json!([{"issue": "no quantity has the path 'x'", "field": "parameterPath", "hint": "did you mean y?"}])
        );
    }
}
