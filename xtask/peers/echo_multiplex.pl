#!/usr/bin/perl
# A peer of `cargo xtask bench loop`: an echo by IO::Multiplex as its manual shows it.
use strict;
use warnings;
use IO::Multiplex;
use IO::Socket::INET;

my $mux = IO::Multiplex->new;
$mux->set_callback_object('main');
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 4096, ReuseAddr => 1,
) or die "listen: $@\n";
$mux->listen($listener);
$| = 1;
printf "ready {\"listeners\":{\"main\":\"127.0.0.1:%d\"}}\n", $listener->sockport;
$mux->loop;

sub mux_input {
    my ($class, $mux, $socket, $input) = @_;
    $mux->write($socket, $$input);
    $$input = '';
}

sub mux_eof { my ($class, $mux, $socket) = @_; $mux->close($socket) }
