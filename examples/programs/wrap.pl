# Answers each record with the same in brackets. -0 makes NUL the end of a record.
use strict;
use warnings;
$| = 1;
while (my $record = <STDIN>) {
    chomp $record;
    print "[$record]\0";
}
