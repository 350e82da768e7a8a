//! The keys of the store that replicas share.

use super::{Key, key};

/// All keys below `state`.
pub(super) const STATE: &[Key] = &[
    key(
        "state.url",
        "redis or rediss URL",
        "none: all state is in `state_dir`",
        "the store that replicas of `durward serve` share, such as `redis://127.0.0.1:6379`; budgets are counted there once for all. User and password are never shown",
    ),
    key(
        "state.password",
        "text",
        "none",
        "the store's password, instead of one in the URL, such as `${REDIS_PASSWORD}`; never shown",
    ),
    key(
        "state.prefix",
        "name",
        "durward",
        "the first part of all keys in the store; each fleet has its own",
    ),
    key(
        "state.replica",
        "name",
        "",
        "the name of this replica, which no other one of the fleet may have, such as `${HOSTNAME}`; needed with `state.url`",
    ),
    key(
        "state.replicas",
        "number",
        "1",
        "how many replicas the fleet has: so many have to report before a store that has lost its state grants anything",
    ),
    key(
        "state.on_loss",
        "refuse or share",
        "refuse",
        "what calls with a budget get while the store cannot be reached and this replica's part is used up: an error, or the budget divided by `state.replicas`, which all together can exceed",
    ),
];
