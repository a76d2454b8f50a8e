"""Servers in Python that send N bytes to whoever connects: threads.py mixin|pool BYTES [TICK_MS]

mixin: socketserver's ThreadingMixIn, a thread for each connection.
pool:  a pool of threads as it was proposed for that module in 2008: at least 2, at most 200; one more is started when
       more than three requests wait; one ends itself when it finds more than 20 idle (and, unlike the original, never
       the last of the least).

With TICK_MS a thread's start is followed by a sleep to the next tick of a clock that ticks so often: what the one
microsecond of sleep in Thread.start() of Python 2 was on a kernel that rounds every sleep to its ticks.
"""

import queue
import socketserver
import sys
import threading
import time

LEAST, MOST, SPARE, QUEUE = 2, 200, 20, 3


class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(REPLY)


class Mixin(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 4096
    tick = 0

    def process_request(self, request, client_address):
        super().process_request(request, client_address)
        if self.tick:
            now = time.monotonic()
            time.sleep(self.tick - now % self.tick)


class Pool(socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = 4096

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.waiting = queue.Queue()
        self.count = threading.Lock()
        self.threads = self.busy = 0
        for _ in range(LEAST):
            self.start()

    def start(self):
        self.threads += 1
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            request, client_address = self.waiting.get()
            with self.count:
                self.busy += 1
            try:
                self.finish_request(request, client_address)
            except OSError:
                pass
            finally:
                self.shutdown_request(request)
            with self.count:
                self.busy -= 1
                if self.threads - self.busy > SPARE and self.threads > LEAST:
                    self.threads -= 1
                    return

    def process_request(self, request, client_address):
        self.waiting.put((request, client_address))
        with self.count:
            if self.waiting.qsize() > QUEUE and self.threads < MOST:
                self.start()

    def handle_error(self, request, client_address):
        pass


KIND = {"mixin": Mixin, "pool": Pool}[sys.argv[1]]
REPLY = b"x" * int(sys.argv[2])
server = KIND(("127.0.0.1", 0), Answer)
if len(sys.argv) > 3:
    server.tick = float(sys.argv[3]) / 1000
print('ready {"listeners":{"main":"%s:%d"}}' % server.server_address, flush=True)
server.serve_forever()
