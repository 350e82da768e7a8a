use std::path::Path;

use super::*;
use crate::config::read as file;
use crate::config::section::Reader;

const TO: &str = "http://127.0.0.1:4318";

fn overlaid(variables: &[(&str, &str)]) -> (Otel, Vec<String>) {
    let (mut otel, mut warnings) = (Otel::default(), Vec::new());
    let find = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    otel.overlay(&find, false, &mut warnings);
    let warnings = warnings.iter().map(ToString::to_string).collect();
    (otel, warnings)
}

#[test]
fn the_environment_says_what_the_keys_say() {
    let (otel, warnings) = overlaid(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", TO),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret%20one, y = 2"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
        ("OTEL_SERVICE_NAME", "gate"),
    ]);
    assert_eq!(warnings, Vec::<String>::new());
    let shown: Vec<(String, String)> = otel
        .rows()
        .into_iter()
        .map(|row| (row.value, row.origin.to_string()))
        .collect();
    let values: Vec<&str> = shown.iter().map(|(value, _)| value.as_str()).collect();
    assert_eq!(
        values,
        [
            "http://127.0.0.1:4318/",
            "x-key, y: ***",
            "http/protobuf",
            "true",
            "true",
            "0.5",
            "250ms",
            "5s",
            "2048",
            "gate"
        ]
    );
    assert_eq!(shown[0].1, "OTEL_EXPORTER_OTLP_ENDPOINT");
    assert_eq!(otel.headers.value[0].1.reveal(), "s3cret one");
    assert!(!format!("{otel:?}").contains("s3cret"), "{otel:?}");
}

#[test]
fn what_the_environment_says_wrongly_exports_nothing_and_is_told() {
    for (name, value, why) in [
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://elsewhere:4318",
            "insecure_http",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector:4317",
            "cannot be exported to",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://a:b@127.0.0.1",
            "otel.headers",
        ),
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "grpc",
            "is not http/protobuf",
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret", "is not a list"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "host=s3cret", "is not a list"),
        (
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "10s",
            "is not a number of milliseconds",
        ),
        (
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "1",
            "is outside of 100ms to 60s",
        ),
        (
            "OTEL_TRACES_SAMPLER_ARG",
            "2",
            "is not a number from 0 to 1",
        ),
        (
            "OTEL_TRACES_SAMPLER_ARG",
            "nan",
            "is not a number from 0 to 1",
        ),
        ("OTEL_SERVICE_NAME", "a\nb", "is not a name"),
    ] {
        // A variable that is given twice counts once: the later case replaces the first.
        let both = [(name, value), ("OTEL_EXPORTER_OTLP_ENDPOINT", TO)];
        let (otel, warnings) = overlaid(&both);
        assert!(otel.endpoint.is_none(), "{name}={value}");
        let [warning] = warnings.as_slice() else {
            panic!("{name}={value}: {warnings:?}");
        };
        assert!(warning.contains(name) && warning.contains(why), "{warning}");
        assert!(!warning.contains("s3cret"), "{warning}");
    }
}

#[test]
fn opentelemetry_can_be_switched_off() {
    let (otel, warnings) = overlaid(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", TO),
        ("OTEL_SDK_DISABLED", "true"),
    ]);
    assert!(otel.endpoint.is_none() && warnings.is_empty());
}

#[test]
fn a_variable_without_a_value_is_absent() {
    let (otel, warnings) = overlaid(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", TO),
        ("OTEL_EXPORTER_OTLP_HEADERS", ""),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", ""),
    ]);
    assert!(otel.endpoint.is_some() && warnings.is_empty());
}

#[test]
fn the_endpoint_is_in_the_file_or_in_the_environment() {
    let read = |endpoint: Option<&'static str>| {
        let variable = move |name: &str| {
            let endpoint = endpoint.filter(|_| name == "OTEL_EXPORTER_OTLP_ENDPOINT");
            endpoint.map(OsString::from)
        };
        let reader = Reader {
            variable: &variable,
            base: Path::new("/"),
            home: None,
        };
        file::settings("otel: { sampling: 0.5 }", &reader).map(|settings| {
            let (mut otel, mut warnings) = (settings.otel, Vec::new());
            otel.overlay(&variable, false, &mut warnings);
            let endpoint = otel.endpoint.map(|endpoint| endpoint.value.to_string());
            (endpoint, otel.sampling.value.to_string())
        })
    };
    let expected = (Some("http://127.0.0.1:4318/".to_owned()), "0.5".to_owned());
    assert_eq!(read(Some(TO)), Ok(expected));
    for absent in [None, Some("")] {
        let fault = read(absent).unwrap_err().to_string();
        assert!(fault.contains("has no endpoint"), "{fault}");
        assert!(fault.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{fault}");
    }
}
