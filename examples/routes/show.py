"""A server that answers with what it was asked. Its argument is the port; 0 is one that it chooses and prints."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Show(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        lines = [f"{self.server.server_port} was asked {self.command} {self.path}"]
        for name in ("X-Site", "Authorization"):
            if name in self.headers:
                lines.append(f"{name}: {self.headers[name]}")
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET
    do_POST = do_GET

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Show)
print(server.server_port, flush=True)
server.serve_forever()
