//! Accounts over HTTP: registration, a user's own account, and the administrator's paths.

mod admin;
mod documents;
mod page;
mod path;
mod user;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dialects::Dialect;
use gate::identity::IdentityFault;
use gate::{Caller, Gate};
use http::{Method, StatusCode};
use net::http::server::{Request, Response};
use serde_json::Value;
use state::MemoryCounter;
use state::counter::{AccountBudget, BudgetUnit, ReserveError, ReserveRequest, SpendAmount};
use toolkit::face::{Route, Scope};
use toolkit::server::BoxFuture;

use super::{Answer, Ids, Told, request_id};
use crate::accounts::change::{NewUser, Note};
use crate::accounts::{AccountFault, Accounts};
use page::Page;
use path::Place;

/// Largest body of a request about accounts, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Most registrations a minute, whoever asks.
pub const REGISTRATIONS_MAX: u64 = 60;

/// What a request comes to.
type Done = Result<Value, AccountFault>;

/// Accounts over HTTP.
pub struct AccountsFace {
    routes: Vec<Route>,
    accounts: Arc<Accounts>,
    gate: Arc<Gate>,
    ids: Ids,
    registrations: MemoryCounter,
    page: Page,
}

impl fmt::Debug for AccountsFace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountsFace({:?})", self.accounts)
    }
}

/// A request about accounts, its body read.
struct Asked {
    place: Place,
    method: Method,
    body: Bytes,
    query: Option<String>,
    caller: Option<Caller>,
    now_ms: i64,
    /// Writes down what is about to change.
    note: Note,
}

/// What somebody who registers writes.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Registration {
    username: String,
}

impl AccountsFace {
    /// Answers for these accounts; changes are recorded by this gate. `salt` distinguishes this instance.
    #[must_use]
    pub fn new(accounts: Arc<Accounts>, gate: Arc<Gate>, salt: u64) -> Self {
        Self {
            routes: path::routes(),
            accounts,
            gate,
            ids: Ids::new(salt),
            registrations: MemoryCounter::default(),
            page: Page::new(),
        }
    }

    async fn answer(&self, who: Result<Caller, IdentityFault>, mut request: Request) -> Response {
        let id = request_id(&request.head.headers).unwrap_or_else(|| self.ids.next());
        let answer = Answer::new(Dialect::OpenAi, id);
        let Some(place) = path::place(request.head.uri.path()) else {
            let told = Told::new("endpoint_not_served", "this endpoint is not served");
            return answer.error(StatusCode::NOT_FOUND, told);
        };
        let caller = match who {
            Ok(caller) => Some(caller),
            Err(_) if matches!(place, Place::Register | Place::Page) => None,
            Err(fault) => return answer.unknown_caller(fault),
        };
        let known = place.methods();
        // The server leaves the body out of an answer to HEAD.
        let method = match request.head.method.clone() {
            Method::HEAD => Method::GET,
            method => method,
        };
        if !known.split(", ").any(|word| word == method.as_str()) {
            return answer.method(known);
        }
        if place == Place::Page {
            return self.page.answer();
        }
        request.take_at_most(BODY_BYTES_MAX);
        let body = match request.read_body().await {
            Ok(body) => body,
            Err(fault) => {
                let told = Told::new(fault.label(), fault.sentence());
                return answer.error(fault.status(), told);
            }
        };
        let asked = Asked {
            query: request.head.uri.query().map(str::to_owned),
            place,
            method,
            body,
            now_ms: self.gate.wall_ms(),
            note: Note {
                gate: Arc::clone(&self.gate),
                by: caller.as_ref().map(|caller| Arc::clone(&caller.subject)),
                request_id: answer.id().to_owned(),
            },
            caller,
        };
        match self.done(asked).await {
            Ok(value) => answer.json(StatusCode::OK, value.to_string().into()),
            Err(fault) => refused(&answer, &fault),
        }
    }

    /// Does what is asked, on a thread that may wait for the disk where something changes.
    async fn done(&self, asked: Asked) -> Done {
        // What changes and cannot be written down is not changed.
        if asked.method != Method::GET && self.gate.has_failed() {
            return Err(AccountFault::Journal);
        }
        if asked.place == Place::Register {
            self.may_register(asked.now_ms)?;
        }
        let accounts = Arc::clone(&self.accounts);
        if asked.method == Method::GET {
            return accounts.act(&asked);
        }
        let done = tokio::task::spawn_blocking(move || accounts.act(&asked));
        done.await.unwrap_or(Err(AccountFault::Store))
    }

    fn may_register(&self, now_ms: i64) -> Result<(), AccountFault> {
        let budget = AccountBudget {
            account: "register".into(),
            unit: BudgetUnit::Requests,
            limit: REGISTRATIONS_MAX,
            window_ms: 60_000,
        };
        let one = SpendAmount {
            requests: 1,
            ..SpendAmount::default()
        };
        let request = ReserveRequest::new(std::slice::from_ref(&budget), one, now_ms);
        match self.registrations.reserve_now(&request) {
            Ok(reservation) => {
                reservation.settle(one);
                Ok(())
            }
            Err(ReserveError::Exhausted { ends_in_ms, .. }) => Err(AccountFault::TooMany {
                retry_after_ms: ends_in_ms.unwrap_or(60_000),
            }),
            Err(
                ReserveError::InvalidAccount
                | ReserveError::StoreFull
                | ReserveError::Unavailable(_),
            ) => Err(AccountFault::Store),
        }
    }
}

fn refused(answer: &Answer, fault: &AccountFault) -> Response {
    let message = fault.to_string();
    let mut told = Told::new(fault.label(), &message);
    if let AccountFault::TooMany { retry_after_ms } = fault {
        told = told.again_after(*retry_after_ms);
    }
    answer.error(fault.status(), told)
}

impl Accounts {
    fn act(&self, asked: &Asked) -> Done {
        match &asked.place {
            Place::Page => Err(AccountFault::NoAccount),
            Place::Register => self.register(asked),
            Place::Me | Place::Keys(_) | Place::Tokens(_) => {
                let caller = asked.caller.as_ref().ok_or(AccountFault::NoAccount)?;
                let user = self.user_of(caller).ok_or(AccountFault::NoAccount)?;
                self.own(asked, &user)
            }
            Place::Users(_) | Place::UserTokens(..) | Place::Groups(..) => {
                self.is_admin(asked.caller.as_ref())?;
                self.administer(asked)
            }
        }
    }

    fn register(&self, asked: &Asked) -> Done {
        if !self.options.is_open {
            return Err(AccountFault::Closed);
        }
        let body: Registration = asked.read()?;
        let new = NewUser {
            name: body.username,
            is_own_doing: true,
            ..NewUser::default()
        };
        let (user, text) = self.add_user(new, asked.now_ms, &asked.note)?;
        Ok(documents::registered(&user, &text))
    }
}

impl Asked {
    /// The body as JSON without doubled or unknown names.
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, AccountFault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| AccountFault::Unfit(format!("the body cannot be taken: {error}")))
    }
}

impl toolkit::face::Face<Request, Response> for AccountsFace {
    fn name(&self) -> &'static str {
        "accounts"
    }

    fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn scope<'p>(&'p self, path: &'p str) -> Scope<'p> {
        match path::place(path) {
            Some(Place::Register | Place::Page) => Scope::Open,
            Some(_) | None => Scope::Account,
        }
    }

    fn handle(
        &self,
        who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(self.answer(who, request))
    }
}
