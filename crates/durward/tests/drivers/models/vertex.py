"""Plays Google Vertex, the endpoint of its tokens and a machine's metadata server, for whoever has the credentials that it writes.

vertex.py FOLDER writes service accounts and users into FOLDER, has Google's and Anthropic's own libraries ask it, and prints the port
on which it listens. Assertions are checked by google-auth. GET /seen says what the libraries have sent, what others have sent, and
how often tokens were asked for.
"""

import collections
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

from anthropic import AnthropicVertex
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google import genai
from google.auth import jwt
from google.genai import types
from google.oauth2 import service_account

sys.dont_write_bytecode = True
import claude  # noqa: E402

FOLDER = pathlib.Path(sys.argv[1])
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
EMAIL, KEY_ID = "gate@p-1.iam.gserviceaccount.com", "kid-1"
CLIENT, SECRET, REFRESH = "client-1", "c4nary secret&=", "1//c4nary+refresh"
OUTSIDE = "c4nary-from-elsewhere"
SAID = "bonjour, été\n"
PROJECT, LOCATION = "p-1", "europe-west4"

lock = threading.Lock()
tokens, revoked = {OUTSIDE}, set()
asked = collections.Counter()
under_way, most = 0, 0
seen = {"libraries": [], "others": []}
whose = "libraries"


def pem(key):
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def write_credentials(base):
    def service(name, path, key=KEY, **more):
        text = {"type": "service_account", "project_id": PROJECT, "private_key_id": KEY_ID, "private_key": pem(key),
                "client_email": EMAIL, "token_uri": base + path, **more}
        (FOLDER / name).write_text(json.dumps(text))

    service("service.json", "/token")
    service("short.json", "/token/short")
    for name in ("refused", "down", "stall", "garbage", "empty"):
        service(f"{name}.json", f"/token/{name}")
    service("other-key.json", "/token", rsa.generate_private_key(public_exponent=65537, key_size=2048))
    service("wrong-project.json", "/token", project_id="p-2")
    service("no-project.json", "/token", project_id=None)
    user = {"type": "authorized_user", "client_id": CLIENT, "client_secret": SECRET, "refresh_token": REFRESH,
            "quota_project_id": PROJECT, "token_uri": base + "/token"}
    (FOLDER / "user.json").write_text(json.dumps(user))
    (FOLDER / "user-gone.json").write_text(json.dumps({**user, "refresh_token": REFRESH + "x"}))
    (FOLDER / "token").write_text(OUTSIDE + "\n")


def why_not(form, uri):
    """Why no token is given, where none is; google-auth says it of an assertion."""
    if form.get("grant_type") == "refresh_token":
        own = {"grant_type": "refresh_token", "client_id": CLIENT, "client_secret": SECRET, "refresh_token": REFRESH}
        # Libraries name the scopes as well.
        return None if {**form, "scope": None} == {**own, "scope": None} else "Token has been expired or revoked."
    if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
        return "unsupported grant"
    try:
        # Google's own library names Google's endpoint whichever it asks.
        audience = [uri, "https://oauth2.googleapis.com/token"] if whose == "libraries" else uri
        claims = jwt.decode(form["assertion"], certs={KEY_ID: PUBLIC}, audience=audience)
    except ValueError as wrong:
        return f"Invalid JWT Signature: {wrong}"
    own = service_account.Credentials.from_service_account_file(FOLDER / "service.json", scopes=[SCOPE])
    own = own._make_authorization_grant_assertion()
    if jwt.decode_header(form["assertion"]) != jwt.decode_header(own):
        return f"another head: {jwt.decode_header(form['assertion'])}"
    times = {"iat": 0, "exp": 0, "aud": 0}
    if {**claims, **times} != {**jwt.decode(own, verify=False), **times} or claims["exp"] - claims["iat"] != 3600:
        return f"other claims: {claims}"
    return None


def gemini(model, text, stop="STOP"):
    one = {"content": {"role": "model", "parts": [{"text": text}]}, **({"finishReason": stop} if stop else {})}
    used = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    return {"candidates": [one], "usageMetadata": used, "modelVersion": model, "responseId": "r-1"}


def embedded(action, sent):
    """Numbers that tell the texts apart, in the form of the method."""
    numbers = lambda text: {"values": [len(text), -0.5, 0.25]}
    text = lambda one: one["content"]["parts"][0]["text"]
    if action == "predict":
        told = lambda one: {"embeddings": {**numbers(one["content"]), "statistics": {"token_count": 2, "truncated": False}}}
        return {"predictions": [told(one) for one in sent["instances"]]}
    if action == "embedContent":
        return {"embedding": numbers(text(sent)), "usageMetadata": {"promptTokenCount": 2}}
    return {"embeddings": [numbers(text(one)) for one in sent["requests"]], "usageMetadata": {"promptTokenCount": 2 * len(sent["requests"])}}


ERRORS = {
    "throttled": (429, "RESOURCE_EXHAUSTED", "Resource exhausted, please try again later."),
    "invalid": (400, "INVALID_ARGUMENT", "temperature has to be below 2"),
    "long": (400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
    "gone": (404, "NOT_FOUND", "Publisher Model was not found or your project does not have access to it."),
    "down": (503, "UNAVAILABLE", "The service is currently unavailable."),
    "denied": (403, "PERMISSION_DENIED", f"Permission 'aiplatform.endpoints.predict' denied, token {OUTSIDE}"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, kind, said):
        self.answer(status, {"error": {"code": status, "message": said, "status": kind}})

    def give(self, expires=3600):
        with lock:
            token = f"c4nary-{len(tokens)}"
            tokens.add(token)
        self.answer(200, {"access_token": token, "expires_in": expires, "token_type": "Bearer"})

    def do_GET(self):
        if self.path == "/seen":
            return self.answer(200, {**seen, "asked": asked, "most_at_once": most})
        if self.path == "/revoke":
            with lock:
                revoked.update(tokens)
                tokens.add("c4nary-another")
            return self.answer(200, {"another": "c4nary-another"})
        if urllib.parse.urlsplit(self.path).path == "/computeMetadata/v1/instance/service-accounts/default/token":
            asked["metadata"] += 1
            if self.headers["metadata-flavor"] != "Google":
                return self.fail(403, "FORBIDDEN", "no flavour")
            return self.give()
        self.fail(404, "NOT_FOUND", self.path)

    def do_POST(self):
        global under_way, most
        body = self.rfile.read(int(self.headers["content-length"]))
        if not self.path.startswith("/token"):
            return self.model(body)
        with lock:
            asked[self.path] += whose == "others"
            under_way += 1
            most = max(most, under_way)
        try:
            self.token(body)
        finally:
            with lock:
                under_way -= 1

    def token(self, body):
        assert self.headers["content-type"] == "application/x-www-form-urlencoded", self.headers
        form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
        why = why_not(form, f"http://{self.headers['host']}{self.path}")
        if why or self.path == "/token/refused":
            return self.answer(400, {"error": "invalid_grant", "error_description": why or f"no more {SECRET}"})
        if self.path == "/token/down":
            return self.answer(503, b"<html>", "text/html")
        if self.path == "/token/garbage":
            return self.answer(200, b"<html>", "text/html")
        if self.path == "/token/empty":
            return self.answer(200, {"id_token": "x"})
        if self.path == "/token/stall":
            return time.sleep(30)
        time.sleep(0.2)
        self.give("2" if self.path == "/token/short" else 3600)

    def model(self, body):
        sent = json.loads(body)
        named = ("authorization", "content-type", "anthropic-beta", "anthropic-version", "x-goog-user-project", "x-api-key", "x-goog-api-key")
        headers = {name: self.headers[name] for name in named if name in self.headers}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        headers["authorization"] = "Bearer" if token in tokens else token
        with lock:
            seen[whose].append({"path": self.path, "body": sent, "headers": headers})
        if token not in tokens or token in revoked:
            return self.fail(401, "UNAUTHENTICATED", f"Request had invalid authentication credentials: {token}")
        path, _, query = self.path.partition("?")
        empty, version, *where, publishers, publisher, models, last = path.split("/")
        model, _, action = urllib.parse.unquote(last).rpartition(":")
        if where != ["projects", PROJECT, "locations", LOCATION]:
            return self.fail(403, "PERMISSION_DENIED", f"no project {where} {token}")
        name = model.removeprefix("claude-").removesuffix("-embedding")
        if name == "own-words":
            said = {"type": "invalid_request_error", "message": "max_tokens: has to be positive"}
            return self.answer(400, {"type": "error", "error": said})
        if name in ERRORS:
            return self.fail(*ERRORS[name])
        if publisher == "google":
            assert (version, query) == ("v1beta1", "alt=sse" if action.startswith("stream") else ""), self.path
            if action in ("predict", "embedContent", "batchEmbedContents"):
                return self.answer(200, {"predictions": []} if name == "short" else embedded(action, sent))
            if action == "generateContent":
                return self.answer(200, gemini(model, SAID))
            return self.stream([(None, gemini(model, "bonjour, ", None)), (None, gemini(model, "été\n"))], name)
        assert (version, publisher, query) == ("v1", "anthropic", ""), self.path
        if model == "count-tokens":
            return self.answer(200, {"input_tokens": 9})
        if action == "rawPredict":
            return self.answer(200, claude.message(model, [{"type": "text", "text": SAID}], "end_turn", 5))
        assert action == "streamRawPredict" and sent["stream"] is True, (action, sent)
        self.stream([(event["type"], event) for event in claude.events(model)], name)

    def stream(self, events, name):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at, (kind, event) in enumerate(events):
            text = (f"event: {kind}\n" if kind else "") + f"data: {json.dumps(event)}\n\n"
            if name == "cut" and at == len(events) - 1:
                self.close_connection = True
                return
            self.wfile.write(f"{len(text.encode()):x}\r\n".encode() + text.encode() + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A caller that goes away in the middle is no error here."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*_)


def ask_by_libraries(base):
    """The requests of the libraries, in the order in which the test repeats them."""
    own = service_account.Credentials.from_service_account_file(FOLDER / "service.json", scopes=[SCOPE])
    google = genai.Client(vertexai=True, project=PROJECT, location=LOCATION, credentials=own, http_options=types.HttpOptions(base_url=base))
    text = lambda parts: "".join(part.text or "" for part in parts)
    most = types.GenerateContentConfig(max_output_tokens=100)
    assert google.models.generate_content(model="gemini-2.5-pro", contents="hello", config=most).text == SAID
    stream = google.models.generate_content_stream(model="gemini-2.5-pro", contents="hello", config=most)
    assert text(stream) == SAID
    weather = types.FunctionDeclaration(name="weather", description="tells it", parameters_json_schema={"type": "object"})
    call = types.FunctionCall(id="a", name="weather", args={"city": "Rome"})
    told = types.FunctionResponse(id="a", name="weather", response={"output": "sunny"})
    contents = [
        types.Content(role="user", parts=[types.Part(text="weather?"), types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\0\0\0"))]),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(role="user", parts=[types.Part(function_response=told)]),
    ]
    config = types.GenerateContentConfig(
        system_instruction=types.Content(parts=[types.Part(text="Be brief.")]), temperature=0.5, top_p=0.25, stop_sequences=["x"], seed=3,
        max_output_tokens=50, tools=[types.Tool(function_declarations=[weather])],
        tool_config=types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=["weather"])),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=1024),
        response_mime_type="application/json", response_json_schema={"type": "object"},
    )
    google.models.generate_content(model="gemini-2.5-pro", contents=contents, config=config)
    whole = types.EmbedContentConfig(auto_truncate=False)
    smaller = types.EmbedContentConfig(auto_truncate=False, output_dimensionality=3)
    for model in ("text-embedding-005", "gemini-embedding-001"):
        told = google.models.embed_content(model=model, contents="hello", config=whole)
        assert told.embeddings[0].values == [5, -0.5, 0.25], told
        told = google.models.embed_content(model=model, contents=["hello", "you"], config=smaller)
        assert [one.values[0] for one in told.embeddings] == [5, 3], told
    claude = AnthropicVertex(region=LOCATION, project_id=PROJECT, credentials=own, base_url=base + "/v1")
    plain = {"model": "claude-sonnet-4-5@20250929", "messages": [{"role": "user", "content": "hello"}]}
    assert claude.messages.create(max_tokens=100, **plain).content[0].text == SAID
    with claude.messages.stream(max_tokens=100, **plain) as stream:
        assert stream.get_final_text() == SAID
    assert claude.beta.messages.create(max_tokens=100, betas=["one-1", "two-2"], **plain).content[0].text == SAID
    assert claude.messages.count_tokens(**plain).input_tokens == 9


server = Server(("127.0.0.1", 0), Handler)
base = f"http://127.0.0.1:{server.server_address[1]}"
write_credentials(base)
threading.Thread(target=server.serve_forever, daemon=True).start()
ask_by_libraries(base)
whose = "others"
most = 0
print(server.server_address[1], flush=True)
threading.Event().wait()
