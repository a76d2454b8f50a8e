# One JSON object a request in, one a reply out.
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] not in ("GET", "POST"):
        answer = {"status": 405, "headers": {"allow": "GET, POST"}}
    elif asked["path"] == "/hello":
        answer = {"headers": {"set-cookie": ["seen=1", "lang=en"]}, "body": "hello\n"}
    else:
        answer = {"status": 404, "body": f"nothing is at {asked['path']}\n"}
    print(json.dumps(answer), flush=True)
