"""Answers each netstring with its bytes in reverse."""
import sys

read, write = sys.stdin.buffer, sys.stdout.buffer
while True:
    length = b""
    while (byte := read.read(1)) not in (b":", b""):
        length += byte
    if byte == b"":
        break
    body = read.read(int(length))
    read.read(1)  # the comma
    write.write(b"%d:%s," % (len(body), body[::-1]))
    write.flush()
