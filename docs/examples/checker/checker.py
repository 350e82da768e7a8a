#!/usr/bin/env python3
"""A checker for the `inspect:` rules of Durward: finds the words of a list in what is sent and answered.

    CHECKER_SECRET=... checker.py --port 7070 --words words.txt

words.txt has one word or phrase a line; case does not matter. Needs Python 3.9 and nothing else.
"""

import argparse
import hashlib
import hmac
import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Questions that are older than this are not answered: somebody may have recorded them.
AGE_SECONDS_MAX = 300
QUESTION_BYTES_MAX = 64 * 1024 * 1024


def strings(value):
    """Every string of a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings(item)


def signed(secret, headers, body):
    """Whether the question is Durward's and a fresh one."""
    stamp = headers.get("Durward-Timestamp", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > AGE_SECONDS_MAX:
        return False
    made = hmac.new(secret, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest("sha256=" + made, headers.get("Durward-Signature", ""))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        size = int(self.headers.get("Content-Length", "0"))
        if size > QUESTION_BYTES_MAX:
            self.close_connection = True
            return self.answer(413, {"error": "the question is too long"})
        body = self.rfile.read(size)
        if not signed(self.server.secret, self.headers, body):
            return self.answer(401, {"error": "the signature is missing, wrong or too old"})
        question = json.loads(body)
        texts = {
            found.group(0)
            for text in strings(question["content"])
            for found in self.server.words.finditer(text)
        }
        return self.answer(200, {"found": bool(texts), "texts": sorted(texts)})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=7070, help="0 takes a free one")
    parser.add_argument("--words", required=True, help="a file with one word or phrase a line")
    options = parser.parse_args()
    secret = os.environ.get("CHECKER_SECRET", "")
    if len(secret) < 16:
        sys.exit("set CHECKER_SECRET to the secret of durward.yaml, at least 16 bytes")
    with open(options.words, encoding="utf-8") as file:
        words = [line.strip() for line in file if line.strip()]
    if not words:
        sys.exit(f"{options.words} has no words")
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.secret = secret.encode()
    server.words = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
