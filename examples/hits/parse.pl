#!/usr/bin/perl
# One log line in, one JSON record out.
#
#   7 1764000000000000 /a/17 200   ->   {"at":1764000000000000,"id":7,"path":"/a/17","status":200}
#
# A line that is none is answered with `!record` and a reason: the client is told that it was
# refused, and nothing is stored. Whatever goes to stderr ends up in the daemon's log.
use strict;
use warnings;
use Encode qw(decode);
use JSON::PP;

# Each answer leaves at once. Without this line Perl keeps some kilobytes of answers to itself,
# and the client waits for ever.
$| = 1;

my $json = JSON::PP->new->utf8->canonical;

while (defined(my $line = <STDIN>)) {
    chomp $line;
    print answer($line), "\n";
}

sub answer {
    my ($line) = @_;
    my @words = split / /, $line, -1;
    return "!record four words are needed: ID AT PATH STATUS" unless @words == 4;
    my ($id, $at, $path, $status) = @words;
    return "!record ID is no number that a database can hold" unless number($id);
    return "!record AT is no number of microseconds" unless number($at);
    return "!record PATH must begin with /" unless $path =~ m{\A/};
    return "!record STATUS must be 100 to 599" unless $status =~ /\A[1-5][0-9][0-9]\z/;
    my $text = eval { decode('UTF-8', $path, Encode::FB_CROAK) };
    return "!record PATH is not UTF-8" unless defined $text;

    # Adding zero makes numbers of them, so that JSON writes them without quotes.
    return $json->encode({ id => $id + 0, at => $at + 0, path => $text, status => $status + 0 });
}

# Whether a word is a whole number of at most 63 bits.
sub number {
    my ($word) = @_;
    return $word =~ /\A[0-9]{1,19}\z/ && $word <= 9223372036854775807;
}
