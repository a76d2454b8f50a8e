#!/usr/bin/perl
# Counts the requests of each client, whose name is the first word of a line.
use strict;
use warnings;
$| = 1;
my %seen;
while (my $line = <STDIN>) {
    my ($who) = split ' ', $line;
    print "$$ $who ", ++$seen{$who // ''}, "\n";
}
