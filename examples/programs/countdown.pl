# Counts down from the number that it is given, a line each, and ends with a dot.
use strict;
use warnings;
$| = 1;
while (my $line = <STDIN>) {
    my ($from) = $line =~ /^(\d{1,6})\s*$/ or print("!record a number is needed\n.\n"), next;
    for (my $left = $from; $left > 0; $left--) {
        print "$left\n";
    }
    print ".\n";
}
