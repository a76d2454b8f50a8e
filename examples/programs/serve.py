# Serves HTTP on the listening socket that it inherits, one thread a connection.
import http.server, os, socket


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"{self.path} from python\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # Clients of a Unix socket have no address.
    def address_string(self):
        return self.headers.get("X-Forwarded-For", "-")


# Descriptor 3 is for the process whose number is in LISTEN_PID.
assert os.environ["LISTEN_PID"] == str(os.getpid()) and os.environ["LISTEN_FDS"] == "1"
server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
server.socket = socket.socket(fileno=3)
server.serve_forever()
