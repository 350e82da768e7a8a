//! Streams leave their connection to the next call.

use super::support::{ENDPOINTS, PAIRS, Upstream, ask, serve};

#[test]
fn thirty_streams_one_after_another_share_a_connection() {
    for (path, spoken) in [PAIRS[0], PAIRS[1], PAIRS[3], PAIRS[4]] {
        let upstream = Upstream::start();
        let provider = upstream.configured("far", spoken);
        let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
        for _ in 0..30 {
            assert_eq!(ask(&served, path, "far/x", true).status, 200, "{path}");
        }
        assert_eq!(upstream.count(), 30);
        let connections = upstream.web.connections();
        assert!(connections <= 2, "{path} before {spoken}: {connections}");
    }
}

#[test]
fn a_stream_that_is_cut_leaves_no_connection_to_another_call() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", ENDPOINTS[0]);
    let served = serve(
        &format!("models: {{ providers: {{ {provider} }}, stall: 300ms }}"),
        &[],
    );
    for _ in 0..3 {
        let broken = ask(&served, ENDPOINTS[0], "far/fault-stall", true);
        assert!(broken.body.contains("provider_stalled"), "{broken:?}");
        let answer = ask(&served, ENDPOINTS[0], "far/x", true);
        assert!(answer.body.ends_with("data: [DONE]\n\n"), "{answer:?}");
    }
}
