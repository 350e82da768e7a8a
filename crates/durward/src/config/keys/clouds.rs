//! The keys of providers of models that are in a cloud.

use super::{Key, key};

/// Keys of `models.providers` for Bedrock and Vertex.
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
    key(
        "models.providers.*.location",
        "text",
        "",
        "of `vertex`: the location, such as `europe-west4`, `eu`, `us` or `global`",
    ),
    key(
        "models.providers.*.project",
        "text",
        "the credential's own",
        "of `vertex`: the id of the project",
    ),
    key(
        "models.providers.*.credentials",
        "path",
        "the file that `GOOGLE_APPLICATION_CREDENTIALS` names, else that of `gcloud`",
        "of `vertex`: the JSON file of a service account or of a user, by which access tokens are got",
    ),
    key(
        "models.providers.*.token_file",
        "path",
        "none",
        "of `vertex`: a file in which something else keeps an access token; it is read again every minute",
    ),
    key(
        "models.providers.*.metadata",
        "true or false",
        "false",
        "of `vertex`: whether access tokens come from the machine's metadata server",
    ),
];
