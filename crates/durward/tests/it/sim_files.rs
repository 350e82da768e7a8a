//! `durward sim` with files as people have them.

use std::fs;
use std::process::Output;

use crate::support::components::repository;
use crate::support::guarded::{Place, binary};

fn example() -> String {
    let file = repository().join("crates/pbpk/examples/two_compartment.xml");
    file.display().to_string()
}

fn sim(place: &Place, words: &[&str]) -> Output {
    let mut command = std::process::Command::new(binary());
    command.arg("sim").args(words).current_dir(&place.dir);
    command.output().unwrap()
}

/// What a command that has to succeed prints.
#[track_caller]
fn said(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}{text}");
    text
}

/// The example with an output schema of these times.
fn with_times(place: &Place, first: u32, last: u32) -> String {
    let text = fs::read_to_string(example()).unwrap();
    let start = text.find("<OutputSchema>").unwrap();
    let schema = format!(
        "<OutputSchema><OutputIntervalList><OutputInterval><StartTime>{first}</StartTime><EndTime>{last}</EndTime>\
         <NumberOfTimePoints>2</NumberOfTimePoints></OutputInterval></OutputIntervalList></OutputSchema></Simulation>"
    );
    let file = place.path("timed.xml");
    fs::write(&file, format!("{}{schema}", &text[..start])).unwrap();
    file.display().to_string()
}

#[test]
fn a_path_may_begin_with_its_users_own_name() {
    let place = Place::new();
    let text = r#"<SimulationTransfer version="16"><Simulation name="Sim"><Model><Root id="r" name="Sim"><Children>
        <Container id="c" name="Organ"><Children><Parameter id="p1" name="V" value="2"/>
        <Parameter id="x" name="X" formula="f"/></Children></Container></Children></Root>
        <FormulaCache><Formulas><ExplicitFormula id="f" name="f" formula="a"><Paths><Path path="X|..|V" as="a"/></Paths>
        </ExplicitFormula></Formulas></FormulaCache></Model></Simulation></SimulationTransfer>"#;
    fs::write(place.path("own.pkml"), text).unwrap();
    let listed = said(&sim(&place, &["params", "own.pkml", "--json"]));
    assert!(listed.contains("Organ|X"), "{listed}");
}

#[test]
fn a_run_stores_the_row_at_zero_unless_it_follows_the_development_build() {
    let place = Place::new();
    let model = with_times(&place, 60, 120);
    let rows = |more: &[&str]| {
        let words = ["run", &model, "--csv", "-"];
        let table = said(&sim(&place, &[&words[..], more].concat()));
        let times = table.lines().skip(1);
        let times = times.map(|row| row.split(',').next().unwrap().to_owned());
        times.collect::<Vec<_>>()
    };
    assert_eq!(rows(&[]), ["0", "60", "120"]);
    assert_eq!(rows(&["--osp-version", "13-dev"]), ["60", "120"]);
}

#[test]
fn an_interval_that_ends_before_it_starts_is_refused() {
    let place = Place::new();
    let model = with_times(&place, 120, 60);
    let output = sim(&place, &["run", &model]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && complaint.contains("starts at 120 min"),
        "{complaint}"
    );
}

#[test]
fn populations_of_every_release_of_the_suite_are_read() {
    let place = Place::new();
    let run = |name: &str, text: &str| {
        fs::write(place.path(name), text).unwrap();
        sim(
            &place,
            &[
                "population",
                &example(),
                name,
                "--out",
                &format!("{name}.out"),
            ],
        )
    };
    let modern = "\"IndividualId\",\"Gender\",\"Population\",\"Example|Organism|Weight\"\n\
                  0,\"MALE\",\"European_ICRP_2002\",70\n1,\"FEMALE\",\"European_ICRP_2002\",\n";
    said(&run("modern.csv", modern));
    let kept = fs::read_to_string(place.path("modern.csv.out/population.csv")).unwrap();
    assert!(kept.contains("European_ICRP_2002"), "{kept}");
    let failures = fs::read_to_string(place.path("modern.csv.out/failures.csv")).unwrap();
    assert_eq!(failures.lines().count(), 1, "{failures}");
    said(&run(
        "comma.csv",
        "IndividualId;Example|Organism|Weight [kg]\n0;70,5\n1;60,25\n",
    ));
    let twice = "IndividualId,Example|Organism|Weight [kg],Example|Organism|Weight [kg]\n0,70,80\n";
    let output = run("twice.csv", twice);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && complaint.contains("'Example|Organism|Weight' occurs twice"),
        "{complaint}"
    );
    let grams = run(
        "grams.csv",
        "IndividualId,Example|Organism|Weight [g]\n0,70000\n1,80000\n",
    );
    let complaint = String::from_utf8_lossy(&grams.stderr).into_owned();
    assert!(
        grams.status.success() && complaint.contains("converted from g to kg"),
        "{complaint}"
    );
}

#[test]
fn observations_below_the_limit_are_drawn_as_such() {
    let place = Place::new();
    let data =
        "Time [h],Example|Organism|Central|Drug|Concentration [\u{b5}mol/l]\n1,28.1\n8,<0.2\n";
    fs::write(place.path("observed.csv"), data).unwrap();
    let words = [
        "plot",
        &example(),
        "--observed",
        "observed.csv",
        "--svg",
        "-",
    ];
    let drawn = said(&sim(&place, &words));
    assert!(drawn.contains("below quantification"), "{drawn}");
}

#[test]
fn a_project_is_named_with_what_to_export() {
    let place = Place::new();
    let mut project = b"SQLite format 3\0".to_vec();
    project.extend([0xff; 100]);
    fs::write(place.path("study.pksim5"), project).unwrap();
    let output = sim(&place, &["info", "study.pksim5"]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && complaint.contains("export the simulation as .pkml"),
        "{complaint}"
    );
}
