// Serves HTTP on the listening socket that it inherits.
const http = require("http");

http.createServer((request, response) => {
  response.end(`${request.url} from node\n`);
}).listen({ fd: 3 });
