// A language server of few words: it marks what is still to be done in a file that is opened, and answers
// textDocument/hover with where it was asked.
let input = Buffer.alloc(0);

function say(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function diagnose({ uri, text }) {
  const diagnostics = [];
  text.split("\n").forEach((words, line) => {
    const start = words.indexOf("TODO");
    if (start < 0) return;
    const range = { start: { line, character: start }, end: { line, character: start + 4 } };
    diagnostics.push({ range, message: "still to be done" });
  });
  say({ method: "textDocument/publishDiagnostics", params: { uri, diagnostics } });
}

function handle({ id, method, params }) {
  if (method === "initialize") {
    say({ id, result: { capabilities: { hoverProvider: true, textDocumentSync: 1 } } });
  } else if (method === "textDocument/didOpen") {
    diagnose(params.textDocument);
  } else if (method === "textDocument/hover") {
    const { line, character } = params.position;
    say({ id, result: { contents: `line ${line}, character ${character}` } });
  } else if (method === "shutdown") {
    say({ id, result: null });
  } else if (method === "exit") {
    process.exit(0);
  } else if (id !== undefined) {
    say({ id, error: { code: -32601, message: `no method ${method}` } });
  }
}

process.stdin.on("data", (chunk) => {
  input = Buffer.concat([input, chunk]);
  for (;;) {
    const end = input.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: *(\d+)/i.exec(input.subarray(0, end).toString())[1]);
    if (input.length < end + 4 + length) return;
    const message = JSON.parse(input.subarray(end + 4, end + 4 + length).toString());
    input = input.subarray(end + 4 + length);
    handle(message);
  }
});
process.stdin.on("end", () => process.exit(0));
