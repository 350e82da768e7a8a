//! Which part of the accounts a path names.

use toolkit::face::Route;

use crate::accounts::change::Level;

/// What a path is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `/account`: the page for people.
    Page,
    /// `/v1/auth/register`
    Register,
    /// `/v1/user/me`
    Me,
    /// `/v1/user/keys`, or one of a provider.
    Keys(Option<String>),
    /// `/v1/user/tokens`, or one by its id.
    Tokens(Option<String>),
    /// `/admin/users`, or one by name.
    Users(Option<String>),
    /// `/admin/users/NAME/tokens`, or one by its id.
    UserTokens(String, Option<String>),
    /// `/admin/teams` or `/admin/tenants`, or one by name.
    Groups(Level, Option<String>),
}

impl Place {
    /// The methods that are known there.
    pub fn methods(&self) -> &'static str {
        match self {
            Self::Register => "POST",
            Self::Page | Self::Me => "GET",
            Self::Keys(None)
            | Self::Tokens(None)
            | Self::Users(None)
            | Self::UserTokens(_, None) => "GET, POST",
            Self::Keys(Some(_)) | Self::Tokens(Some(_)) | Self::UserTokens(_, Some(_)) => "DELETE",
            Self::Users(Some(_)) => "GET, PATCH, DELETE",
            Self::Groups(_, None) => "GET",
            Self::Groups(_, Some(_)) => "GET, PUT, DELETE",
        }
    }
}

/// The paths that are claimed.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::Exact("/account".into()),
        Route::Exact("/v1/auth/register".into()),
        Route::Prefix("/v1/user".into()),
        Route::Prefix("/admin".into()),
    ]
}

/// What a path names; `None` where it is nothing.
pub(super) fn place(path: &str) -> Option<Place> {
    let mut parts = path.split('/').skip(1);
    let mut next = || parts.next().filter(|part| !part.is_empty());
    let own = |part: Option<&str>| part.map(str::to_owned);
    let first = (next(), next());
    let place = match first {
        (Some("account"), None) => Place::Page,
        (Some("v1"), Some("auth")) => (next()? == "register").then_some(Place::Register)?,
        (Some("v1"), Some("user")) => match next()? {
            "me" => Place::Me,
            "keys" => Place::Keys(own(next())),
            "tokens" => Place::Tokens(own(next())),
            _ => return None,
        },
        (Some("admin"), Some("users")) => {
            let name = own(next());
            match (name, next()) {
                (Some(name), Some("tokens")) => Place::UserTokens(name, own(next())),
                (name, None) => Place::Users(name),
                (_, Some(_)) => return None,
            }
        }
        (Some("admin"), Some("teams")) => Place::Groups(Level::Team, own(next())),
        (Some("admin"), Some("tenants")) => Place::Groups(Level::Tenant, own(next())),
        _ => return None,
    };
    next().is_none().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_parts_of_the_accounts_and_nothing_else() {
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            ("/v1/auth/register", Some(Place::Register)),
            ("/account", Some(Place::Page)),
            ("/account/x", None),
            ("/v1/user/me", Some(Place::Me)),
            ("/v1/user/keys", Some(Place::Keys(None))),
            ("/v1/user/keys/", Some(Place::Keys(None))),
            ("/v1/user/keys/openai", Some(Place::Keys(some("openai")))),
            ("/v1/user/tokens/t_1", Some(Place::Tokens(some("t_1")))),
            ("/admin/users", Some(Place::Users(None))),
            ("/admin/users/ada", Some(Place::Users(some("ada")))),
            (
                "/admin/users/ada/tokens/t_1",
                Some(Place::UserTokens("ada".into(), some("t_1"))),
            ),
            (
                "/admin/teams/red",
                Some(Place::Groups(Level::Team, some("red"))),
            ),
            ("/admin/tenants", Some(Place::Groups(Level::Tenant, None))),
            ("/admin", None),
            ("/admin/config", None),
            ("/v1/user", None),
            ("/v1/user/me/x", None),
            ("/v1/user/keys/a/b", None),
            ("/admin/users/ada/keys", None),
            ("/admin/users/ada/tokens/t_1/x", None),
        ];
        for (path, expect) in cases {
            assert_eq!(place(path), expect, "{path}");
        }
    }
}
