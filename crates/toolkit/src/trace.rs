//! The run that a request belongs to, and the headers that name it: they go on to a server over HTTP.

use gate::RunId;
use gate::journal::OpId;
use http::{HeaderMap, HeaderName};

/// Names the run of a request as its sender likes.
pub const RUN: HeaderName = HeaderName::from_static("x-durward-run");
/// W3C Trace Context; also a member of `_meta` (SEP-414).
pub const TRACEPARENT: &str = "traceparent";

/// Headers that go on with a request; those of the W3C's Trace Context, and ours.
const CARRIED: [HeaderName; 3] = [
    RUN,
    HeaderName::from_static(TRACEPARENT),
    HeaderName::from_static("tracestate"),
];

/// What a request's headers say about its run.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The run, where the headers name one.
    pub run: Option<RunId>,
    /// Those headers, for the server.
    pub headers: Option<Box<HeaderMap>>,
    /// The call on whose behalf the request is made; only calls in process have one.
    pub parent_op: Option<OpId>,
}

impl Trace {
    /// Reads the headers. `x-durward-run` is looked at before `traceparent`; what is said twice or is malformed is as if
    /// it were not there, as W3C Trace Context §3.2.1 has it.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        if !headers.contains_key(&RUN) && !headers.contains_key(TRACEPARENT) {
            return Self::default();
        }
        let once = |name: &HeaderName| {
            let mut values = headers.get_all(name).iter();
            let value = values.next()?;
            values.next().is_none().then_some(value)
        };
        let text = |name| once(name).and_then(|value| value.to_str().ok());
        let [run, traceparent, _] = &CARRIED;
        let named = text(run).and_then(RunId::named);
        let traced = text(traceparent).and_then(RunId::of_trace);
        let (is_named, is_traced) = (named.is_some(), traced.is_some());
        let parent = traced.as_ref().and_then(RunId::parent);
        let mut carried = HeaderMap::new();
        // State without a trace says nothing.
        for (name, goes_on) in CARRIED.iter().zip([is_named, is_traced, is_traced]) {
            if let (true, Some(value)) = (goes_on, once(name)) {
                carried.insert(name, value.clone());
            }
        }
        Self {
            run: named.map(|run| run.or_parent(parent)).or(traced),
            headers: (!carried.is_empty()).then(|| Box::new(carried)),
            parent_op: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(headers: &[(&'static str, &str)]) -> (Option<String>, Vec<String>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let trace = Trace::of(&map);
        let carried = trace.headers.iter().flat_map(|map| map.keys());
        let mut carried: Vec<String> = carried.map(ToString::to_string).collect();
        carried.sort();
        (trace.run.map(|run| run.to_string()), carried)
    }

    #[test]
    fn headers_name_a_run() {
        let trace = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
        let check = |headers: &[(&'static str, &str)], run: Option<String>, carried: &[&str]| {
            let carried: Vec<String> = carried.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(read(headers), (run, carried), "{headers:?}");
        };
        check(&[], None, &[]);
        check(&[("traceparent", PARENT)], trace.clone(), &["traceparent"]);
        check(
            &[
                ("x-durward-run", "n-7"),
                ("traceparent", PARENT),
                ("tracestate", "a=b"),
            ],
            Some("n-7".into()),
            &["traceparent", "tracestate", "x-durward-run"],
        );
        check(
            &[("x-durward-run", "a b"), ("tracestate", "a=b")],
            None,
            &[],
        );
        check(
            &[("traceparent", PARENT), ("traceparent", PARENT)],
            None,
            &[],
        );
        check(
            &[("x-durward-run", "a b"), ("traceparent", PARENT)],
            trace,
            &["traceparent"],
        );
    }
}
