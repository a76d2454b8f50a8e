// A language server of one word: answers textDocument/hover with where it was asked.
let input = Buffer.alloc(0);

function say(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

process.stdin.on("data", (chunk) => {
  input = Buffer.concat([input, chunk]);
  for (;;) {
    const end = input.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: *(\d+)/i.exec(input.subarray(0, end).toString())[1]);
    if (input.length < end + 4 + length) return;
    const asked = JSON.parse(input.subarray(end + 4, end + 4 + length).toString());
    input = input.subarray(end + 4 + length);
    if (asked.id === undefined) continue;
    if (asked.method === "textDocument/hover") {
      const { line, character } = asked.params.position;
      say({ id: asked.id, result: { contents: `line ${line}, character ${character}` } });
    } else {
      say({ id: asked.id, error: { code: -32601, message: `no method ${asked.method}` } });
    }
  }
});
process.stdin.on("end", () => process.exit(0));
