//! The keys of providers of models that are in a cloud.

use super::Key;
use super::table::key;

/// Keys of `models.providers` for Bedrock.
pub(super) const CLOUDS: &[Key] = &[
    key(
        "models.providers.*.region",
        "text",
        "",
        "of `bedrock`: the region, such as `us-east-1`",
    ),
    key(
        "models.providers.*.access_key",
        "text",
        "none: `api_key` is shown instead",
        "of `bedrock`: the name of the key of AWS that requests are signed with; write `${AWS_ACCESS_KEY_ID}`",
    ),
    key(
        "models.providers.*.secret_key",
        "text",
        "",
        "beside `access_key`: its secret; write `${AWS_SECRET_ACCESS_KEY}`",
    ),
    key(
        "models.providers.*.session_token",
        "text",
        "none",
        "beside `access_key`, where that is for a session: its token. It is read at the start",
    ),
];
