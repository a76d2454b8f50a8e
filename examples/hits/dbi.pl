#!/usr/bin/perl
# One log line in, one committed row, one acknowledgement out: a worker with a database handle of
# its own, as programs of this kind were written in 2002.
#
#   dbi.pl DATABASE
#
# Each line is a transaction, so it is durable when `ok` is said, and slow: compare hits.toml, where
# many lines share one. Several of these programs take turns at one SQLite file.
use strict;
use warnings;
use DBI;

# Each answer leaves at once.
$| = 1;

my $file = shift or die "usage: dbi.pl DATABASE\n";
my $db = DBI->connect("dbi:SQLite:dbname=$file", '', '', { RaiseError => 1, PrintError => 0 });
# How long a program waits while another one writes, in milliseconds.
$db->sqlite_busy_timeout(5000);
$db->do('pragma synchronous = full');
$db->do('create table if not exists hits (
    id integer not null, at integer not null, path text not null, status integer not null)');
my $insert = $db->prepare('insert into hits (id, at, path, status) values (?, ?, ?, ?)');

# Put the handles away before Perl ends, in this order: left to the end they are destroyed in any
# order, and DBD::SQLite may then crash or hang after its last row.
END {
    undef $insert;
    $db->disconnect if $db;
}

# What SQLite says when a row was not stored, for certain: busy, constraint, mismatch.
my %refused = map { $_ => 1 } (5, 19, 20);

while (defined(my $line = <STDIN>)) {
    chomp $line;
    print answer($line), "\n";
}

sub answer {
    my ($line) = @_;
    my ($id, $at, $path, $status) =
        $line =~ m{\A([0-9]{1,18}) ([0-9]{1,18}) (/[^ ]*) ([1-5][0-9][0-9])\z}
        or return "!record what is needed: ID AT PATH STATUS";

    # AutoCommit is on: execute returns after the row is committed.
    return "ok $id" if eval { $insert->execute($id, $at, $path, $status); 1 };
    my $why = $insert->errstr // $@;
    $why =~ s/\s+/ /g;
    return "!row $why" if $refused{ ($insert->err // 0) & 0xff };

    # Anything else may have happened before or after the commit. Ending here lets the daemon say
    # so (`!unknown died`) and start another program.
    die "insert: $why\n";
}
