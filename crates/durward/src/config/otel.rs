//! `otel`: where spans and metrics are exported to.
//!
//! The names of OpenTelemetry's own variables are read as well and outrank the file. What they say wrongly is a warning and
//! exports nothing: they are often set for other programs.

use std::ffi::OsString;

use net::outbound::http::{Target, TargetFault};

use super::expand::Secret;
use super::fault::Fault;
use super::rows::{Row, row};
use super::section::Section;
use super::server::headers;
use super::settings::{Origin, Setting, Warning};
use super::values::{self, Choice, Span};

/// How long one try may take.
const TIMEOUT: std::ops::RangeInclusive<Span> = Span(100)..=Span(60_000);
/// How often metrics are sent.
const INTERVAL: std::ops::RangeInclusive<Span> = Span(1_000)..=Span(3_600_000);
/// How many spans may wait.
const QUEUE: std::ops::RangeInclusive<u64> = 64..=65_536;
/// Longest name of a service, in bytes.
const SERVICE_BYTES_MAX: usize = 256;

/// How the messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Binary protobuf in the body of a POST.
    HttpProtobuf,
}

impl Choice for Protocol {
    const WORDS: &'static [(&'static str, Self)] = &[("http/protobuf", Self::HttpProtobuf)];
}

/// What is exported, and how.
#[derive(Debug, Clone)]
pub struct Otel {
    /// The collector's base URL; absent: nothing is exported.
    pub endpoint: Option<Setting<Target>>,
    pub headers: Setting<Vec<(String, Secret)>>,
    pub protocol: Setting<Protocol>,
    pub traces: Setting<bool>,
    pub metrics: Setting<bool>,
    /// The part of the traces that begin here which is kept, from 0 to 1.
    pub sampling: Setting<f64>,
    /// Of one try.
    pub timeout: Setting<Span>,
    pub interval: Setting<Span>,
    /// Spans.
    pub queue: Setting<u64>,
    pub service: Setting<String>,
}

impl Default for Otel {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: Setting::default(Vec::new()),
            protocol: Setting::default(Protocol::HttpProtobuf),
            traces: Setting::default(true),
            metrics: Setting::default(true),
            sampling: Setting::default(1.0),
            timeout: Setting::default(Span(10_000)),
            interval: Setting::default(Span(60_000)),
            queue: Setting::default(2_048),
            service: Setting::default("durward".to_owned()),
        }
    }
}

impl Otel {
    /// What applies, where something is exported. Values of headers are not shown.
    pub fn rows(&self) -> Vec<Row> {
        let Some(endpoint) = &self.endpoint else {
            return Vec::new();
        };
        let flag = |is: &bool| values::word(*is).to_owned();
        vec![
            row("otel.endpoint", endpoint, ToString::to_string),
            row("otel.headers", &self.headers, |headers| {
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                if names.is_empty() {
                    return "none".to_owned();
                }
                format!("{}: ***", names.join(", "))
            }),
            row("otel.protocol", &self.protocol, |protocol| {
                values::word(*protocol).to_owned()
            }),
            row("otel.traces", &self.traces, flag),
            row("otel.metrics", &self.metrics, flag),
            row("otel.sampling", &self.sampling, ToString::to_string),
            row("otel.timeout", &self.timeout, ToString::to_string),
            row("otel.interval", &self.interval, ToString::to_string),
            row("otel.queue", &self.queue, ToString::to_string),
            row("otel.service", &self.service, Clone::clone),
        ]
    }

    /// Takes over what the environment says.
    pub fn overlay(
        &mut self,
        variable: &dyn Fn(&str) -> Option<OsString>,
        insecure: bool,
        warnings: &mut Vec<Warning>,
    ) {
        let mut wrong = |name: &str, why: &str| {
            warnings.push(Warning {
                line: None,
                message: format!("{name} {why}; nothing is exported because of it"),
            });
        };
        // OpenTelemetry takes a variable without a value as absent.
        let text = |name| {
            let value = variable(name)?.into_string().ok()?;
            (!value.is_empty()).then_some(value)
        };
        for name in VARIABLES {
            let Some(text) = text(name) else {
                continue;
            };
            if let Err(why) = self.take(name, &text, insecure) {
                wrong(name, &why);
                self.endpoint = None;
                return;
            }
        }
        if text(DISABLED).is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            self.endpoint = None;
        }
    }

    fn take(&mut self, name: &'static str, text: &str, insecure: bool) -> Result<(), String> {
        match name {
            ENDPOINT => {
                self.endpoint = Some(from(name, endpoint(text, insecure)?));
            }
            "OTEL_EXPORTER_OTLP_HEADERS" => self.headers = from(name, listed(text)?),
            "OTEL_EXPORTER_OTLP_PROTOCOL" => {
                let protocol = values::of_word(text).ok_or_else(not_spoken)?;
                self.protocol = from(name, protocol);
            }
            "OTEL_EXPORTER_OTLP_TIMEOUT" => {
                self.timeout = from(name, milliseconds(text, &TIMEOUT)?);
            }
            "OTEL_METRIC_EXPORT_INTERVAL" => {
                self.interval = from(name, milliseconds(text, &INTERVAL)?);
            }
            "OTEL_TRACES_SAMPLER_ARG" => self.sampling = from(name, ratio(text)?),
            _ => self.service = from(name, service(text)?),
        }
        Ok(())
    }
}

/// OpenTelemetry's variable that switches everything off.
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// Its variable for the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Its variables that say what a key says.
const VARIABLES: [&str; 7] = [
    ENDPOINT,
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_SERVICE_NAME",
];

fn from<T>(name: &'static str, value: T) -> Setting<T> {
    Setting {
        value,
        origin: Origin::Environment(name),
    }
}

fn not_spoken() -> String {
    "is not http/protobuf, the only supported protocol".to_owned()
}

/// The collector's base URL.
fn endpoint(text: &str, insecure: bool) -> Result<Target, String> {
    Target::parse(text.trim_end_matches('/'), insecure).map_err(|fault| match fault {
        TargetFault::UserInfo => {
            "holds a name or password, which logs would show; use otel.headers".to_owned()
        }
        fault => format!("cannot be exported to: {fault}"),
    })
}

/// `name=value` with commas between, values percent-encoded.
fn listed(text: &str) -> Result<Vec<(String, Secret)>, String> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_encoding::percent_decode_str(value.trim())
            .decode_utf8()
            .ok()?;
        super::server::is_header(name.trim(), &value)
            .then(|| (name.trim().to_owned(), Secret::new(value.into_owned())))
    };
    pairs
        .map(|pair| {
            read(pair).ok_or_else(|| "is not a list of NAME=VALUE separated by commas".to_owned())
        })
        .collect()
}

fn milliseconds(text: &str, range: &std::ops::RangeInclusive<Span>) -> Result<Span, String> {
    let span = values::digits(text)
        .map(Span)
        .ok_or("is not a number of milliseconds")?;
    if range.contains(&span) {
        Ok(span)
    } else {
        Err(format!(
            "is outside of {} to {}",
            range.start(),
            range.end()
        ))
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let is_plain = text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    let ratio: Option<f64> = text.parse().ok().filter(|_| is_plain);
    ratio
        .filter(|ratio| (0.0..=1.0).contains(ratio))
        .ok_or_else(|| "is not a number from 0 to 1, such as 0.1 for a tenth".to_owned())
}

fn service(text: &str) -> Result<String, String> {
    let fits = (1..=SERVICE_BYTES_MAX).contains(&text.len());
    if fits && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(format!("is not a name of 1 to {SERVICE_BYTES_MAX} bytes"))
    }
}

/// Reads the section. `insecure`: the URL may be one with http:// to another machine.
pub fn read(top: &Section<'_>, insecure: bool) -> Result<Otel, Fault> {
    let section = top.section("otel")?;
    let usual = Otel::default();
    let endpoint = section.read("endpoint", |text| endpoint(text, insecure))?;
    let has_variable = top.variable()(ENDPOINT).is_some_and(|value| !value.is_empty());
    if endpoint.is_none() && top.member("otel").is_some() && !has_variable {
        return Err(section.own_fault("has no endpoint").hint(format!(
            "write otel: {{ endpoint: \"http://127.0.0.1:4318\" }}, or set {ENDPOINT}"
        )));
    }
    let headers = match section.member("headers") {
        Some(member) => Setting::in_file(headers(&section, false)?, member.node.at),
        None => usual.headers,
    };
    Ok(Otel {
        endpoint,
        headers,
        protocol: section.choice("protocol")?.unwrap_or(usual.protocol),
        traces: section.choice("traces")?.unwrap_or(usual.traces),
        metrics: section.choice("metrics")?.unwrap_or(usual.metrics),
        sampling: section.read("sampling", ratio)?.unwrap_or(usual.sampling),
        timeout: section.within("timeout", TIMEOUT)?.unwrap_or(usual.timeout),
        interval: section
            .within("interval", INTERVAL)?
            .unwrap_or(usual.interval),
        queue: section.number("queue", QUEUE)?.unwrap_or(usual.queue),
        service: section.read("service", service)?.unwrap_or(usual.service),
    })
}

#[cfg(test)]
mod tests;
