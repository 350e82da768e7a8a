"""Decodes the bodies of OTLP requests by the protocol's own package: FILE... of traces or metrics, one JSON line for each."""

import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

for name in sys.argv[1:]:
    kind = ExportTraceServiceRequest if "traces" in name else ExportMetricsServiceRequest
    message = kind()
    with open(name, "rb") as file:
        message.ParseFromString(file.read())
    # A field that the package does not know would be lost: what is written again has to be what was read.
    unknown = message.ByteSize()
    message.DiscardUnknownFields()
    assert unknown == message.ByteSize(), f"{name} has fields that are none of the protocol's"
    print(json.dumps(MessageToDict(message)))
