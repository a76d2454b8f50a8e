%% The ring of `cargo xtask bench ring` on Erlang/OTP: each process of a ring has a port to a `cat` in
%% line mode, a token goes round through all of them, one less at each, and 0 tears the ring down.
%%
%%   erl -noshell -pa FOLDER -run ring main PROGRAMS HOPS RINGS
-module(ring).
-export([main/1]).

main(Words) ->
    [Programs, Hops, Rings] = [list_to_integer(Word) || Word <- Words],
    Self = self(),
    Firsts = [begin
        Since = erlang:monotonic_time(microsecond),
        First = set_up(Self, Programs),
        Took = (erlang:monotonic_time(microsecond) - Since) / 1000,
        io:format("ring ~b: ~b programs in ~.1f ms~n", [Ring, Programs, Took]),
        First
    end || Ring <- lists:seq(1, Rings)],
    Since = erlang:monotonic_time(microsecond),
    [First ! {token, Hops} || First <- Firsts],
    [receive ended -> ok end || _ <- Firsts],
    Seconds = (erlang:monotonic_time(microsecond) - Since) / 1000000,
    Messages = Hops * Rings,
    io:format("~b messages over ~b programs in ~.3f s: ~b messages/s, ~.2f us each~n",
        [Messages, Programs * Rings, Seconds, round(Messages / Seconds), Seconds * 1000000 / Messages]),
    init:stop().

%% A ring, once each of its programs has answered.
set_up(Main, Programs) ->
    Self = self(),
    All = [spawn_link(fun() -> member(Self) end) || _ <- lists:seq(1, Programs)],
    [receive {ready, Member} -> ok end || Member <- All],
    [First | Rest] = All,
    lists:foreach(fun({Member, Next}) -> Member ! {next, Next, First, Main} end,
        lists:zip(All, Rest ++ [First])),
    First.

member(Parent) ->
    Port = open_port({spawn_executable, "/bin/cat"}, [{line, 64}, binary, use_stdio]),
    port_command(Port, <<"0\n">>),
    receive {Port, {data, {eol, <<"0">>}}} -> Parent ! {ready, self()} end,
    receive {next, Next, First, Main} -> loop(Port, Next, First, Main) end.

loop(Port, Next, First, Main) ->
    receive
        {token, 0} ->
            port_close(Port),
            if Next =:= First -> ok; true -> Next ! {token, 0} end;
        {token, Number} ->
            port_command(Port, [integer_to_binary(Number), $\n]),
            loop(Port, Next, First, Main);
        {Port, {data, {eol, Line}}} ->
            case binary_to_integer(Line) - 1 of
                0 -> Main ! ended, First ! {token, 0};
                Left -> Next ! {token, Left}
            end,
            loop(Port, Next, First, Main)
    end.
