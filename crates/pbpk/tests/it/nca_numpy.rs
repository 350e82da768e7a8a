//! Parameters of observed profiles against NumPy code that was written from the definitions, and against closed forms.

use std::collections::BTreeMap;

use pbpk::pk::{
    Curve, Dosing, DrugApplication, ObservedProfile, PkValue, analyse, analyse_intervals,
};
use serde_json::{Value, json};

use crate::common::python;

const PROFILES: usize = 500;
const INFUSION: f64 = 20.0;

/// Random numbers: SplitMix64.
struct RandomSource(u64);

impl RandomSource {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((x ^ (x >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
}

struct RawProfile {
    points: Vec<(f64, f64, bool)>,
    doses: Vec<f64>,
}

/// Several doses of a drug with first-order uptake, with noise, plateaus, missing values and values below a limit.
fn draw_profile(seed: u64) -> RawProfile {
    let mut random = RandomSource(seed);
    let number = 1 + (random.uniform() * 6.0) as usize;
    let tau = random.between(60.0, 720.0);
    let (uptake, loss) = (random.between(0.01, 0.1), random.between(0.001, 0.009));
    let doses: Vec<f64> = (0..number).map(|i| tau * i as f64).collect();
    let end = tau * number as f64 * random.between(0.9, 1.6);
    let count = 8 + (random.uniform() * 120.0) as usize;
    let mut times: Vec<f64> = (0..count).map(|_| random.between(0.0, end)).collect();
    times.push(0.0);
    if random.uniform() < 0.7 {
        times.extend(
            doses
                .iter()
                .flat_map(|d| [*d, d + tau])
                .filter(|t| *t <= end),
        );
    }
    times.sort_by(f64::total_cmp);
    times.dedup();
    let limit = random.between(0.0, 0.15);
    let plateau = random.uniform() < 0.2;
    let points = times.into_iter().map(|time| {
        let given = doses.iter().filter(|d| **d <= time);
        let value: f64 = given
            .map(|d| (-loss * (time - d)).exp() - (-uptake * (time - d)).exp())
            .sum();
        let value = value * (1.0 + 0.1 * (random.uniform() - 0.5));
        let value = if plateau { value.min(0.4) } else { value };
        let missing = random.uniform() < 0.05;
        let shown = if missing { f64::NAN } else { value };
        (time, shown, !missing && value < limit)
    });
    RawProfile {
        points: points.collect(),
        doses,
    }
}

fn analyse_profile(raw: &RawProfile) -> BTreeMap<&'static str, f64> {
    let profile = ObservedProfile::new(raw.points.iter().copied());
    let dose = |start: &f64| DrugApplication {
        start: *start,
        dose_per_weight: None,
        infusion_time: Some(INFUSION),
    };
    let dosing = Dosing::new(raw.doses.iter().map(dose).collect()).unwrap();
    let curve = Curve::new(&profile.times, &profile.values).unwrap();
    let mut all: Vec<PkValue> = analyse(curve, &dosing).values;
    all.extend(analyse_intervals(curve, &dosing));
    all.into_iter()
        .map(|v| (v.parameter.name, v.value))
        .collect()
}

#[test]
fn five_hundred_profiles_have_the_parameters_of_numpy() {
    let raw: Vec<RawProfile> = (0..PROFILES as u64).map(draw_profile).collect();
    let input: Vec<Value> = raw
        .iter()
        .map(|raw| {
            let column = |of: fn(&(f64, f64, bool)) -> Value| {
                raw.points.iter().map(of).collect::<Vec<Value>>()
            };
            json!({
                "times": column(|p| json!(p.0)), "values": column(|p| json!(p.1)),
                "below": column(|p| json!(p.2)), "doses": raw.doses, "infusion": INFUSION,
            })
        })
        .collect();
    let Some(expected) = python::numpy("nca.py", &Value::Array(input)) else {
        return;
    };
    let mut compared = BTreeMap::<String, usize>::new();
    for (seed, (raw, expected)) in raw.iter().zip(expected.as_array().unwrap()).enumerate() {
        let found = analyse_profile(raw);
        for (name, value) in expected.as_object().unwrap() {
            let (ours, theirs) = (found[name.as_str()], python::number(value));
            let same = ours.is_nan() && theirs.is_nan()
                || ours == theirs
                || (ours - theirs).abs() <= 1e-9 * theirs.abs();
            assert!(same, "profile {seed}, {name}: {ours}, NumPy {theirs}");
            *compared.entry(name.clone()).or_default() += usize::from(theirs.is_finite());
        }
    }
    // Each parameter is a number in a fair share of the profiles.
    for (name, count) in &compared {
        assert!(*count >= 30, "{name} was compared {count} times");
    }
    assert_eq!(compared.len(), 30, "{compared:?}");
}

#[test]
fn repeated_exponentials_have_the_parameters_of_their_closed_forms() {
    let (rate, tau, doses) = (0.01_f64, 120.0, 40_usize);
    let starts: Vec<f64> = (0..doses).map(|i| tau * i as f64).collect();
    let step = 0.05;
    let count = (tau * doses as f64 / step) as usize;
    let times: Vec<f64> = (0..=count).map(|i| step * i as f64).collect();
    // The value at a dose is the one before it, as in a run.
    let value = |t: f64| -> f64 {
        let given = starts.iter().filter(|d| **d < t);
        given.map(|d| (-rate * (t - d)).exp()).sum()
    };
    let values: Vec<f64> = times.iter().map(|t| value(*t)).collect();
    let dose = |start: &f64| DrugApplication {
        start: *start,
        dose_per_weight: None,
        infusion_time: None,
    };
    let dosing = Dosing::new(starts.iter().map(dose).collect()).unwrap();
    let curve = Curve::new(&times, &values).unwrap();
    let all = analyse_intervals(curve, &dosing);
    let found: BTreeMap<&str, f64> = all.iter().map(|v| (v.parameter.name, v.value)).collect();
    let decay = (-rate * tau).exp();
    let expected = [
        ("AUC_tau_tD1", (1.0 - decay) / rate),
        ("AUC_tau_ss", 1.0 / rate),
        ("C_min_ss", decay / (1.0 - decay)),
        ("C_avg_ss", 1.0 / (rate * tau)),
        ("R_ac", 1.0 / (1.0 - decay)),
    ];
    for (name, expected) in expected {
        let deviation = (found[name] - expected).abs() / expected;
        // The first step after a dose rises linearly.
        assert!(deviation < 1e-3, "{name}: {} {expected}", found[name]);
    }
}
