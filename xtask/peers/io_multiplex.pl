#!/usr/bin/perl
# The peer of `cargo xtask bench main`: lines of many clients to a few programs on pipes, through
# IO::Multiplex as its manual shows it, with all that makes it quicker and keeps the work the same.
#
#   io_multiplex.pl [--pipeline=N] WORKERS PROGRAM ARGS…
#
# Round robin; N lines in flight a program (1 by default), the rest wait in one queue; answers go back to their
# client in the order of its lines. Says `ready {…}` with its address when it listens. Ends with its
# standard input; its programs end with their pipes.
use strict;
use warnings;
use IO::Handle;
use IO::Multiplex;
use IO::Socket::INET;

my $pipeline = 1;
if (@ARGV && $ARGV[0] =~ /^--pipeline=([0-9]+)$/) {
    $pipeline = $1;
    shift @ARGV;
}
my ($count, @program) = @ARGV;
die "usage: io_multiplex.pl WORKERS PROGRAM ARGS...\n" unless @program;

my $mux = IO::Multiplex->new;
$mux->set_callback_object('Client');

my @waiting;    # [client, slot, line] that no program has taken yet
my @workers = map { Worker->start } 1 .. $count;
my $next = 0;   # round robin

my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 4096, ReuseAddr => 1,
) or die "listen: $@\n";
$mux->listen($listener);
$mux->add(\*STDIN);
$mux->set_callback_object('Owner', \*STDIN);

# Not through IO::Multiplex: nobody may have to wait for this line.
syswrite STDOUT, sprintf qq(ready {"listeners":{"main":"127.0.0.1:%d"}}\n), $listener->sockport;

$mux->loop;

# Gives a line to the next free program, or lets it wait.
sub admit {
    my ($client, $line) = @_;
    my $slot = [];    # holds the answer once it is there
    push @{ $client->{slots} }, $slot;
    for (1 .. @workers) {
        my $worker = $workers[$next];
        $next = ($next + 1) % @workers;
        return $worker->ask($client, $slot, $line) if @{ $worker->{asked} } < $pipeline;
    }
    push @waiting, [$client, $slot, $line];
}

package Owner;

# The bench has closed our standard input.
sub mux_eof { $mux->endloop }

package Client;

# A new connection.
sub mux_connection {
    my ($class, $mux, $handle) = @_;
    my $self = bless { handle => $handle, slots => [], open => 1 }, $class;
    $mux->set_callback_object($self, $handle);
}

sub mux_input {
    my ($self, $mux, $handle, $input) = @_;
    while ($$input =~ s/^(.*?\n)//) {
        main::admit($self, $1);
    }
}

# An answer fills its slot; what is answered at the head of the line leaves.
sub answered {
    my ($self, $slot, $answer) = @_;
    $slot->[0] = $answer;
    my $slots = $self->{slots};
    while (@$slots && defined $slots->[0][0]) {
        my $done = shift @$slots;
        $mux->write($self->{handle}, $done->[0]) if $self->{open};
    }
}

sub mux_close {
    my ($self) = @_;
    $self->{open} = 0;
    $self->{handle} = undef;
}

package Worker;

# A program on two pipes. Its input is written to directly: the lines in flight are far less than a
# pipe holds, so this cannot block, and it saves IO::Multiplex a pass over all its handles.
sub start {
    my ($class) = @_;
    pipe(my $input, my $to) or die "pipe: $!\n";
    pipe(my $from, my $output) or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN, '<&', $input or die "stdin: $!\n";
        open STDOUT, '>&', $output or die "stdout: $!\n";
        exec @program or die "$program[0]: $!\n";
    }
    my $self = bless { to => $to, from => $from, asked => [] }, $class;
    $mux->add($from);
    $mux->set_callback_object($self, $from);
    return $self;
}

sub ask {
    my ($self, $client, $slot, $line) = @_;
    push @{ $self->{asked} }, [$client, $slot];
    my $written = syswrite $self->{to}, $line;
    die "a program takes no line: $!\n" unless defined $written && $written == length $line;
}

sub mux_input {
    my ($self, $mux, $handle, $input) = @_;
    while ($$input =~ s/^(.*?\n)//) {
        my ($client, $slot) = @{ shift @{ $self->{asked} } };
        $client->answered($slot, $1);
        my $first = shift @waiting or next;
        $self->ask(@$first);
    }
}

sub mux_eof { die "a program has ended\n" }
