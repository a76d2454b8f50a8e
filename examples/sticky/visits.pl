#!/usr/bin/perl
# Counts its requests. Each is an object on a line, of which it needs nothing; its answer is a text.
use strict;
use warnings;
$| = 1;
my $seen = 0;
while (<STDIN>) {
    print "$$ ", ++$seen, "\n";
}
