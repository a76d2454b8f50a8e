# Keeps what one connection says: "keep TEXT" and "list"; "forget" is said between two connections.
use strict;
use warnings;
$| = 1;
my @notes;
while (my $line = <STDIN>) {
    chomp $line;
    if ($line =~ /^keep (.+)/) { push @notes, $1; print scalar(@notes), "\n" }
    elsif ($line eq "list")    { print join(", ", @notes), "\n" }
    elsif ($line eq "forget")  { @notes = (); print "ok\n" }
    else                       { print "!record keep TEXT, or list\n" }
}
