use std::io;

use serde_json::{Map, Value, json};
use toolkit::options::{OptionValue, Options};
use toolkit::server::Args;

use super::*;

struct StillClock;

impl gate::Clock for StillClock {
    fn wall_ms(&self) -> i64 {
        1
    }

    fn mono_ns(&self) -> u64 {
        1
    }
}

fn zeros(bytes: &mut [u8]) -> io::Result<()> {
    bytes.fill(0);
    Ok(())
}

/// Calls a tool as it was judged for this model file.
fn call(
    service: &SimulationService,
    judged: Option<&str>,
    tool: &str,
    args: Value,
) -> Result<Value, Kind> {
    let (reply, _news) = ReplySink::new(false, Cancel::default());
    let caller = "ada".into();
    let context = CallContext::new(service, &caller, reply).judged_for(judged);
    let args: Map<String, Value> = serde_json::from_value(args).unwrap();
    let tool = crate::tools::tool(tool).unwrap();
    (tool.run)(&context, Args::new(&args)).map_err(|fault| fault.kind)
}

#[test]
fn what_is_loaded_anew_after_the_judgement_is_not_used() {
    let place = std::env::temp_dir().join(format!("simulation-judged-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let place = place.canonicalize().unwrap();
    let model = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../pbpk/examples/two_compartment.xml"
    );
    let file = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let (a, b) = (file("a.xml"), file("b.xml"));
    for to in [&a, &b] {
        std::fs::copy(model, to).unwrap();
    }
    let mut options = Options::default();
    options.set("models", OptionValue::Paths(vec![place.clone()]));
    let service = SimulationService::new(Setup {
        peer: "judged".into(),
        options,
        base: place.clone(),
        state: place.join("state"),
        journal: place.join("journal"),
        program: "false".into(),
        clock: Arc::new(StillClock),
        random: zeros,
    });
    let load = |judged, path: &str| {
        let args = json!({"filePath": path, "simulationId": "sim"});
        call(&service, judged, "load_simulation", args).map(drop)
    };
    let sim = json!({"simulationId": "sim"});
    let list = |judged| call(&service, judged, "list_parameters", sim.clone()).map(drop);
    // A link that was judged as the one and leads to the other by now.
    std::os::unix::fs::symlink(&b, place.join("link.xml")).unwrap();
    assert_eq!(load(Some(&a), "link.xml"), Err(Kind::Conflict));
    assert_eq!(load(None, "a.xml"), Err(Kind::Conflict));
    assert_eq!(load(Some(&a), "a.xml"), Ok(()));
    assert_eq!(list(Some(&a)), Ok(()));
    call(&service, None, "unload_simulation", sim.clone()).unwrap();
    assert_eq!(load(Some(&b), &b), Ok(()));
    for judged in [Some(a.as_str()), None] {
        assert_eq!(list(judged), Err(Kind::Conflict));
        let run = call(&service, judged, "run_simulation", sim.clone());
        assert_eq!(run.map(drop), Err(Kind::Conflict));
    }
    assert_eq!(list(Some(&b)), Ok(()));
    std::fs::remove_dir_all(&place).unwrap();
}
