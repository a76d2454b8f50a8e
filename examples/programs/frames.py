"""Answers each frame with its bytes in capitals. Its argument says how many bytes a length has."""
import sys

width = int(sys.argv[1])
read, write = sys.stdin.buffer, sys.stdout.buffer
while len(head := read.read(width)) == width:
    body = read.read(int.from_bytes(head, "big")).upper()
    write.write(len(body).to_bytes(width, "big") + body)
    write.flush()
