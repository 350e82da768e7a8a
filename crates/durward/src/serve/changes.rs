//! What a changed configuration changes in what is served: servers come, go, or are started otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Gate;
use gate::journal::{Component, Level, Record, System, SystemEvent};
use gate::paths::PathView;
use mcp::call::ServerOptions;
use mcp::http::Face;

use super::ServeArgs;
use super::plan::{Plan, Planned};
use crate::config::Settings;
use crate::config::server::Server;
use crate::local::LocalView;
use crate::places::Places;
use crate::reload::{Beside, Group, TakeUp};

/// A set of rules, and the servers that it is for.
pub type Ruled = (Arc<Gate>, Group);

/// Takes up servers that have changed.
pub struct Changes {
    args: ServeArgs,
    face: Arc<Face>,
    ruled: Vec<Ruled>,
    places: Places,
    /// The configuration's servers that are served, as they were then.
    served: Mutex<BTreeMap<String, Server>>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Changes")
    }
}

/// What is served under a name, made ready.
pub fn options(
    planned: &Planned,
    means: mcp::upstream::Means,
    gate: Arc<Gate>,
    plan: &Plan,
    places: &Places,
) -> ServerOptions {
    // The paths of another machine cannot be looked up here.
    let view = || LocalView::of(places, &planned.reads).with_environment(planned.environment());
    let view = planned
        .is_local()
        .then(|| Arc::new(view()) as Arc<dyn PathView>);
    ServerOptions {
        name: planned.name.clone(),
        means,
        gate,
        share: plan.share,
        processes_max: planned.processes_max,
        call_timeout_ms: planned.call_timeout_ms,
        tool_timeouts_ms: planned.tool_timeouts_ms.clone(),
        breaker: plan.breaker,
        view,
        roles: planned.reads.arguments.clone(),
        descriptions: plan.descriptions.clone(),
        pins: planned.pins.clone(),
        refusals: plan.refusals,
    }
}

impl Changes {
    /// For what is served now.
    pub fn new(
        args: &ServeArgs,
        settings: &Settings,
        face: &Arc<Face>,
        ruled: Vec<Ruled>,
        places: &Places,
    ) -> Self {
        let served = settings.servers.iter();
        let served = served.map(|server| (server.name.clone(), server.clone()));
        Self {
            args: args.clone(),
            face: Arc::clone(face),
            ruled,
            places: places.clone(),
            served: Mutex::new(served.collect()),
        }
    }

    fn served(&self) -> MutexGuard<'_, BTreeMap<String, Server>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves what the plan says; gives what has to wait for a restart.
    async fn take_up(&self, plan: &Plan, settings: &Settings) -> Vec<String> {
        let mut restart = Vec::new();
        let before = self.served().clone();
        for (name, _) in before.iter().filter(|(n, _)| settings.server(n).is_none()) {
            self.remove(name).await;
        }
        for planned in &plan.servers {
            let Some(server) = settings.server(&planned.name) else {
                continue;
            };
            match before.get(&planned.name) {
                Some(old) if !old.is_served_like(server) => {
                    self.remove(&planned.name).await;
                    restart.extend(self.add(planned, server, plan, settings));
                }
                Some(old) => {
                    let keys = old.bounded_otherwise(server).into_iter();
                    restart.extend(keys.map(|key| format!("servers.{}.{key}", planned.name)));
                }
                None => restart.extend(self.add(planned, server, plan, settings)),
            }
        }
        restart
    }

    /// Serves a further server; gives its key where that has to wait for a restart.
    fn add(
        &self,
        planned: &Planned,
        server: &Server,
        plan: &Plan,
        settings: &Settings,
    ) -> Option<String> {
        let waits = format!("servers.{}", planned.name);
        let of_its_rules = |(_, group): &&Ruled| {
            group.policy(settings).ok().map(|found| found.0) == Some(planned.policy.clone())
        };
        // Rules of its own would need a gate and a control socket of their own.
        let Some((gate, group)) = self.ruled.iter().find(of_its_rules) else {
            return Some(waits);
        };
        let Some(means) = planned.launch().at_once(&planned.name, &self.places) else {
            return Some(waits);
        };
        let options = options(planned, means, Arc::clone(gate), plan, &self.places);
        if !self.face.add(options) {
            return Some(waits);
        }
        group.add(&planned.name);
        self.served().insert(planned.name.clone(), server.clone());
        record(gate, SystemEvent::ServerAdded, &planned.name);
        None
    }

    async fn remove(&self, name: &str) {
        self.served().remove(name);
        let removed = self.face.remove(name).await;
        let ruled = self.ruled.iter().find(|(_, group)| group.remove(name));
        if let (true, Some((gate, _))) = (removed, ruled) {
            record(gate, SystemEvent::ServerRemoved, name);
        }
    }
}

impl Beside for Changes {
    fn prepare(self: Arc<Self>, settings: &Settings, places: &Places) -> Result<TakeUp, String> {
        let plan = Plan::of(&self.args, settings, places)
            .and_then(Plan::with_servers)
            .map_err(|failure| failure.message)?;
        let settings = settings.clone();
        Ok(Box::new(move || {
            Box::pin(async move { self.take_up(&plan, &settings).await })
        }))
    }
}

fn record(gate: &Gate, event: SystemEvent, name: &str) {
    tracing::info!(target: "reload", server = name, "{}", event.label());
    let record = System {
        level: Some(Level::Info),
        component: Some(Component::Serve),
        backend_id: Some(name),
        ..System::of(event)
    };
    // A journal that fails here fails the gate as well.
    drop(gate.record(&Record::System(&record)));
}
