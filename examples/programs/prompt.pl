# Asks back, without a line end: whoever waits for one waits for ever.
use strict;
use warnings;
$| = 1;
while (my $count = sysread STDIN, my $said, 4096) {
    $said =~ s/\s+\z//;
    print "$said? ";
}
