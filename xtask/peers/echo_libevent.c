/* A peer of `cargo xtask bench loop`: an echo by libevent's bufferevents. */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

static void echo(struct bufferevent *stream, void *context) {
    (void)context;
    evbuffer_add_buffer(bufferevent_get_output(stream), bufferevent_get_input(stream));
}

static void ended(struct bufferevent *stream, short what, void *context) {
    (void)what, (void)context;
    bufferevent_free(stream);
}

static void accepted(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
                     int length, void *context) {
    (void)peer, (void)length, (void)context;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct event_base *base = evconnlistener_get_base(listener);
    struct bufferevent *stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(stream, echo, NULL, ended, NULL);
    bufferevent_enable(stream, EV_READ | EV_WRITE);
}

int main(void) {
    struct event_base *base = event_base_new();
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct evconnlistener *listener = evconnlistener_new_bind(
        base, accepted, NULL, LEV_OPT_CLOSE_ON_FREE, 4096, (struct sockaddr *)&address,
        sizeof address);
    if (!listener) return 1;
    socklen_t length = sizeof address;
    getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &length);
    printf("ready {\"listeners\":{\"main\":\"127.0.0.1:%d\"}}\n", ntohs(address.sin_port));
    fflush(stdout);
    return event_base_dispatch(base) < 0;
}
