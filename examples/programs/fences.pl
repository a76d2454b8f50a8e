# Counts the words of each line, on descriptors 3 and 4: what it prints beside is in nobody's way.
use strict;
use warnings;
use IO::Handle;
open(my $in,  '<&=', 3) or die "no requests on 3: $!";
open(my $out, '>&=', 4) or die "no answers on 4: $!";
$out->autoflush(1);
print $out "ready\n";
while (my $line = <$in>) {
    print "counting ", length $line, " characters\n";
    my @words = split ' ', $line;
    print $out scalar(@words), "\n";
}
