//! `/v1/**`: model APIs.

use std::sync::Arc;

use super::super::router::HttpFace;
use super::Site;

pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let face = site.models.as_ref()?;
    Some(Arc::clone(face) as Arc<HttpFace>)
}
