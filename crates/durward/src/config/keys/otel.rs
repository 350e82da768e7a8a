//! The keys of the export to OpenTelemetry.

use super::{Key, key};

/// All keys below `otel`.
pub(super) const OTEL: &[Key] = &[
    key(
        "otel.endpoint",
        "http or https URL",
        "none: nothing is exported",
        "the base URL of an OpenTelemetry collector, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are added. `OTEL_EXPORTER_OTLP_ENDPOINT` outranks it",
    ),
    key(
        "otel.headers",
        "a map of texts",
        "none",
        "header fields of each request to it, for its key; never shown. `OTEL_EXPORTER_OTLP_HEADERS` outranks it",
    ),
    key(
        "otel.protocol",
        "http/protobuf",
        "http/protobuf",
        "how messages are written. `OTEL_EXPORTER_OTLP_PROTOCOL` outranks it",
    ),
    key(
        "otel.traces",
        "true or false",
        "true",
        "whether a span of each call is exported",
    ),
    key(
        "otel.metrics",
        "true or false",
        "true",
        "whether what `/metrics` has is exported",
    ),
    key(
        "otel.sampling",
        "0 to 1",
        "1",
        "the part of the traces that is kept; a caller whose `traceparent` says whether it samples has decided for its own. `OTEL_TRACES_SAMPLER_ARG` outranks it",
    ),
    key(
        "otel.timeout",
        "span of time, 100ms to 60s",
        "10s",
        "how long the collector may take to answer one try; no call waits for it. `OTEL_EXPORTER_OTLP_TIMEOUT` (in milliseconds) outranks it",
    ),
    key(
        "otel.interval",
        "span of time, 1s to 1h",
        "60s",
        "how often metrics are exported. `OTEL_METRIC_EXPORT_INTERVAL` (in milliseconds) outranks it",
    ),
    key(
        "otel.queue",
        "64 to 65536",
        "2048",
        "how many spans may wait for the collector; those beyond are dropped, and counted in `durward_otel_spans_total`",
    ),
    key(
        "otel.service",
        "text",
        "durward",
        "the name of this service (`service.name`). `OTEL_SERVICE_NAME` outranks it",
    ),
];
