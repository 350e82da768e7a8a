//! Cache and leases on a real Redis server: their contracts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use state::contract::block_on;
use state::contract::cache::check_cache_store;
use state::contract::lease::check_lease_store;
use state::lease::LeaseRequest;
use state::{CacheStore, LeaseStore};
use stores::redis::{RedisCache, RedisLeases};
use stores::{LeaseClock, RedisOptions, RedisServer, StoreThread};

use super::server::redis;

/// Returns a server with another prefix at each call.
fn with_prefixes(url: String) -> impl Fn() -> Arc<RedisServer> {
    let count = AtomicU32::new(0);
    move || {
        let options = RedisOptions {
            prefix: format!("t{}", count.fetch_add(1, Ordering::Relaxed)),
            ..RedisOptions::new(url.clone())
        };
        Arc::new(RedisServer::new(&options).unwrap())
    }
}

#[test]
fn the_cache_on_redis_keeps_the_contract() {
    let Some(redis) = redis() else {
        return;
    };
    let (server, thread) = (
        with_prefixes(redis.url()),
        Arc::new(StoreThread::start().unwrap()),
    );
    let make = || {
        let cache = RedisCache::new(server(), Arc::clone(&thread), LeaseClock::Caller);
        Arc::new(cache) as Arc<dyn CacheStore>
    };
    for seed in 0..2 {
        let report = block_on(check_cache_store(make, seed));
        let report = report.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!(report.skipped, []);
    }
}

#[test]
fn leases_on_redis_keep_the_contract_and_tokens_rise_over_a_loss_of_state() {
    let Some(mut redis) = redis() else {
        return;
    };
    let (server, thread) = (
        with_prefixes(redis.url()),
        Arc::new(StoreThread::start().unwrap()),
    );
    let make = || {
        let leases = RedisLeases::new(server(), Arc::clone(&thread), LeaseClock::Caller);
        Arc::new(leases) as Arc<dyn LeaseStore>
    };
    for seed in 0..4 {
        let report = block_on(check_lease_store(make, seed));
        let report = report.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!(report.skipped, []);
    }
    let leases = RedisLeases::new(server(), Arc::clone(&thread), LeaseClock::Server);
    let acquire = |owner| {
        let request = LeaseRequest {
            name: "leader",
            owner,
            now_ms: 0,
            ttl_ms: 60_000,
        };
        block_on(leases.acquire(request))
    };
    let first = acquire("a").unwrap();
    assert!(acquire("b").is_err());
    redis.restart().unwrap();
    let second = acquire("b").unwrap();
    assert!(second.token > first.token, "{first:?} {second:?}");
    assert!(block_on(leases.renew(&first, 0, 60_000)).is_err());
}
