//! A reply: its head, and its body as it comes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::sync::OwnedSemaphorePermit;

use super::fault::HttpFault;
use super::pool::{Kept, Pool};

/// A reply whose head has come. Dropped before its end, it closes the connection.
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    /// Absent once the body has ended.
    connection: Option<Kept>,
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Reply {
    pub(super) fn new(
        response: Response<Incoming>,
        connection: Kept,
        pool: Arc<Pool>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
            connection: Some(connection),
            pool,
            permit,
        }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// All headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The value of a header that may stand only once.
    ///
    /// # Errors
    /// Where it stands more than once or is not plain text.
    pub fn header(&self, name: &HeaderName) -> Result<Option<&str>, RepeatedHeader> {
        let mut values = self.headers.get_all(name).iter();
        let Some(first) = values.next() else {
            return Ok(None);
        };
        match (first.to_str(), values.next()) {
            (Ok(text), None) => Ok(Some(text)),
            _ => Err(RepeatedHeader),
        }
    }

    /// The next bytes of the body; `None` at its end. Cancel-safe.
    ///
    /// # Errors
    /// Where the connection ends before the body does.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpFault> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// As [`Reply::chunk`], for whoever is polled.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, HttpFault>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Ok(None));
        };
        let came = ready!(connection.poll_body(&mut self.body, cx));
        match &came {
            Some(Err(_)) => self.connection = None,
            Some(Ok(_)) if !self.body.is_end_stream() => {}
            Some(Ok(_)) | None => self.end(),
        }
        Poll::Ready(came.transpose())
    }

    /// The whole body, if it is not longer than `bytes_max`. Not cancel-safe.
    ///
    /// # Errors
    /// [`HttpFault::BodyTooLong`] as soon as that shows, else as [`Reply::chunk`].
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, HttpFault> {
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > bytes_max {
            return Err(HttpFault::BodyTooLong);
        }
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.chunk().await? else {
            return fits(first, bytes_max);
        };
        let mut all = BytesMut::with_capacity(announced.max(first.len() + second.len()));
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while all.len() <= bytes_max {
            match self.chunk().await? {
                Some(more) => all.extend_from_slice(&more),
                None => break,
            }
        }
        fits(all.freeze(), bytes_max)
    }

    /// The body has ended: the connection may be used again.
    fn end(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
        self.permit = None;
    }
}

fn fits(bytes: Bytes, bytes_max: usize) -> Result<Bytes, HttpFault> {
    let fits = bytes.len() <= bytes_max;
    fits.then_some(bytes).ok_or(HttpFault::BodyTooLong)
}

/// A header that decides something stands more than once, or is not plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedHeader;

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
