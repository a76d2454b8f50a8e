"""Answers every request with its name. Its arguments are a port and the name."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Name(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"{sys.argv[2]}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Name).serve_forever()
