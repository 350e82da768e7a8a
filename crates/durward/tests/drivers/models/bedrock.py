"""Plays Amazon Bedrock: every request's signature is computed anew by botocore, and the model's name says what is answered.

Prints the port on which it listens. What it sends as a stream is read by botocore before it is sent, unless it is to be broken.
"""

import base64
import binascii
import http.server
import json
import struct
import sys
import urllib.parse

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer

sys.dont_write_bytecode = True
import claude  # noqa: E402

ACCESS, SECRET, TOKEN = "AKIDEXAMPLE", "c4nary/secret+key", "c4nary-token=="
BEARER = "c4nary-bearer"
REGION = "eu-west-3"


def frame(headers, payload):
    """A frame, as AWS's documentation of the format has it."""
    head = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    out = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    out += struct.pack(">I", binascii.crc32(out))
    out += head + payload
    return out + struct.pack(">I", binascii.crc32(out))


def chunk(event):
    data = json.dumps(event, ensure_ascii=False).encode()
    payload = json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abcdefgh"}).encode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, payload)


def exception(kind, message):
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


# What Bedrock adds to the last event of a stream.
METRICS = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 7}}
ERRORS = {
    "throttled": (429, "ThrottlingException", "Too many requests"),
    "invalid": (400, "ValidationException", "max_tokens: has to be positive"),
    "long": (400, "ValidationException", "Input is too long for requested model."),
    "denied": (403, "AccessDeniedException", f"User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel {TOKEN}"),
    "expired": (403, "ExpiredTokenException", f"The security token {TOKEN} is expired"),
    "down": (503, "ServiceUnavailableException", "try later"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def wrong(self, body):
        """Why the request is refused, where it is."""
        shown = self.headers["authorization"] or ""
        if shown == f"Bearer {BEARER}":
            return None
        names = shown.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        if not {"host", "content-type", "x-amz-date", "x-amz-security-token"} <= set(names):
            return f"not signed: {names}"
        url = f"http://{self.headers['host']}{self.path}"
        signed = {name: self.headers[name] for name in names if name not in ("host", "x-amz-date", "x-amz-security-token")}
        request = AWSRequest(method=self.command, url=url, data=body, headers=signed)
        request.context["timestamp"] = self.headers["x-amz-date"]
        signer = SigV4Auth(Credentials(ACCESS, SECRET, TOKEN), "bedrock", REGION)
        if TOKEN != self.headers["x-amz-security-token"]:
            return "another session token"
        request.headers["X-Amz-Date"] = self.headers["x-amz-date"]
        request.headers["X-Amz-Security-Token"] = TOKEN
        canonical = signer.canonical_request(request)
        own = signer.signature(signer.string_to_sign(request, canonical), request)
        return None if shown.endswith(f"Signature={own}") else f"own canonical request: {canonical}"

    def answer(self, status, body, kind="application/json", more=()):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, kind, said):
        self.answer(status, json.dumps({"message": said}).encode(), more=[("x-amzn-ErrorType", f"{kind}:http://internal.amazon.com/")])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        why = self.wrong(body)
        if why:
            return self.fail(403, "InvalidSignatureException", why)
        _, _, model, action = self.path.split("/")
        model = urllib.parse.unquote(model)
        asked = json.loads(body)
        if asked.get("anthropic_version") != "bedrock-2023-05-31" or "model" in asked or "stream" in asked or "max_tokens" not in asked:
            return self.fail(400, "ValidationException", f"not as Bedrock wants it: {sorted(asked)}")
        if model in ERRORS:
            return self.fail(*ERRORS[model])
        if action == "invoke":
            said = json.dumps(asked["anthropic_beta"]) if "anthropic_beta" in asked else "bonjour, été\n"
            content = [{"type": "text", "text": said}]
            return self.answer(200, json.dumps(claude.message(model, content, "end_turn", 5)).encode())
        assert action == "invoke-with-response-stream", action
        self.stream(model)

    def stream(self, model):
        frames = [chunk(event) for event in claude.events(model, **METRICS)]
        buffer = EventStreamBuffer()
        buffer.add_data(b"".join(frames))
        assert len(list(buffer)) == len(frames), "botocore reads them all"
        if model == "cut":
            frames = frames[:3] + [frames[3][:-5]]
        elif model == "broken":
            frames[3] = frames[3][:-9] + bytes([frames[3][-9] ^ 1]) + frames[3][-8:]
        elif model == "broken-head":
            frames[3] = frames[3][:1] + bytes([frames[3][1] ^ 1]) + frames[3][2:]
        elif model == "huge":
            head = struct.pack(">II", 0x7FFFFFFF, 0)
            frames[3] = head + struct.pack(">I", binascii.crc32(head))
        elif model == "no-bytes":
            frames[3] = frame({":event-type": "chunk", ":message-type": "event"}, b"{}")
        elif model == "throttled-later":
            frames = [exception("throttlingException", "Too many tokens")]
        elif model == "fails-later":
            frames[3] = exception("modelStreamErrorException", "the model has had enough")
        elif model == "odd-kind":
            return self.answer(200, b"".join(frames), "text/event-stream")
        # Frames need not begin where parts of the body do.
        whole = b"".join(frames)
        self.send_response(200)
        self.send_header("content-type", "application/vnd.amazon.eventstream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at in range(0, len(whole), 100):
            part = whole[at : at + 100]
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A caller that goes away in the middle is no error here."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*_)


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
