// Adds the numbers it is given; with "after" it takes so many milliseconds, and others overtake it.
const lines = require("node:readline").createInterface({ input: process.stdin });

lines.on("line", (line) => {
  const asked = JSON.parse(line);
  if (asked.id === undefined) return;
  const { numbers = [], after = 0 } = asked.params ?? {};
  const result = numbers.reduce((sum, number) => sum + number, 0);
  const reply = JSON.stringify({ jsonrpc: "2.0", id: asked.id, result });
  setTimeout(() => process.stdout.write(reply + "\n"), after);
});
lines.on("close", () => process.exit(0));
