//! `/v1/auth/register`, `/v1/user/**`, `/admin/**`: accounts.

use std::sync::Arc;

use super::super::router::HttpFace;
use super::Site;

pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let face = site.accounts.as_ref()?;
    Some(Arc::clone(face) as Arc<HttpFace>)
}
