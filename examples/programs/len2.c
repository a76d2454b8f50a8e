/* Answers each message with its bytes doubled: "ab" gives "aabb". Both begin with a length of two
 * bytes, the greater one first, as Erlang's {packet, 2} has it. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int read_all(unsigned char *to, size_t count) {
    size_t have = 0;
    while (have < count) {
        ssize_t got = read(0, to + have, count - have);
        if (got <= 0) return 0;
        have += (size_t)got;
    }
    return 1;
}

static int write_all(const unsigned char *from, size_t count) {
    while (count > 0) {
        ssize_t put = write(1, from, count);
        if (put <= 0) return 0;
        from += put;
        count -= (size_t)put;
    }
    return 1;
}

int main(void) {
    static unsigned char in[65535], out[2 + 65535];
    unsigned char head[2];
    while (read_all(head, 2)) {
        size_t length = (size_t)head[0] << 8 | head[1];
        if (!read_all(in, length)) return 1;
        size_t made = length * 2 > 65535 ? 65535 : length * 2;
        for (size_t i = 0; i < made; i++) out[2 + i] = in[i / 2];
        out[0] = (unsigned char)(made >> 8);
        out[1] = (unsigned char)made;
        if (!write_all(out, made + 2)) return 1;
    }
    return 0;
}
