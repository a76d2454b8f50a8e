"""Counts the requests of each session in memory. Its argument is a port, and 0 is one that it chooses and prints; without one it
serves the listening socket that it inherits."""

import collections
import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

seen = collections.Counter()


class Count(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        who = parse_qs(urlsplit(self.path).query).get("who", ["nobody"])[0]
        seen[who] += 1
        body = f"{os.getpid()} {who} {seen[who]}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if len(sys.argv) > 1:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Count)
    print(server.server_port, flush=True)
else:
    # Descriptor 3 is for the process whose number is in LISTEN_PID.
    assert os.environ["LISTEN_PID"] == str(os.getpid()) and os.environ["LISTEN_FDS"] == "1"
    server = ThreadingHTTPServer(("", 0), Count, bind_and_activate=False)
    server.socket = socket.socket(fileno=3)
server.serve_forever()
